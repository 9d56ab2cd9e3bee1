"""What the tests of messages share: a kernel around a body, and what its author is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilelab.language as T
from tests.frontend.helpers import expect

Body = Callable[[Any, Any, Any], Any]


def program(body: Body) -> Any:
    """A kernel around a macro."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            body(A, B, bx)

    return main


def told(body: Body, code: str, *words: str) -> None:
    """Tracing `body` is refused with these words, at a line of this file."""
    with expect(Exception, code, *words) as caught:
        program(T.macro(body))
    place = caught.error.place
    assert place is not None and place.file == body.__code__.co_filename
    assert caught.error.hint
