"""Kernels that write a shared tile by rows and read it by columns."""

from __future__ import annotations

from typing import Any

import tilelab.language as T


def transpose(
    M: int, N: int, rows: int, cols: int, dtype: str = "float16", threads: int = 128,
    layout: Any = None,
) -> Any:  # fmt: skip
    """B = A^T by tiles of `rows` x `cols`, in the layout that `layout(tile)` gives, if given."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N, M), dtype)):
        with T.Kernel(T.ceildiv(N, cols), T.ceildiv(M, rows), threads=threads) as (bx, by):
            tile = T.alloc_shared((rows, cols), dtype)
            if layout is not None:
                T.annotate_layout({tile: layout(tile)})
            T.copy(A[by * rows, bx * cols], tile)
            for j, i in T.Parallel(cols, rows):
                B[bx * cols + j, by * rows + i] = tile[i, j]

    return main


def by_thread(N: int = 32) -> Any:
    """A thread's own accesses: the program lays the tile out as it likes."""

    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(1, threads=N):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((N, N), "float32")
            for i in T.serial(N):
                tile[i, tx] = A[i, tx]
            for i in T.serial(N):
                B[i, tx] = tile[tx, i]

    return main


def column_sums(M: int = 64, N: int = 64) -> Any:
    """Fragments on both sides, the tile in two stages."""

    @T.prim_func
    def main(A: T.Tensor((4, M, N), "float16"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((M, N), "float16")
            total, part = T.alloc_fragment((N, M), "float32"), T.alloc_fragment((N, M), "float32")
            T.clear(total)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0, 0], tile)
                for j, i in T.Parallel(N, M):
                    part[j, i] = tile[i, j]
                for j, i in T.Parallel(N, M):
                    total[j, i] += part[j, i]
            T.copy(total, B)

    return main
