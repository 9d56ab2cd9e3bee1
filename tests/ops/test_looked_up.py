"""Pipelines over what tables name: results, and that the loads run ahead."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.looked_up_programs import CASES

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("name", CASES)
def test_result(target: Any, name: str) -> None:
    torch.manual_seed(0)
    program, inputs, want = CASES[name]("cpu")
    kernel = tilelab.compile(program, out_idx=[-1], target=target)
    report = kernel.simulate(*inputs)
    assert report.ok, str(report)
    assert torch.allclose(kernel(*inputs).float(), want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_loads_run_ahead(name: str) -> None:
    """Pages by TMA; rows one by one by cp.async, each entry of the table read once a chunk."""
    program, _, _ = CASES[name]("cpu")
    text = tilelab.compile(program, out_idx=[-1], target=HOPPER).get_kernel_source()
    body = text[text.index("__global__") :]
    if name.startswith("pages"):
        assert "tl::tma_load(KV_desc" in body and body.count("Table[") == 1
    else:
        assert "tl::cp_async_zfill<16>" in body and "tl::tma_load" not in body
    if name == "held":  # numbers in registers are known to some threads only
        assert body.count("tl::cp_async_zfill<16>") == 1


def test_table_that_changes_stays_in_its_place() -> None:
    """A table that the kernel writes is read when the iteration comes, not before."""

    @T.prim_func
    def main(
        X: T.Tensor((256, 64), "float16"), Table: T.Tensor((4,), "int32"),
        Y: T.Tensor((4, 64, 64), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 64), "float16")
            for k in T.Pipelined(4, num_stages=2):
                row = Table[k] * 64
                T.copy(X[row : row + 64, :], tile)
                T.copy(tile, Y[k, 0:64, 0:64])
                if k < 3:
                    Table[k + 1] = (row // 64 + 1) % 4
                T.sync_threads()

    x, table = torch.randn(256, 64).half(), torch.tensor([2, 0, 0, 0], dtype=torch.int32)
    kernel = tilelab.compile(main, out_idx=[-1], target=HOPPER)
    y = kernel(x, table)
    assert torch.equal(y, x.reshape(4, 64, 64)[[2, 3, 0, 1]])
