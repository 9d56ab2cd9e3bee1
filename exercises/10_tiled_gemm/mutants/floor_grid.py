# fails: UNWRITTEN
"""Incomplete tiles at the right are left out."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm(M, N, K, dtype="float16"):
    block_M, block_N, block_K = 128, 128, 64

    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(N // block_N, T.ceildiv(M, block_M), threads=128) as (bx, by):
            a_tile = T.alloc_shared((block_M, block_K), dtype)
            b_tile = T.alloc_shared((block_K, block_N), dtype)
            total = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(K, block_K)):
                T.copy(A[by * block_M, k * block_K], a_tile)
                T.copy(B[k * block_K, bx * block_N], b_tile)
                T.gemm(a_tile, b_tile, total)
            T.copy(total, C[by * block_M, bx * block_N])

    return matmul
