"""The elementwise programs of tests/ops on the GPU."""

from __future__ import annotations

import pytest
import torch

import tilelab
from tests.ops.wide_programs import CASES


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("name", CASES)
def test_wide(name: str, arch: str) -> None:
    torch.manual_seed(0)
    program, inputs, want = CASES[name]("cuda")
    kernel = tilelab.compile(program, out_idx=[-1], target={"kind": "cuda", "arch": arch})
    assert torch.allclose(kernel(*inputs).float(), want, rtol=2e-3, atol=2e-3)
