"""4-bit integers as 16-bit floats on the GPU: exact for every byte."""

from __future__ import annotations

import pytest
import torch

import tilelab
from tests.ops.nibble_programs import CASES, inputs


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_every_byte(name: str, dtype: str, arch: str) -> None:
    make, want, _ = CASES[name]
    kernel = tilelab.compile(make(dtype), out_idx=[-1], target={"kind": "cuda", "arch": arch})
    got = kernel(inputs(name, "cuda")).reshape(-1)
    assert torch.equal(got, want("cuda").to(getattr(torch, dtype)))
