"""Convolutions through T.im2col, and what they must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

CONVOLUTIONS = (
    (2, 9, 11, 16, 24, 3, 1, 1, 1), (1, 12, 10, 8, 40, 3, 2, 1, 1), (1, 14, 14, 5, 32, 3, 1, 2, 2),
    (1, 7, 7, 64, 32, 1, 1, 1, 0), (3, 8, 8, 12, 16, 5, 3, 1, 2),
)  # fmt: skip
"""(N, H, W, C, filters, kernel, stride, dilation, pad)."""


def convolution(
    N: int, H: int, W: int, C: int, F: int, K: int, S: int, D: int, P: int, *, bm: int = 64,
    bn: int = 32, bk: int = 32, dtype: str = "float16", stages: int = 2,
) -> Any:  # fmt: skip
    """The convolution as a pipelined gemm over patches."""
    OH, OW = ((e + 2 * P - D * (K - 1) - 1) // S + 1 for e in (H, W))

    @T.prim_func
    def main(
        A: T.Tensor((N, H, W, C), dtype), B: T.Tensor((K, K, C, F), dtype),
        Out: T.Tensor((N, OH, OW, F), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(F, bn), T.ceildiv(N * OH * OW, bm), threads=128) as (bx, by):
            a, b = T.alloc_shared((bm, bk), dtype), T.alloc_shared((bk, bn), dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            filters = T.Tensor((K * K * C, F), dtype, B.data)
            flat = T.Tensor((N * OH * OW, F), "float32", Out.data)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K * K * C, bk), num_stages=stages):
                T.im2col(A, a, by, k, K, S, D, P)
                T.copy(filters[k * bk, bx * bn], b)
                T.gemm(a, b, c)
            T.copy(c, flat[by * bm, bx * bn])

    return main


def check_convolution(target: Any, device: str, sizes: Any, **config: Any) -> None:
    """Against torch; small whole numbers, so every sum is exact."""
    N, H, W, C, F, K, S, D, P = sizes
    kind = getattr(torch, config.get("dtype", "float16"))
    torch.manual_seed(0)
    a = torch.randint(-3, 4, (N, H, W, C), device=device).to(kind)
    b = torch.randint(-3, 4, (K, K, C, F), device=device).to(kind)
    got = tilelab.compile(convolution(*sizes, **config), out_idx=[2], target=target)(a, b)
    image, filters = a.float().permute(0, 3, 1, 2), b.float().permute(3, 2, 0, 1)
    want = torch.conv2d(image.cpu(), filters.cpu(), stride=S, padding=P, dilation=D)
    assert torch.equal(got.cpu(), want.permute(0, 2, 3, 1))
