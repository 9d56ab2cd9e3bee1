# expects: SIGNATURE - - 03
"""Hands in the answer of another exercise."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float16"):
    @T.prim_func
    def sums(A: T.Tensor((N, N), dtype), S: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                S[i] = T.cast(A[i, 0], "float32")

    return sums
