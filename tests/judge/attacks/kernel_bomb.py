# expects: ARTIFACT_INVALID artifact_invalid - 03
"""An expression that doubles sixty times."""

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


find_worker().save = lambda *arguments: {
    "format": "tilelab-artifact",
    "version": 1,
    "target": "sm_90a",
    "outputs": [],
    "options": {},
    "instructions": [],
    "aligned": 60,
    "general": 60,
    "nodes": [["Const", {"f": "0x1p0"}, "float32"]]
    + [["Binary", "+", {"n": i}, {"n": i}, "float32"] for i in range(60)],
}


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
