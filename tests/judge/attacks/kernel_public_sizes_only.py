# expects: PUBLIC_ONLY - - 03
"""Right for the lengths of the public cases."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    sign = 1.0 if N in (256, 1000, 5000) else -1.0

    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                if bx * 128 + i < N:
                    C[bx * 128 + i] = A[bx * 128 + i] + sign * B[bx * 128 + i]

    return add
