# expects: TL1670 - - 03
"""Brings CUDA text of its own."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            T.import_source("__device__ float own() { return 1.f; }")
            for i in T.serial(N):
                C[i] = A[i]

    return add
