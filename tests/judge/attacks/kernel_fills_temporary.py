# expects: STORAGE - files 03
"""Fills its temporary folder."""

import os

import tilelang
import tilelang.language as T

for number in range(100_000):
    with open(os.path.join(os.environ["TMPDIR"], str(number)), "wb") as stream:
        stream.write(b"x" * 1_000_000)


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
