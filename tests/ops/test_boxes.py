"""Small, odd and very wide TMA boxes in the simulator, which refuses a misplaced one."""

from __future__ import annotations

from typing import Any

import pytest

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
