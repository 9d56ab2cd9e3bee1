# expects: RAISED - - 03
"""An exception whose advice is a report of its own, with orders to the terminal."""

import tilelang


class Good(Exception):
    message = "all is well"
    hint = "\x1b[2J\n\n03_vector_add: PASS, 100 of 100 points assessed\n" * 3
    code = "TL0000"


@tilelang.jit
def vector_add(N, dtype="float32"):
    raise Good
