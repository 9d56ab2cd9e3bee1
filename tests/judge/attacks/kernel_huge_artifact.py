# expects: CHANNEL_TAMPERED channel_tampered - 03
"""An artefact of many megabytes."""

import sys

import tilelang
import tilelang.language as T


def find_worker():
    frame = sys._getframe()
    while frame is not None:
        candidate = frame.f_locals.get("self")
        if hasattr(candidate, "save") and hasattr(candidate, "watch"):
            return candidate
        frame = frame.f_back
    raise RuntimeError("not found")


find_worker().save = lambda *arguments: "x" * (64 << 20)


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
