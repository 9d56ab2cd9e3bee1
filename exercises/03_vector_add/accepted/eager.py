"""The eager style: the function is the kernel."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(A, B):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B: T.Tensor[[N], T.float32]
    C = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, 1024), threads=256) as bx:
        for i in T.Parallel(1024):
            if bx * 1024 + i < N:
                C[bx * 1024 + i] = A[bx * 1024 + i] + B[bx * 1024 + i]
    return C
