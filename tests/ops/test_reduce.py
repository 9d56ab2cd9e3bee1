"""T.reduce_* and T.fill in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.reduce_programs import (
    KINDS,
    WHERE,
    check_fill,
    check_nan,
    check_reduce,
    check_regions,
    check_shared_out,
)
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
places = pytest.mark.parametrize(("src", "out"), [(a, b) for a in WHERE for b in WHERE])
SHAPES = [((64, 100), 1), ((100, 24), 0), ((7,), 0), ((3, 5, 33), 1), ((2, 48, 9), 0)]


@target
@places
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_memory(target: Any, src: str, out: str, shape: tuple[int, ...], dim: int) -> None:
    check_reduce(target, "cpu", shape, dim, src=src, out=out, clear=False)
    check_reduce(target, "cpu", shape, dim - len(shape), src=src, out=out, kind="max", keep=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64"])
@pytest.mark.parametrize("src", WHERE)
def test_kinds_on_integers(kind: str, dtype: str, src: str) -> None:
    check_reduce(HOPPER, "cpu", (5, 96), 1, kind=kind, dtype=dtype, src=src)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "abssum", "absmax"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_kinds_on_floats(kind: str, dtype: str) -> None:
    check_reduce(AMPERE, "cpu", (5, 96), 1, kind=kind, dtype=dtype)


@pytest.mark.parametrize("kind", ["bitand", "bitor", "bitxor"])
def test_truth_values(kind: str) -> None:
    check_reduce(HOPPER, "cpu", (40, 6), 0, kind=kind, dtype="bool")


@target
@places
@pytest.mark.parametrize("clear", [True, False])
def test_regions(target: Any, src: str, out: str, clear: bool) -> None:
    check_regions(target, "cpu", src, out, clear)


@target
def test_results_shared_out(target: Any) -> None:
    check_shared_out(target, "cpu")


def test_results_shared_out_are_loaded_once() -> None:
    """A column sum of eight warps: 16 results a thread, and not 16 x 8 loads of each thread."""

    @T.prim_func
    def main(A: T.Tensor((256, 128), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256) as _:
            a = T.alloc_fragment((256, 128), "float32")
            b = T.alloc_fragment((128,), "float32")
            T.annotate_layout(
                {
                    a: T.Fragment(
                        (256, 128), lambda i, j: (j // 16 + i % 32 * 8, j % 16 + i // 32 * 16)
                    )
                }
            )
            T.copy(A, a)
            T.reduce_sum(a, b, dim=0)
            T.copy(b, B)

    a = torch.randn(256, 128)
    report = tilelab.compile(main, out_idx=[1], target=HOPPER).simulate(a)
    torch.testing.assert_close(report.outputs[0], a.sum(0))
    reads = report.counters[0].total().units("shared", "read")
    alone = 8 * 16 * 8  # wavefronts: eight warps, 16 results a thread, eight parts each
    assert 0 < reads <= alone // 3


@pytest.mark.parametrize("keep_nan", [True, False])
def test_nan(keep_nan: bool) -> None:
    check_nan(HOPPER, "cpu", keep_nan)


@target
def test_fill_of_regions(target: Any) -> None:
    check_fill(target, "cpu")


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(0, 2),
    st.sampled_from([32, 48, 64, 128, 160]), st.sampled_from(WHERE), st.sampled_from(WHERE),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_any_shape(
    shape: list[int], dim: int, threads: int, src: str, out: str, clear: bool, keep: bool
) -> None:
    check_reduce(
        HOPPER, "cpu", tuple(shape), dim % len(shape), threads=threads, src=src, out=out,
        clear=clear, keep=keep,
    )  # fmt: skip


def _error(what: str) -> TileError:
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 16), "float32")):
            with T.Kernel(1, threads=32) as _:
                s = T.alloc_shared((8, 16), "float32")
                r = T.alloc_fragment((8,), "float32")
                T.copy(A, s)
                if what == "memory":
                    T.reduce_sum(A, r)
                elif what == "bits":
                    T.reduce_bitand(s, r)
                elif what == "nan":
                    T.reduce(s, r, "sum", 1, True, nan_propagate=True)
                else:
                    T.reduce_sum(s, r, dim=0)

        tilelab.compile(main, target=HOPPER)
    return caught.value


def test_errors() -> None:
    found = _error("memory")
    assert found.code == "TL1522" and "buffer = A of a reduction lives in global" in found.message
    assert _error("bits").code == "TL1525"
    assert "no reduction is called 'sum' with nan_propagate" in _error("nan").message
    assert "reducing axis 0 of s (8x16) does not give r (8)" in _error("shape").message
