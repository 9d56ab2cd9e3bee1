# expects: WRONG_VALUES - - 03
"""Reads behind its tensors, where another call's result might lie: the compiler gives zeros."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            t = T.get_thread_binding()
            if bx * 128 + t < N:
                C[bx * 128 + t] = A[bx * 128 + t + N] + B[bx * 128 + t + 2 * N]

    return add
