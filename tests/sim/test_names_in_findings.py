"""Findings call tiles what the user calls them, also where the compiler works on a copy."""

from __future__ import annotations

import torch

import tilelab
import tilelab.language as T


@T.prim_func
def turned(
    A: T.Tensor((64, 64), "float16"), N: T.Tensor((1,), "int32"), C: T.Tensor((64, 64), "float32")
):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 64), "float16")
        x, y = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.clear(x)
        T.gemm(a, a, x)
        for i, j in T.Parallel(64, 64):
            y[i, j] = x[j + N[0], i]
        T.gemm(a, a, y)
        T.copy(y, C)


def test_a_tile_that_was_laid_out_anew_keeps_its_name() -> None:
    bare = {"tl.disable_safe_memory_legalize": True}
    kernel = tilelab.compile(turned, target="sm_90a", pass_configs=bare)
    assert "x_moved" in kernel.get_kernel_source()  # what the compiler calls the copy
    one = torch.ones(1, dtype=torch.int32)
    report = kernel.simulate(torch.zeros(64, 64).half(), one, torch.zeros(64, 64))
    assert [(found.code, found.buffer) for found in report.findings] == [("TL2001", "x")]
    assert "read of x[64, 0] is outside" in report.findings[0].message
