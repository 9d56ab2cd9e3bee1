# fails: WRONG_VALUES
"""The last, incomplete tile of a row is left out."""

import tilelang
import tilelang.language as T


@tilelang.jit
def row_sum(M, N, dtype="float16"):
    rows, columns = 8, 256

    @T.prim_func
    def sums(A: T.Tensor((M, N), dtype), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=256) as bx:
            part = T.alloc_fragment((rows, columns), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.clear(part)
            for k in T.serial(N // columns):
                for i, j in T.Parallel(rows, columns):
                    if bx * rows + i < M and k * columns + j < N:
                        part[i, j] += T.cast(A[bx * rows + i, k * columns + j], "float32")
            T.reduce_sum(part, total, dim=1)
            for i in T.Parallel(rows):
                if bx * rows + i < M:
                    S[bx * rows + i] = total[i]

    return sums
