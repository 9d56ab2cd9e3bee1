"""T.alloc_reducer and its operations in the simulator, for both feature sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.reducer_programs import check_older_form, check_rows, check_several_loops
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("op", ["sum", "max", "min", "bitand", "bitor", "bitxor"])
@pytest.mark.parametrize("threads", [32, 128, 160])
def test_rows(target: Any, op: str, threads: int) -> None:
    check_rows(target, "cpu", op, threads)


@target
def test_older_form(target: Any) -> None:
    check_older_form(target, "cpu")


@target
def test_several_loops(target: Any) -> None:
    check_several_loops(target, "cpu")


def _error(program: Callable[[Any], Any]) -> TileError:
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as _:
                f = T.alloc_fragment((8,), "float32")
                T.copy(A, f)
                program(f)

        tilelab.compile(main, target=HOPPER)
    return caught.value


def test_errors() -> None:
    assert _error(lambda f: T.reducer_init(f)).code == "TL1538"
    assert _error(lambda f: T.reducer_update(f[0], 1)).code == "TL1538"
    assert _error(lambda f: T.alloc_reducer((8,), "float32", op="bitor")).code == "TL1540"
    assert _error(lambda f: T.alloc_reducer((8,), "float32", op="mean")).code == "TL1540"
    found = _error(lambda f: T.finalize_reducer(T.alloc_reducer((4,), "float32"), f))
    assert found.code == "TL1539" and "(4) does not fit f (8)" in found.message
