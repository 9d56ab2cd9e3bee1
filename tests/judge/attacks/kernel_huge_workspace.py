# expects: MEMORY - - 03
"""A workspace of a quarter of a terabyte."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            room = T.alloc_global((1 << 18, 1 << 18), dtype)
            for i in T.Parallel(128):
                room[bx, i] = A[bx * 128 + i]
            for i in T.Parallel(128):
                C[bx * 128 + i] = room[bx, i]

    return add
