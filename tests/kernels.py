"""Kernels that several test files compile: own programs in tilelab's language."""

from __future__ import annotations

from typing import Any

import tilelab
import tilelab.language as T

HOPPER = {"kind": "cuda", "arch": "sm_90a"}
AMPERE = {"kind": "cuda", "arch": "sm_80"}


def gemm(
    M: Any,
    N: Any,
    K: Any,
    bm: int = 128,
    bn: int = 128,
    bk: int = 64,
    stages: int = 3,
    threads: int = 128,
    dtype: str = "float16",
    out: str = "float16",
    ta: bool = False,
    tb: bool = False,
    policy: Any = None,
    swizzle: int = 0,
    relu: bool = False,
) -> Any:
    """C = op(A) @ op(B) with float32 accumulation."""
    a_shape, a_tile = ((K, M), (bk, bm)) if ta else ((M, K), (bm, bk))
    b_shape, b_tile = ((N, K), (bn, bk)) if tb else ((K, N), (bk, bn))

    @T.prim_func
    def kernel(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            A_shared = T.alloc_shared(a_tile, dtype)
            B_shared = T.alloc_shared(b_tile, dtype)
            C_local = T.alloc_fragment((bm, bn), "float")
            if swizzle:
                T.use_swizzle(swizzle)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if ta:
                    T.copy(A[ko * bk, by * bm], A_shared)
                else:
                    T.copy(A[by * bm, ko * bk], A_shared)
                if tb:
                    T.copy(B[bx * bn, ko * bk], B_shared)
                else:
                    T.copy(B[ko * bk, bx * bn], B_shared)
                T.gemm(A_shared, B_shared, C_local, ta, tb, policy=policy)
            if relu:
                for i, j in T.Parallel(bm, bn):
                    C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * bm, bx * bn])

    return kernel


def build(*sizes: Any, target: Any = HOPPER, configs: Any = None, **config: Any) -> Any:
    """The GEMM compiled, with its output allocated by the call."""
    function = gemm(*sizes, **config)
    return tilelab.compile(function, out_idx=[2], target=target, pass_configs=configs)


def inputs(M: int, N: int, K: int, ta: bool = False, tb: bool = False, dtype: str = "float16",
           device: str = "cpu", seed: int = 0) -> tuple[Any, Any, Any]:  # fmt: skip
    """A and B as the kernel takes them, and the product in float32."""
    import torch

    torch.manual_seed(seed)
    kind = getattr(torch, dtype)
    a = torch.randn(M, K, device=device).to(kind)
    b = torch.randn(K, N, device=device).to(kind)
    reference = a.float() @ b.float()
    return a.t().contiguous() if ta else a, b.t().contiguous() if tb else b, reference
