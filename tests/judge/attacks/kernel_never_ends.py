# expects: FINDING_TL2010 - - 03
"""Waits for ever for what nobody writes."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            ready = T.alloc_var("int32", init=0)
            while ready == 0:
                C[0] = B[0]

    return add
