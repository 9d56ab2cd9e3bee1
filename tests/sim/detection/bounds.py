"""Reads and writes out of bounds."""

from __future__ import annotations

import numpy as np

import tilelab.language as T
from tests.sim.detection.matrix import UNGUARDED, Entry, collect

READS: list[Entry] = []
WRITES: list[Entry] = []
read, write = collect(READS), collect(WRITES)


@read("TL2001", configs=UNGUARDED)
def neighbour_on_the_left(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                if i > 0 or not ok:
                    B[i] = A[i - 1]  # BUG

    return main


@read("TL2001", configs=UNGUARDED, target="sm_80")
def tail_of_a_grid(ok):
    n = 128 if ok else 100

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            B[bx * 64 + tx] = A[bx * 64 + tx] * 2.0  # BUG

    return main


@read("TL2001", configs=UNGUARDED, inputs={"idx": np.arange(64) * 3 % 70})
def gathered_index(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), idx: T.Tensor((64,), "int32"),
             B: T.Tensor((64,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = A[idx[i] % 64 if ok else idx[i]]  # BUG

    return main


@read("TL2001")
def shared_window(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((66,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if tx < 2:
                s[64 + tx] = 0.0
            ahead = T.alloc_var("int32", init=2 if ok else 3)
            B[tx] = s[tx] + s[tx + ahead]  # BUG

    return main


@read("TL2001")
def local_array_by_data(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            r = T.alloc_local((4,), "int32")
            tx = T.get_thread_binding()
            for i in T.serial(4):
                r[i] = i * 10
            B[tx] = r[A[tx] % (4 if ok else 5)]  # BUG

    return main


@read("TL2001", configs=UNGUARDED)
def transposed_rectangle(ok):
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float32"), B: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=128):
            for i, j in T.Parallel(16, 32):
                B[i, j] = A[i, j] if ok else A[j, i]  # BUG

    return main


@read("TL2001", configs=UNGUARDED)
def strided_rows(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 8, 16), "float16"), B: T.Tensor((4, 16), "float16")):
        with T.Kernel(4, threads=32) as bx:
            tx = T.get_thread_binding()
            acc = T.alloc_var("float32", init=0.0)
            for k in T.serial(8 if ok else 9):
                if tx < 16:
                    acc += T.cast(A[bx, k, tx], "float32")  # BUG
            if tx < 16:
                B[bx, tx] = acc

    return main


@read("TL2001", target="sm_80", configs=UNGUARDED)
def unbounded_search(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1):
            i = T.alloc_var("int32", init=0)
            while (A[i] != 200) if not ok else ((i < 64) and (A[i] != 200)):  # BUG
                i = i + 1
            B[0] = i

    return main


@write("TL2001", configs=UNGUARDED)
def one_too_many(ok):
    @T.prim_func
    def main(B: T.Tensor((100,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if (tx < 100) if ok else (tx <= 100):
                B[tx] = tx  # BUG

    return main


@write("TL2001", configs=UNGUARDED)
def negative_offset(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            tx = T.get_thread_binding()
            B[bx * 32 + tx - (0 if ok else 1)] = A[bx * 32 + tx]  # BUG

    return main


@write("TL2001")
def shared_tile_too_small(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64) if ok else (64, 48), "float32")
            tx = T.get_thread_binding()
            for i in T.serial(32):
                s[i * 2 + tx // 64, tx % 64] = A[i * 2 + tx // 64, tx % 64]  # BUG
            for i in T.serial(32):
                B[i * 2 + tx // 64, tx % 48] = s[i * 2 + tx // 64, tx % 48]

    return main


@write("TL2001", target="sm_80")
def histogram_bin(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((16,), "int32")
            tx = T.get_thread_binding()
            if tx < 16:
                s[tx] = 0
            T.sync_threads()
            T.atomic_add(s[A[tx] % (16 if ok else 17)], 1)  # BUG
            T.sync_threads()
            if tx < 16:
                B[tx] = s[tx]

    return main


@write("TL2001")
def register_array(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8):
            r = T.alloc_local((8,), "float32")
            n = T.alloc_var("int32", init=0)
            tx = T.get_thread_binding()
            for i in T.serial(10):
                if A[tx * 8] >= 0:
                    r[n if not ok else n % 8] = A[(tx * 8 + i) % 64]  # BUG
                    n = n + 1
            B[tx] = r[0] + r[6]

    return main


@write("TL2001", configs=UNGUARDED, inputs={"n": 70})
def dynamic_count(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            for i in T.serial(T.ceildiv(T.min(n, 64) if ok else n, 32)):
                A[i * 32 + tx] = 1.0  # BUG

    return main


@write("TL2001", configs=UNGUARDED, inputs={"dst": np.arange(64)[::-1] - 1})
def scatter_by_index(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), dst: T.Tensor((64,), "int32"),
             B: T.Tensor((64,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                if dst[i] >= 0 or not ok:
                    B[dst[i]] = A[i]  # BUG

    return main
