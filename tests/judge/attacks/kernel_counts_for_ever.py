# expects: FINDING_TL2010 - - 03
"""A loop with an end that nobody lives to see."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.serial(1 << 30):
                C[i % N] = A[i % N] + B[i % N]

    return add
