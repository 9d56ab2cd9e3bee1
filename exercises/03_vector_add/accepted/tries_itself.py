"""Uses torch and numpy beside the kernel, and keeps a check of its own in the file."""

import numpy as np
import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def vector_add(N, dtype="float32"):
    block = int(np.array([64, 256]).max())

    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < N:
                    C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return add


if __name__ == "__main__":
    a, b = torch.randn(1000), torch.randn(1000)
    c = torch.empty(1000)
    vector_add(1000)(a, b, c)
    torch.testing.assert_close(c, a + b)
