"""Programs with T.annotate_layout, and what they must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T
from tilelab.layout import (
    make_full_bank_swizzled_layout,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
)

M, N, K, BK = 64, 64, 96, 32
MAKERS = {
    "best": make_swizzled_layout, "linear": make_linear_layout,
    "half": make_half_bank_swizzled_layout, "quarter": make_quarter_bank_swizzled_layout,
}  # fmt: skip
MODES = (*MAKERS, "padded", "chunks", "fragment")


def _annotate(mode: str, a: Any, b: Any, c: Any, out: Any) -> None:
    if mode in MAKERS:
        T.annotate_layout({a: MAKERS[mode](a), b: MAKERS[mode](b)})
        T.annotate_layout({out: make_full_bank_swizzled_layout(out)})
    elif mode == "padded":
        T.annotate_layout({a: lambda i, j: i * (BK + 8) + j})
        T.annotate_layout({out: T.Layout((M, N), lambda i, j: i * (N + 1) + j)})
    elif mode == "chunks":
        T.annotate_layout({
            a: lambda i, j: (j // 8, i, j % 8),
            b: lambda i, j: (i, (j // 8) ^ (i % 4), j % 8),
        })  # fmt: skip
    else:
        T.annotate_layout({
            c: T.Fragment((M, N), lambda i, j: (i % 32 * 4 + j // 16, i // 32 * 16 + j % 16))
        })  # fmt: skip


def check_gemm(target: Any, device: str, mode: str, stages: int) -> None:
    """A gemm whose tiles lie as the program says."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, BK), "float16")
            b = T.alloc_shared((BK, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            out = T.alloc_shared((M, N), "float32")
            _annotate(mode, a, b, c, out)
            T.clear(c)
            for k in T.Pipelined(K // BK, num_stages=stages):
                T.copy(A[0, k * BK], a)
                T.copy(B[k * BK, 0], b)
                T.gemm(a, b, c)
            T.copy(c, out)
            T.copy(out, C)

    torch.manual_seed(0)
    a, b = (torch.randn(s, device=device).half() for s in ((M, K), (K, N)))
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    torch.testing.assert_close(got, a.float() @ b.float(), rtol=1e-3, atol=1e-2)


def check_elements(target: Any, device: str) -> None:
    """Loops, a reduction and a view over a scrambled tile and a fragment with copies."""

    @T.prim_func
    def main(
        A: T.Tensor((16, 24), "float32"), B: T.Tensor((384,), "float32"),
        C: T.Tensor((16,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((16, 24), "float32")
            f = T.alloc_fragment((16, 24), "float32")
            r = T.alloc_fragment((16,), "float32")
            T.annotate_layout({
                s: T.Layout((16, 24), lambda i, j: ((j * 7) % 24, (i + j) % 16)),
                f: T.Fragment((16, 24), forward_thread_fn=lambda i, j, rep: i * 2 + rep,
                              forward_index_fn=lambda i, j: j, replicate=2),
            })  # fmt: skip
            T.copy(A, s)
            for i, j in T.Parallel(16, 24):
                f[i, j] = s[i, j] * 2
            T.reduce_sum(f, r, dim=1)
            T.copy(r, C)
            T.copy(T.reshape(s, (384,)), B)

    a = torch.randint(-5, 6, (16, 24), device=device).float()
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    assert torch.equal(b, a.flatten())
    assert torch.equal(c, 2 * a.sum(1))
