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


@pytest.mark.parametrize(
    ("begins", "finishes", "words"),
    [
        (False, True, "the reducer total is updated before T.reducer_init"),
        (True, False, "the reducer total is read before T.finalize_reducer"),
    ],
)
def test_out_of_order(begins: bool, finishes: bool, words: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32) as _:
            total = T.alloc_reducer((1,), "float32")
            if begins:
                T.reducer_init(total)
            for i in T.Parallel(64):
                T.reducer_update(total[0], A[i])
            if finishes:
                T.finalize_reducer(total)
            B[0] = total[0]

    with pytest.raises(TileError, match=f"TL1543: {words}"):
        tilelab.compile(main, target=HOPPER)


@pytest.mark.parametrize(
    ("begins", "finishes", "words"),
    [
        (True, False, "is not finalized once each time"),
        (False, True, "is not finalized once each time"),
        (False, None, "is never finalized"),
    ],
)
def test_one_end_for_each_beginning(begins: bool, finishes: bool | None, words: str) -> None:
    """`begins`, `finishes`: inside of the loop over tiles, else outside."""

    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32) as _:
            total = T.alloc_reducer((1,), "float32")
            result = T.alloc_fragment((1,), "float32")
            T.clear(result)
            if not begins:
                T.reducer_init(total)
            for k in T.serial(4):
                if begins:
                    T.reducer_init(total)
                for i in T.Parallel(64):
                    T.reducer_update(total[0], A[k, i])
                if finishes:
                    T.finalize_reducer(total, result)
            if finishes is False:
                T.finalize_reducer(total, result)
            T.copy(result, B)

    with pytest.raises(TileError, match=f"TL1543: the reducer total {words}"):
        tilelab.compile(main, target=HOPPER)
