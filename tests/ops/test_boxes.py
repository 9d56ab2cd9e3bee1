"""Small, odd and very wide TMA boxes in the simulator, which refuses a misplaced one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.box_programs import SHAPES, check_decayed, check_passing
from tilelab.errors import TileError

targets = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@targets
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tiles_in_slots(shape: tuple[int, ...], stages: int, target: Any) -> None:
    kernel = check_passing(shape, stages, target)
    by_tma = "tma_load" in kernel.get_kernel_source()
    if target is AMPERE or shape == (264,):  # 264 = 33 * 8: no part of it is 128 bytes
        assert not by_tma
    elif len(shape) == 1 or stages == 1:
        assert by_tma  # vectors are padded; one slot needs no room behind it


def test_small_matrices_tell_why_they_are_no_boxes() -> None:
    kernel = check_passing((4, 8), 2, HOPPER)
    assert "tma_load" not in kernel.get_kernel_source()
    reasons = [p.reason for p in kernel.trace.pipelines]
    assert any("slots of tile take 64 bytes each" in r for r in reasons), reasons


@targets
@pytest.mark.parametrize(("block", "stages"), [(16, 2), (32, 1), (32, 3), (64, 4)])
def test_vectors_travel_with_tiles(block: int, stages: int, target: Any) -> None:
    kernel = check_decayed(block, stages, target)
    assert ("tma_load" in kernel.get_kernel_source()) == (target is HOPPER)


def test_part_of_a_tile_off_a_boundary() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 32), "float16"), C: T.Tensor((4, 32), "float16")):
        with T.Kernel(1, threads=128) as _:
            tile = T.alloc_shared((4, 32), "float16")
            bar = T.alloc_barrier(1)
            T.tma_copy(A[1:2, 0:32], tile[1:2, 0:32], barrier=bar[0])
            T.barrier_arrive(bar[0])
            T.barrier_wait(bar[0], 0)
            T.copy(tile, C)

    with pytest.raises(TileError, match="off a 128-byte boundary of tile"):
        tilelab.compile(main, target=HOPPER)


@pytest.mark.parametrize("store", [False, True])
def test_panels_of_a_tile_travel_alone(store: bool) -> None:
    """Columns of a swizzled operand that are whole panels come, and go, one after the other."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"),
        B: T.Tensor((256, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
        D: T.Tensor((64, 256), "float16"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 256), "float16")
            b = T.alloc_shared((256, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            bars = T.alloc_barrier([1] * 4)
            for j in T.unroll(4):
                T.tma_copy(
                    A[:, j * 64 : (j + 1) * 64], a[:, j * 64 : (j + 1) * 64], barrier=bars[j]
                )
                if T.get_thread_binding() == 0:
                    T.barrier_arrive(bars[j])
            T.copy(B, b)
            for j in T.unroll(4):
                T.barrier_wait(bars[j], 0)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)
            if store:
                for j in T.serial(4):
                    T.tma_copy(a[:, j * 64 : (j + 1) * 64], D[:, j * 64 : (j + 1) * 64])
                T.tma_store_wait(0)

    a, b = torch.randn(64, 256).half(), torch.randn(256, 64).half()
    c, d = torch.zeros(64, 64), torch.zeros(64, 256).half()
    tilelab.compile(main, target=HOPPER)(a, b, c, d)
    assert torch.allclose(c, a.float() @ b.float(), atol=0.05)
    assert torch.equal(d, a if store else torch.zeros_like(a))


def test_half_a_panel_does_not_travel_alone() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            bar = T.alloc_barrier(1)
            T.tma_copy(A[:, 0:32], a[:, 32:64], barrier=bar[0])
            T.barrier_wait(bar[0], 0)
            T.gemm(a, a, c, transpose_B=True, clear_accum=True)
            T.copy(c, C)

    with pytest.raises(TileError, match="a part of 64 columns that lie together in a") as caught:
        tilelab.compile(main, target=HOPPER)
    assert caught.value.code == "TL1760"
