"""Races in global memory in unlike styles: atomics beside plain accesses, warps and lanes of one
block, TMA beside threads, flags."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

GLOBAL: list[Entry] = []
blocks = collect(GLOBAL)


@blocks("TL2007")
def first_block_clears_for_all(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            if bx == 0 and not ok:
                B[tx] = 0.0  # BUG
            T.atomic_add(B[tx], A[bx, tx])  # BUG

    return main


@blocks("TL2007", target="sm_80")
def read_beside_atomics(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "int32"), N: T.Tensor((4,), "int32"),
             B: T.Tensor((4, 64), "int32")):  # fmt: skip
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            T.atomic_add(N[bx if ok else 0], A[bx, tx])  # BUG
            if not ok:
                B[bx, tx] = N[0]  # BUG

    return main


@blocks("TL2007")
def maximum_by_reading_first(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 32), "int32"), M: T.Tensor((32,), "int32")):
        with T.Kernel(8, threads=32) as bx:
            tx = T.get_thread_binding()
            if ok:
                T.atomic_max(M[tx], A[bx, tx])
            else:
                if A[bx, tx] > M[tx]:  # BUG
                    M[tx] = A[bx, tx]  # BUG

    return main


@blocks("TL2007", configs=BY_HAND)
def staged_through_global_without_a_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), W: T.Tensor((128,), "float32"),
             B: T.Tensor((128,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            W[tx] = A[tx]
            if ok:
                T.sync_threads()
            B[tx] = W[127 - tx]  # BUG

    return main


@blocks("TL2007", configs=BY_HAND)
def staged_through_global_in_one_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), W: T.Tensor((32,), "float32"),
             B: T.Tensor((32,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            W[tx] = A[tx]
            if ok:
                T.sync_warp()
            B[tx] = W[31 - tx]  # BUG

    return main


@blocks("TL2007")
def grid_one_too_large(ok):
    @T.prim_func
    def main(A: T.Tensor((96,), "float32"), B: T.Tensor((96,), "float32")):
        with T.Kernel(3 if ok else 4, threads=32) as bx:
            tx = T.get_thread_binding()
            i = (bx * 32 + tx) % 96
            B[i] = A[i] + bx  # BUG

    return main


@blocks("TL2007")
def rows_of_a_fragment_overlap(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            f = T.alloc_fragment((32, 64), "float16")
            T.copy(A[bx * 32, 0], f)
            for i, j in T.Parallel(32, 64):
                B[bx * (32 if ok else 31) + i, j] = f[i, j]  # BUG

    return main


@blocks("TL2007")
def tile_loaded_while_another_block_stores(ok):
    @T.prim_func
    def main(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            f = T.alloc_fragment((64, 64), "float16")
            T.copy((A if ok else B)[(bx + 1) % 4 * 64, 0], s)  # BUG
            T.copy(s, f)
            T.copy(f, B[bx * 64, 0])  # BUG

    return main


@blocks("TL2007")
def neighbours_relax_in_place(ok):
    @T.prim_func
    def main(A: T.Tensor((2, 130), "float32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            i = bx * 64 + tx + 1
            A[1 if ok else 0, i] = (A[0, i - 1] + A[0, i + 1]) * 0.5  # BUG

    return main


@blocks("TL2007")
def two_dimensional_grid_forgets_an_axis(ok):
    @T.prim_func
    def main(A: T.Tensor((2, 2, 32), "float32"), B: T.Tensor((2, 2, 32), "float32")):
        with T.Kernel(2, 2, threads=32) as (bx, by):
            tx = T.get_thread_binding()
            B[by, bx if ok else 0, tx] = A[by, bx, tx] + bx  # BUG

    return main


@blocks("TL2007", target="sm_80")
def ticket_then_unordered_result(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 32), "float32"), N: T.Tensor((1,), "int32"),
             B: T.Tensor((4, 32), "float32")):  # fmt: skip
        with T.Kernel(4, threads=32) as bx:
            tx = T.get_thread_binding()
            if tx == 0:
                T.atomic_add(N[0], 1, return_prev=True)
            B[bx if ok else 0, tx] = A[bx, tx] + bx  # BUG

    return main


@blocks("TL2007", configs=BY_HAND)
def tma_reads_what_threads_just_wrote(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"),
             B: T.Tensor((64, 64), "float16")):  # fmt: skip
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            for i in T.serial(32):
                W[i * 2 + tx // 64, tx % 64] = A[i * 2 + tx // 64, tx % 64]
            T.sync_threads()
            T.tma_copy((A if ok else W)[0, 0], s, barrier=bar)  # BUG
            T.barrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            for i in T.serial(32):
                B[i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]

    return main


@blocks("TL2007", "TL2003", configs=BY_HAND)
def threads_read_what_tma_still_stores(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), W: T.Tensor((64, 64), "float16"),
             B: T.Tensor((64, 64), "float16")):  # fmt: skip
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            tx = T.get_thread_binding()
            for i in T.serial(32):
                s[i * 2 + tx // 64, tx % 64] = A[i * 2 + tx // 64, tx % 64]
            T.fence_proxy_async()
            T.sync_threads()
            T.tma_copy(s, W[0, 0])
            T.tma_store_wait(0, read=not ok)
            T.sync_threads()
            for i in T.serial(32):
                B[i * 2 + tx // 64, tx % 64] = W[i * 2 + tx // 64, tx % 64]  # BUG

    return main
