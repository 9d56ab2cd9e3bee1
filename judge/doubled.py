"""The program of the control kernel, as a user writes one: annotations are the language's own."""

import tilelab.language as T

N = 128


@T.prim_func
def doubled(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
    """B = A + A."""
    with T.Kernel(1, threads=64):
        for i in T.Parallel(N):
            B[i] = A[i] + A[i]
