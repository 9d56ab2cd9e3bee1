# expects: FINDING_TL2010 - - 03
"""A loop that is written out a million times: whoever compiles it is busy for hours."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for turn in T.unroll(1_000_000):
                for i in T.Parallel(128):
                    if bx * 128 + i < N:
                        C[bx * 128 + i] = A[bx * 128 + i] + B[bx * 128 + i] * turn

    return add
