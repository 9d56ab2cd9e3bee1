# expects: RAISED native_code - 03
"""Goes to C, where no audit reaches."""

import ctypes

import tilelang
import tilelang.language as T

LIBC = ctypes.CDLL(None)
raise OSError(LIBC.unlink(b"/etc/hostname"))


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
