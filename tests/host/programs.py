"""Kernels with tunable arguments."""

from __future__ import annotations

from typing import Any

import tilelab
import tilelab.language as T


def scale_factory(n: int = 256, factor: float = 2.0, block: int = 64, threads: int = 64) -> Any:
    @T.prim_func
    def scale(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=threads) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] * factor

    return scale


def eager_scale() -> Any:
    @tilelab.jit
    def scale(A, factor: float = 2.0, block: int = 64, threads: int = 64):
        n = T.const("n")
        A: T.Tensor[[n], "float32"]
        C = T.empty((n,), "float32")
        with T.Kernel(T.ceildiv(n, block), threads=threads) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] * factor
        return C

    return scale


BLOCKS = [{"block": 64}, {"block": 128}, {"block": 32}]
