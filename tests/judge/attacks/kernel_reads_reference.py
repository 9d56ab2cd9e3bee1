# expects: RAISED reads_judge files 03
"""Looks for the shipped solution."""

import pathlib

import tilelang
import tilelang.language as T

import tilelab

ROOT = pathlib.Path(tilelab.__file__).parent.parent
SECRET = (ROOT / "exercises" / "03_vector_add" / "solution.py").read_text()


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
