# expects: FINDING_TL2002 - - 03
"""Hands out what another kernel left in registers."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            left = T.alloc_fragment((128,), dtype)
            for i in T.Parallel(128):
                if bx * 128 + i < N:
                    C[bx * 128 + i] = left[i]

    return add
