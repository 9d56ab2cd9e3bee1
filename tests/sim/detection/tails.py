"""Partial tiles: tails that nobody sets, and guards of another index."""

from __future__ import annotations

import numpy as np

import tilelab.language as T
from tests.sim.detection.matrix import UNGUARDED, Entry, collect

UNSET: list[Entry] = []
BOUNDS_READ: list[Entry] = []
BOUNDS_WRITE: list[Entry] = []
unset, read, write = collect(UNSET), collect(BOUNDS_READ), collect(BOUNDS_WRITE)


@unset("TL2002")
def sum_of_a_tile_with_an_unset_tail(ok):
    @T.prim_func
    def main(A: T.Tensor((100,), "float32"), B: T.Tensor((2,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            s = T.alloc_shared((64,), "float32")
            f = T.alloc_fragment((64,), "float32")
            r = T.alloc_fragment((1,), "float32")
            tx = T.get_thread_binding()
            if ok:
                s[tx] = 0.0
            if bx * 64 + tx < 100:
                s[tx] = A[bx * 64 + tx]
            T.copy(s, f)  # BUG
            T.reduce_sum(f, r, dim=0)  # BUG
            B[bx] = r[0]

    return main


@unset("TL2002")
def vector_of_a_tail(ok):
    @T.prim_func
    def main(A: T.Tensor((250,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            v = T.alloc_local((8,), "float32")
            tx = T.get_thread_binding()
            total = T.alloc_var("float32", init=0.0)
            for j in T.serial(8):
                if tx * 8 + j < 250:
                    v[j] = A[tx * 8 + j]
                elif ok:
                    v[j] = 0.0
            for j in T.serial(8):
                total += v[j]  # BUG
            B[tx] = total

    return main


@unset("TL2002")
def second_slot_never_filled_before_the_loop(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 128), "float32"), B: T.Tensor((6, 128), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((3, 128), "float32")
            T.copy(A[0, 0], s[0, :])
            if ok:
                T.copy(A[1, 0], s[1, :])
            for k in T.serial(6):
                for i in T.Parallel(128):
                    B[k, i] = s[k % 3, 127 - i]  # BUG
                if k + 2 < 6:
                    T.copy(A[k + 2, 0], s[(k + 2) % 3, :])

    return main


@unset("TL2002")
def rows_of_the_last_group(ok):
    @T.prim_func
    def main(A: T.Tensor((80, 64), "float16"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            rows = T.min(64, 80 - bx * 64)
            if ok:
                T.clear(a)
            for i, j in T.Parallel(64, 64):
                if i < rows:
                    a[i, j] = A[bx * 64 + i, j]
            T.clear(c)
            T.gemm(a, a, c, transpose_B=True)  # BUG
            T.copy(c, C[bx * 64, 0])

    return main


@read("TL2001", configs=UNGUARDED)
def guard_of_the_wrong_index(ok):
    @T.prim_func
    def main(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            i = bx * 64 + T.get_thread_binding()
            if i < 100:
                if i % 2 == 1:
                    B[i] = A[i] + (A[i + 1] if not ok else A[i - 1])  # BUG
                else:
                    B[i] = A[i]

    return main


@read("TL2001", configs=UNGUARDED)
def guard_includes_the_end(ok):
    @T.prim_func
    def main(A: T.Tensor((100,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            i = bx * 64 + T.get_thread_binding()
            B[i] = T.if_then_else(i < 100 if ok else i <= 100, A[i], 0.0)  # BUG

    return main


@write("TL2001")
def bins_by_data_in_a_branch(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            if tx < 64:
                s[tx] = 0
            T.sync_threads()
            if A[tx] > 10:
                if ok:
                    T.atomic_add(s[T.min(A[tx], 63)], 1)
                else:
                    T.atomic_add(s[A[tx]], 1)  # BUG
            T.sync_threads()
            if tx < 64:
                B[tx] = s[tx]

    return main


@read("TL2001")
def neighbour_in_a_shared_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            T.copy(A, s)
            for i, j in T.Parallel(64, 64):
                if i > 0 and i < (63 if ok else 64):
                    B[i, j] = s[i - 1, j] + s[i + 1, j]  # BUG
                else:
                    B[i, j] = 0.0

    return main


@read("TL2001", configs=UNGUARDED, inputs={"P": np.array([0, 10, 30, 64, 200])})
def rows_of_a_ragged_batch(ok):
    @T.prim_func
    def main(
        P: T.Tensor((5,), "int32"), A: T.Tensor((150,), "float32"), B: T.Tensor((4,), "float32")
    ):
        with T.Kernel(4, threads=32) as bx:
            tx = T.get_thread_binding()
            total = T.alloc_var("float32", init=0.0)
            for i in T.serial(P[bx], P[bx + 1]):
                if tx == 0 and (i < 150 if ok else True):
                    total += A[i]  # BUG
            if tx == 0:
                B[bx] = total

    return main
