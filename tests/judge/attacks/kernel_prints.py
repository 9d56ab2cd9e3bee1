# expects: WRONG_VALUES - - 03
"""Prints from every thread, to fill the memory of the runner."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                T.print(T.float32(1.0), msg="a long line of words " * 8)
                if bx * 128 + i < N:
                    C[bx * 128 + i] = A[bx * 128 + i] - B[bx * 128 + i]

    return add
