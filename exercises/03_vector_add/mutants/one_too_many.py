# fails: FINDING_TL2001
"""<= instead of <."""

import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs={"tl.disable_safe_memory_legalize": True})
def vector_add(N, dtype="float32"):
    block = 256

    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i <= N:
                    C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return add
