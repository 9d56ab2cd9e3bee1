# fails: STRUCTURE_TRAFFIC
"""Adds half of B twice, read in a loop."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    block = 256

    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    C[bx * block + i] = A[bx * block + i]
                    for _ in T.serial(2):
                        C[bx * block + i] = C[bx * block + i] + B[bx * block + i] * 0.5

    return add
