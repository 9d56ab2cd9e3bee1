# expects: RAISED - - 03
"""An entry whose signature takes for ever to read, and whose parameters print a verdict."""

import inspect


class Endless:
    def __iter__(self):
        return self

    def __next__(self):
        return inspect.Parameter("N", inspect.Parameter.KEYWORD_ONLY)


class Default:
    def __repr__(self):
        return "\n  reason none: PASS, 100 of 100" * 10_000


def vector_add(A, B):
    raise TypeError("got an unexpected keyword argument")


vector_add.__signature__ = inspect.Signature([inspect.Parameter("A", inspect.Parameter.KEYWORD_ONLY,
                                                                default=Default())])  # fmt: skip
