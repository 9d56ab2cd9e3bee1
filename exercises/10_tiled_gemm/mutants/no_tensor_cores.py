# fails: STRUCTURE_TENSOR_CORES
"""Multiplies in a loop over k."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm(M, N, K, dtype="float16"):
    @T.prim_func
    def matmul(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=256) as (bx, by):
            total = T.alloc_fragment((64, 64), "float32")
            T.clear(total)
            for k in T.serial(K):
                for i, j in T.Parallel(64, 64):
                    if by * 64 + i < M and bx * 64 + j < N:
                        total[i, j] += T.cast(A[by * 64 + i, k], "float32") * T.cast(
                            B[k, bx * 64 + j], "float32"
                        )
            for i, j in T.Parallel(64, 64):
                if by * 64 + i < M and bx * 64 + j < N:
                    C[by * 64 + i, bx * 64 + j] = total[i, j]

    return matmul
