"""Elements that are not there, or that nobody wrote, in unlike styles."""

from __future__ import annotations

import numpy as np

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, UNGUARDED, Entry, collect

BOUNDS_READ: list[Entry] = []
BOUNDS_WRITE: list[Entry] = []
UNSET: list[Entry] = []
read, write, unset = collect(BOUNDS_READ), collect(BOUNDS_WRITE), collect(UNSET)


@read("TL2001")
def shared_at_minus_one(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_threads()
            back = T.alloc_var("int32", init=1)
            B[tx] = s[T.max(tx - back, 0) if ok else tx - back]  # BUG

    return main


@read("TL2001")
def row_below_the_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float32"), B: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16, 32), "float32")
            tx = T.get_thread_binding()
            for i in T.serial(16):
                s[i, tx] = A[i, tx]
            down = T.alloc_var("int32", init=1)
            for i in T.serial(16):
                B[i, tx] = s[i, tx] + s[T.min(i + down, 15) if ok else i + down, tx]  # BUG

    return main


@read("TL2001", configs=UNGUARDED)
def column_stays_inside_the_array_but_not_the_row(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), B: T.Tensor((7, 33), "float32")):
        with T.Kernel(1, threads=33):
            tx = T.get_thread_binding()
            for i in T.serial(7):
                B[i, tx] = A[i, tx % 32 if ok else tx]  # BUG

    return main


@read("TL2001", configs=UNGUARDED, inputs={"off": np.arange(9) * 10})
def ragged_segments(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), off: T.Tensor((9,), "int32"),
             B: T.Tensor((8,), "float32")):  # fmt: skip
        with T.Kernel(8, threads=1) as bx:
            acc = T.alloc_var("float32", init=0.0)
            for k in T.serial(off[bx + 1] - off[bx]):
                i = off[bx] + k
                if i < 64 or not ok:
                    acc += A[i]  # BUG
            B[bx] = acc

    return main


@write("TL2001")
def histogram_of_negatives(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((8,), "int32")
            tx = T.get_thread_binding()
            if tx < 8:
                s[tx] = 0
            T.sync_threads()
            T.atomic_add(s[(A[tx] - 32) & 7 if ok else A[tx] // 8 - 1], 1)  # BUG
            T.sync_threads()
            if tx < 8:
                B[tx] = s[tx]

    return main


@write("TL2001", configs=UNGUARDED)
def last_block_writes_a_whole_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((70,), "float32"), B: T.Tensor((70,), "float32")):
        with T.Kernel(3, threads=32) as bx:
            tx = T.get_thread_binding()
            i = bx * 32 + tx
            if i < 70 or not ok:
                B[i] = 1.0  # BUG

    return main


@write("TL2001")
def ring_index_not_wrapped(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 64), "float32"), B: T.Tensor((6, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((3, 64), "float32")
            tx = T.get_thread_binding()
            slot = T.alloc_var("int32", init=0)
            for k in T.serial(6):
                s[slot, tx] = A[k, tx]  # BUG
                B[k, tx] = s[k % 3, tx]
                slot = (slot + 1) % 3 if ok else slot + 1

    return main


@unset("TL2002")
def tail_of_a_fragment(ok):
    @T.prim_func
    def main(A: T.Tensor((100,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((128,), "float32")
            total = T.alloc_fragment((1,), "float32")
            if ok:
                T.clear(f)
            for i in T.Parallel(128):
                if i < 100:
                    f[i] = A[i]
            T.reduce_sum(f, total)  # BUG
            T.copy(total, B)

    return main


@unset("TL2002", target="sm_80")
def columns_of_a_shared_tile_left_out(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 48), "float16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            if ok:
                T.clear(s)
            for i, j in T.Parallel(64, 48):
                s[i, j] = A[i, j]
            T.clear(c)
            T.gemm(s, s, c)  # BUG
            T.copy(c, B)

    return main


@unset("TL2002")
def slot_that_the_first_round_skips(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((2, 64), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(4):
                s[k % 2, tx] = A[k, tx]
                T.sync_threads()
                if k > 0 or not ok:
                    B[k, tx] = s[k % 2, tx] - s[(k + 1) % 2, tx]  # BUG
                T.sync_threads()

    return main


@unset("TL2002")
def maximum_that_only_some_threads_start(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            m = T.alloc_local((1,), "float32")
            tx = T.get_thread_binding()
            if tx < (64 if ok else 63):
                m[0] = -1e30
            for k in T.serial(4):
                m[0] = T.max(m[0], A[k, tx])  # BUG
            B[tx] = m[0]

    return main


@unset("TL2002", configs=BY_HAND)
def partial_sums_of_fewer_warps(ok):
    @T.prim_func
    def main(A: T.Tensor((96,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=96):
            s = T.alloc_shared((4,), "float32")
            tx = T.get_thread_binding()
            part = T.warp_reduce_sum(A[tx])
            if tx % 32 == 0:
                s[tx // 32] = part
            T.sync_threads()
            if tx == 0:
                B[0] = s[0] + s[1] + s[2] + (0.0 if ok else s[3])  # BUG

    return main


@unset("TL2002", out_idx=[1])
def output_added_to_by_atomics(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if ok:
                if tx == 0:
                    B[0] = 0.0
                T.sync_threads()
            T.atomic_add(B[0], A[tx])  # BUG

    return main


@unset("TL2002")
def running_scale_of_the_first_step(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            top = T.alloc_fragment((64,), "float32")
            old = T.alloc_fragment((64,), "float32")
            if ok:
                T.fill(top, -1e30)
            for k in T.serial(4):
                for i in T.Parallel(64):
                    old[i] = top[i]  # BUG
                    top[i] = T.max(top[i], A[k, i])  # BUG
            for i in T.Parallel(64):
                B[i] = top[i] + old[i]

    return main
