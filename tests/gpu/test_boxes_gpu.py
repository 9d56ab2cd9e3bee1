"""Small, odd and very wide TMA boxes on the GPU: the programs of tests/ops/box_programs.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.box_programs import SHAPES, check_decayed, check_passing

pytestmark = pytest.mark.gpu
targets = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@targets
@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tiles_in_slots(shape: tuple[int, ...], stages: int, target: Any) -> None:
    check_passing(shape, stages, target, "cuda")


@targets
@pytest.mark.parametrize(("block", "stages"), [(16, 2), (32, 1), (32, 3), (64, 4)])
def test_vectors_travel_with_tiles(block: int, stages: int, target: Any) -> None:
    check_decayed(block, stages, target, "cuda")
