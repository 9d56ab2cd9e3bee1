# fails: WRONG_VALUES
"""Adds up in float16."""

import tilelang
import tilelang.language as T


@tilelang.jit
def row_sum(M, N, dtype="float16"):
    rows, columns = 8, 256

    @T.prim_func
    def sums(A: T.Tensor((M, N), dtype), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=256) as bx:
            part = T.alloc_fragment((rows, columns), "float16")
            total = T.alloc_fragment((rows,), "float16")
            T.clear(part)
            for k in T.serial(T.ceildiv(N, columns)):
                for i, j in T.Parallel(rows, columns):
                    if bx * rows + i < M and k * columns + j < N:
                        part[i, j] += A[bx * rows + i, k * columns + j]
            T.reduce_sum(part, total, dim=1)
            for i in T.Parallel(rows):
                if bx * rows + i < M:
                    S[bx * rows + i] = total[i]

    return sums
