# fails: SIGNATURE
"""Writes into B instead of a third tensor."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    block = 256

    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    B[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return add
