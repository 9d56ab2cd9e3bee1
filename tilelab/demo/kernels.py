"""The demo's kernel: a half-precision matrix product in 20 lines of tile language."""

# The annotations are tile language, not types: pyright cannot read them.
# pyright: basic, reportInvalidTypeForm=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import tilelab.language as T


def gemm(
    m: int, n: int, k: int, tile_m: int = 128, tile_n: int = 128, tile_k: int = 64, stages: int = 3
) -> Any:
    """C = A @ B with float32 sums. Each block of 128 threads makes one tile of C."""

    @T.prim_func
    def tile_gemm(
        A: T.Tensor((m, k), "float16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), threads=128) as (bx, by):
            a_tile = T.alloc_shared((tile_m, tile_k), "float16")
            b_tile = T.alloc_shared((tile_k, tile_n), "float16")
            sums = T.alloc_fragment((tile_m, tile_n), "float32")
            T.clear(sums)
            for step in T.Pipelined(T.ceildiv(k, tile_k), num_stages=stages):
                T.copy(A[by * tile_m, step * tile_k], a_tile)
                T.copy(B[step * tile_k, bx * tile_n], b_tile)
                T.gemm(a_tile, b_tile, sums)
            T.copy(sums, C[by * tile_m, bx * tile_n])

    return tile_gemm
