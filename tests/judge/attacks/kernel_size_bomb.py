# expects: ARTIFACT_INVALID artifact_invalid - 03
"""More nodes than any kernel has, to keep the reader busy."""

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


worker = find_worker()
honest = worker.save


def forged(*arguments):
    made = honest(*arguments)
    made["nodes"] += [[]] * 200_001
    return made


worker.save = forged


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                if bx * 128 + i < N:
                    C[bx * 128 + i] = A[bx * 128 + i] - B[bx * 128 + i]

    return add
