# expects: TL1470 - - 03
"""A macro that calls itself without end."""

import tilelang
import tilelang.language as T


@T.macro
def again(k):
    again(k + 1)


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            again(0)

    return add
