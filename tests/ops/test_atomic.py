"""Atomics in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.atomic_programs import (
    DTYPES,
    ORDERS,
    SHAPES,
    UPDATES,
    check_elements,
    check_histogram,
    check_scatter,
    check_tile,
    check_wraps,
)
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("source", ["global", "shared", "fragment"])
def test_tiles(target: Any, shape: tuple[int, int], source: str) -> None:
    check_tile(target, "cpu", shape, source=source)


@pytest.mark.parametrize("op", UPDATES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_types(op: str, dtype: str) -> None:
    check_tile(HOPPER, "cpu", (24, 60), op=op, dtype=dtype)


@pytest.mark.parametrize("order", ORDERS)
def test_memory_orders(order: str | None) -> None:
    check_tile(HOPPER, "cpu", (5, 7), order=order)


@target
def test_elements(target: Any) -> None:
    check_elements(target, "cpu")
    check_histogram(target, "cpu")
    check_wraps(target, "cpu")


@target
@pytest.mark.parametrize("source", ["shared", "fragment"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter(target: Any, dtype: str, source: str) -> None:
    check_scatter(target, "cpu", dtype=dtype, source=source)
    check_scatter(target, "cpu", dtype=dtype, source=source, columns=50)


@pytest.mark.parametrize(
    ("dtype", "wide"), [("float16", "v4.f16x2"), ("bfloat16", "v4.bf16x2"), ("float32", "v4.f32")]
)
def test_scatter_takes_sixteen_bytes(dtype: str, wide: str) -> None:
    """Where chips have vector reductions; pairs of 16-bit floats where they have not."""
    text = check_scatter(HOPPER, "cpu", dtype=dtype).get_kernel_source()
    assert f"red.global.add.{'' if dtype == 'float32' else 'noftz.'}{wide}" in text
    text = check_scatter(AMPERE, "cpu", dtype=dtype).get_kernel_source()
    assert "red." not in text and ("atomic_add_x2" in text) == (dtype != "float32")


@pytest.mark.expects_findings
def test_start_of_a_pair() -> None:
    """Two neighbours that one instruction adds to begin at a multiple of their size."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float16"), C: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            T.atomic_addx2(C[t * 2 + 1], A[t * 2])

    kernel = tilelab.compile(main, target=HOPPER)
    report = kernel.simulate(torch.zeros(64).half(), torch.zeros(64).half())
    (found,) = report.findings
    assert found.code == "TL2006" and "4 bytes to C" in found.message, found


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(1, 40), cols=st.integers(1, 70), dtype=st.sampled_from(["float16", "int32"])
)
def test_any_shape(rows: int, cols: int, dtype: str) -> None:
    check_tile(HOPPER, "cpu", (rows, cols), dtype=dtype)


def test_barriers_stand_between_atomics_and_reads_only() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((4,), "int32")
            t = T.get_thread_binding()
            T.clear(s)
            for k in T.serial(3):
                T.atomic_add(s[t % 4], k)
            T.atomic_max(s[0], 5)
            A[t] = s[t % 4]

    text = tilelab.compile(main, target=HOPPER).get_kernel_source()
    assert text.count("__syncthreads();") == 2


def test_mistakes() -> None:
    with pytest.raises(TileError, match="no two threads share") as raised:

        @T.prim_func
        def private(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                x = T.alloc_local((4,), "float32")
                T.atomic_add(x[0], 1.0)

    assert raised.value.code == "TL1752"
    with pytest.raises(TileError, match="int8, which has no atomic add"):

        @T.prim_func
        def narrow(A: T.Tensor((64,), "int8")):
            with T.Kernel(1, threads=64):
                T.atomic_add(A[0], 1)

    with pytest.raises(TileError, match="memory_order='strong' is not known"):

        @T.prim_func
        def order(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                T.atomic_add(A[0], 1, memory_order="strong")

    with pytest.raises(TileError, match="'release' is no order of a load"):

        @T.prim_func
        def load(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                A[1] = T.atomic_load(A[0], memory_order="release")

    with pytest.raises(TileError, match="'acquire' is no order of a store"):

        @T.prim_func
        def store(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                T.atomic_store(A[0], 1.0, memory_order="acquire")

    with pytest.raises(TileError, match="atomic add of a 64 tile of B to a 32 tile of A"):

        @T.prim_func
        def extents(A: T.Tensor((32,), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                T.atomic_add(A, B)
