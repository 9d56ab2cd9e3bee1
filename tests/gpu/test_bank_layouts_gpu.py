"""Tiles laid out by counted bank conflicts, on the GPU."""

from __future__ import annotations

import pytest
import torch

import tilelab
from tests.ops.transpose_programs import column_sums, transpose


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize(("rows", "cols"), [(32, 32), (64, 64), (64, 128), (32, 36)])
def test_transpose(rows: int, cols: int, dtype: str, arch: str) -> None:
    shape = (rows * 5, cols * 3)
    target = {"kind": "cuda", "arch": arch}
    kernel = tilelab.compile(transpose(*shape, rows, cols, dtype), out_idx=[-1], target=target)
    x = torch.randint(-100, 100, shape, device="cuda").to(getattr(torch, dtype))
    assert torch.equal(kernel(x), x.T)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_80"])
def test_pipelined_tiles(arch: str) -> None:
    kernel = tilelab.compile(column_sums(), out_idx=[-1], target={"kind": "cuda", "arch": arch})
    x = torch.randint(-9, 10, (4, 64, 64), device="cuda").half()
    assert torch.equal(kernel(x), x.float().sum(0).T)
