"""Pipelines over what tables name, on the GPU: the programs of tests/ops/looked_up_programs.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
from tests.kernels import AMPERE, HOPPER
from tests.ops.looked_up_programs import CASES

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("name", CASES)
def test_result(target: Any, name: str) -> None:
    torch.manual_seed(0)
    program, inputs, want = CASES[name]("cuda")
    kernel = tilelab.compile(program, out_idx=[-1], target=target)
    assert torch.allclose(kernel(*inputs).float(), want, rtol=2e-3, atol=2e-3)
