# expects: RAISED writes_file - 03
"""Puts a link to the solution where the judge may look."""

import os

import tilelang
import tilelang.language as T

os.symlink("/etc/passwd", "/tmp/tilelab-judge-attack")


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
