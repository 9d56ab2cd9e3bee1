# expects: ARTIFACT_INVALID artifact_invalid - 03
"""Hides a pickle in the artefact."""

import base64
import pickle
import sys

import tilelang
import tilelang.language as T


class Boom:
    def __reduce__(self):
        return print, ("you should not see this",)


PAYLOAD = base64.b64encode(pickle.dumps(Boom())).decode()


def find_worker():
    frame = sys._getframe()
    while frame is not None:
        candidate = frame.f_locals.get("self")
        if hasattr(candidate, "save") and hasattr(candidate, "watch"):
            return candidate
        frame = frame.f_back
    raise RuntimeError("not found")


find_worker().save = lambda *arguments: {"format": "tilelab-artifact", "nodes": PAYLOAD}


@tilelang.jit
def vector_add(N, dtype="float32"):
    @T.prim_func
    def add(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if i < 0:
                    C[i] = A[i]

    return add
