# expects: TL1670 - - 03
"""Calls C code of its own."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.serial(N):
                C[i] = T.call_extern("float32", "own_add", A[i], B[i])

    return add
