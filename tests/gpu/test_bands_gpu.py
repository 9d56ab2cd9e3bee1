"""Tiles that threads fill band by band, on the GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
from tests.kernels import AMPERE, HOPPER
from tests.passes.test_apart import unpacked

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("step", [32, 16])
def test_bands(step: int, target: Any) -> None:
    packed = torch.randint(0, 256, (128, 16), dtype=torch.uint8, device="cuda")
    want = torch.stack([packed & 15, packed >> 4], -1).reshape(128, 32).half()
    want[3 * step + 32 :] = 0
    kernel = tilelab.compile(unpacked(step), out_idx=[-1], target=target)
    assert torch.equal(kernel(packed), want)
