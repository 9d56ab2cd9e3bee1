"""Every name of the language called wrongly, inside of a kernel and outside of one."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest

import tilelab.language as T
from tests.errors.sweep import complaints

DECORATORS = {"prim_func", "macro"}
NAMES = [n for n in sorted(T.__all__) if callable(getattr(T, n)) and n not in DECORATORS]
ENUMERATIONS = {"GemmWarpPolicy"}


class Seen(Exception):
    """Ends a trace: its answers are known."""


def in_a_kernel(fn: Any) -> Any:
    """The complaints about a function that traced code calls."""
    found: list[Any] = []

    def look(*good: Any) -> None:
        found.append(complaints(fn, good, (AssertionError,)))
        raise Seen

    with pytest.raises(Seen):

        @T.prim_func
        def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                tile = T.alloc_fragment((128, 64), "float32")
                look(A, tile, B[bx])

    return found[0]


@pytest.mark.parametrize("name", sorted({*NAMES} - ENUMERATIONS))
def test_wrong_calls_are_answered(name: str, recwarn: Any) -> None:
    fn = getattr(T, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inside = in_a_kernel(fn)
        outside = complaints(fn, (128, "float32"), (AssertionError,))
    assert not inside
    assert not outside


def test_every_name_has_a_signature() -> None:
    for name in NAMES:
        assert inspect.signature(getattr(T, name)) is not None
