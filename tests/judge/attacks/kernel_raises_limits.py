# expects: RAISED limits - 03
"""Wants its limits back."""

import resource

import tilelang
import tilelang.language as T

resource.setrlimit(resource.RLIMIT_AS, (1 << 60, 1 << 60))


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
