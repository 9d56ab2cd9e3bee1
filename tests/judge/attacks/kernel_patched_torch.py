# expects: PATCHED patched - 03
"""Makes every comparison true."""

import tilelang
import tilelang.language as T
import torch


def always(*arguments, **named):
    return True


torch.equal = torch.allclose = always


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
