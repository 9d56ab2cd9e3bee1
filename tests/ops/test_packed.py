"""Elements that share bytes, in the simulator: tests/gpu runs the same programs on a GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops import packed_programs as programs
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize(("dtype", "to"), programs.DECODED)
def test_every_code(target: Any, dtype: str, to: str) -> None:
    programs.check_decode(target, "cpu", dtype, to)


@target
@pytest.mark.parametrize(("source", "dtype"), programs.ENCODED)
def test_stored_numbers(target: Any, source: str, dtype: str) -> None:
    programs.check_encode(target, "cpu", source, dtype)


@target
@pytest.mark.parametrize("dtype", programs.TYPES)
def test_tiles(target: Any, dtype: str) -> None:
    programs.check_tiles(target, "cpu", dtype)


@target
@pytest.mark.parametrize("dtype", programs.TYPES)
def test_fill_and_reduce(target: Any, dtype: str) -> None:
    programs.check_fill_and_reduce(target, "cpu", dtype)


@target
@pytest.mark.parametrize(("a", "b", "out"), programs.PRODUCTS)
def test_gemm(target: Any, a: str, b: str, out: str) -> None:
    programs.check_gemm(target, "cpu", a, b, out)


@target
@pytest.mark.parametrize("check", programs.OTHERS)
def test_others(target: Any, check: Any) -> None:
    check(target, "cpu")


def test_tiles_of_bytes_go_by_tma_and_cp_async() -> None:
    """A packed tile is a tile of bytes for the engines that copy."""

    @T.prim_func
    def main(A: T.Tensor((256, 512), "int4"), B: T.Tensor((256, 512), "int8")):
        with T.Kernel(4, threads=128) as by:
            s = T.alloc_shared((64, 128), "int4")
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[by * 64, k * 128], s)
                T.copy(s, B[by * 64, k * 128])

    hopper = tilelab.compile(main, target=HOPPER)
    assert next(m.box for m in hopper.program.kernels[0].maps) == (64, 64)
    assert "tl::cp_async<16>" in tilelab.compile(main, target=AMPERE).get_kernel_source()


def _error(make: Any, *shapes: Any, dtype: str = "int4") -> TileError:
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor(shapes[0], dtype), B: T.Tensor(shapes[1], dtype)):
            with T.Kernel(1, threads=32) as _:
                make(A, B)

        tilelab.compile(main, target=HOPPER)
    return caught.value


@T.macro
def odd_column(A, B):
    T.copy(A[0:4, 1:5], B[0:4, 0:4])


@T.macro
def column_of_threads(A, B):
    A[T.get_thread_binding(), 0] = 1


@T.macro
def loop_from_an_odd_place(A, B):
    for i, j in T.Parallel(4, 8):
        A[i, j + 1] = B[i, j]


@T.macro
def loop_along_the_rows(A, B):
    for j, i in T.Parallel(8, 4):
        A[i, j] = B[i, j]


@T.macro
def odd_fill(A, B):
    T.fill(A[0:4, 1:4], 1)


@pytest.mark.parametrize(
    ("macro", "code"),
    [
        (odd_column, "TL1541"), (odd_fill, "TL1541"), (column_of_threads, "TL1542"),
        (loop_from_an_odd_place, "TL1542"), (loop_along_the_rows, "TL1542"),
    ],
)  # fmt: skip
def test_parts_of_bytes_are_errors(macro: Any, code: str) -> None:
    assert _error(macro, (32, 16), (32, 16)).code == code


def test_rows_fill_their_bytes() -> None:
    assert _error(odd_fill, (32, 15), (32, 16)).code == "TL1541"


def test_arguments_are_bytes() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 16), "int4"), B: T.Tensor((8, 16), "int8")):
        with T.Kernel(1, threads=32) as _:
            T.copy(A, B)

    kernel = tilelab.compile(main, target=HOPPER)
    b = torch.zeros(8, 16, dtype=torch.int8)
    with pytest.raises(TileError, match="2 elements of int4 in each byte"):
        kernel(torch.zeros(8, 8, dtype=torch.int16), b)
    with pytest.raises(TileError, match=r"packed as bytes \(8, 8\)"):
        kernel(torch.zeros(8, 16, dtype=torch.int8), b)
    kernel(torch.full((8, 8), -2, dtype=torch.int8), b)
    assert torch.equal(b, torch.tensor([-2, -1] * 8, dtype=torch.int8).expand(8, 16))


def test_outputs_have_the_types_of_the_peer() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "int4"),
             C: T.Tensor((4, 8), "float4_e2m1fn")):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            T.copy(A, B)
            T.copy(A, C)

    b, c = tilelab.compile(main, out_idx=[1, 2], target=HOPPER)(torch.ones(4, 8))
    assert (b.dtype, tuple(b.shape)) == (torch.int8, (4, 4))
    assert (c.dtype, tuple(c.shape)) == (torch.float4_e2m1fn_x2, (4, 4))
    assert b[0, 0] == 0x11 and c.view(torch.uint8)[0, 0] == 0x22
    assert T.float4_e2m1fn.as_torch() is torch.float4_e2m1fn_x2
    assert T.int4.as_torch() is torch.int8


def test_e8m0_rounds_up_to_powers_of_two() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float8_e8m0fnu"),
             C: T.Tensor((8,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(8):
                B[i] = A[i]
                C[i] = T.cast(B[i], "float32") * 3

    a = torch.tensor([1.0, 1.5, -3.0, 0.0, 2.0**-20, float("inf"), float("nan"), 5e-39])
    b, c = tilelab.compile(main, out_idx=[1, 2], target=HOPPER)(a)
    want = [127, 128, 129, 0, 107, 254, 255, 0]
    assert b.view(torch.uint8).tolist() == want
    powers = torch.tensor(want, dtype=torch.uint8).view(torch.float8_e8m0fnu).float()
    assert torch.equal(c.nan_to_num(-1), (powers * 3).nan_to_num(-1))
