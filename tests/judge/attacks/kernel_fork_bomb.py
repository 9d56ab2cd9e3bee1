# expects: RAISED process calls 03
"""Multiplies itself."""

import os

import tilelang
import tilelang.language as T

while True:
    os.fork()


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
