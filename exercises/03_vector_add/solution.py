"""Exercise 03: add two vectors of any length. See task.md."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(N, dtype="float32"):
    """A kernel with the parameters A, B, C: T.Tensor((N,), dtype), which sets C = A + B."""
    ### BEGIN SOLUTION
    block = 256

    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return add
    ### END SOLUTION
