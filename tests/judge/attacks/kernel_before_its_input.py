# expects: FINDING_TL2001 - - 03
"""Looks for the answer in memory before its inputs."""

import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs={"tl.disable_safe_memory_legalize": True})
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                C[bx * 128 + i] = A[bx * 128 + i - 4 * N]

    return add
