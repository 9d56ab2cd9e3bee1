# fails: STRUCTURE_COALESCED
"""One thread per row: neighbouring threads are a row apart."""

import tilelang
import tilelang.language as T


@tilelang.jit
def row_sum(M, N, dtype="float16"):
    @T.prim_func
    def sums(A: T.Tensor((M, N), dtype), S: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=64) as bx:
            total = T.alloc_fragment((64,), "float32")
            T.clear(total)
            for k in T.serial(N):
                for i in T.Parallel(64):
                    if bx * 64 + i < M:
                        total[i] += T.cast(A[bx * 64 + i, k], "float32")
            for i in T.Parallel(64):
                if bx * 64 + i < M:
                    S[bx * 64 + i] = total[i]

    return sums
