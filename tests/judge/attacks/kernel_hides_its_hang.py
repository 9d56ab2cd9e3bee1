# expects: FINDING_TL2010 - - 03
"""Waits for ever for a value that it could write itself: nothing shows that it does not."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            if T.get_thread_binding() == 0:
                C[0] = 0.0
                while C[0] != 1.0:
                    C[0] = C[0] * 0.0

    return add
