"""Reduces every tile and adds the results."""

import tilelang
import tilelang.language as T


@tilelang.jit
def row_sum(M, N, dtype="float16"):
    rows, columns = 16, 128

    @T.prim_func
    def sums(A: T.Tensor((M, N), dtype), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
            tile = T.alloc_fragment((rows, columns), dtype)
            wide = T.alloc_fragment((rows, columns), "float32")
            total = T.alloc_fragment((rows,), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(N, columns)):
                T.copy(A[bx * rows, k * columns], tile)
                for i, j in T.Parallel(rows, columns):
                    wide[i, j] = T.cast(tile[i, j], "float32")
                T.reduce_sum(wide, total, dim=1, clear=False)
            for i in T.Parallel(rows):
                if bx * rows + i < M:
                    S[bx * rows + i] = total[i]

    return sums
