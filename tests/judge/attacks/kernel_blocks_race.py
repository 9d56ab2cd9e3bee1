# expects: FINDING_TL2007 - - 03
"""Lets all blocks write everything: the last one wins."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(4, threads=128) as bx:
            for k in T.serial(T.ceildiv(N, 128)):
                for i in T.Parallel(128):
                    if k * 128 + i < N:
                        C[k * 128 + i] = A[k * 128 + i] + B[k * 128 + i] * (bx - 2)

    return add
