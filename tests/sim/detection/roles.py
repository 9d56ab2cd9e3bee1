"""Roles by hand: hand-overs by named barriers, registers, products and stores in flight."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import Entry, collect

ASYNC: list[Entry] = []
STUCK: list[Entry] = []
missing, stuck = collect(ASYNC), collect(STUCK)


@missing("TL2002", "TL2003", "TL2007")
def operand_written_by_threads_into_wgmma(ok):
    @T.prim_func
    def main(A: T.Tensor((2, 64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128, 128])
            tx = T.get_thread_binding()
            with T.ws(1):
                for k in T.serial(2):
                    for i in T.serial(32):
                        s[k, i * 2 + (tx - 128) // 64, tx % 64] = A[
                            k, i * 2 + (tx - 128) // 64, tx % 64
                        ]
                    T.fence_proxy_async()
                    T.barrier_arrive(full[k])
            with T.ws(0):
                T.clear(c)
                for k in T.serial(2):
                    if ok or k == 0:
                        T.mbarrier_wait_parity(full[k], 0)
                    T.gemm(s[k, :, :], s[k, :, :], c)  # BUG
                T.copy(c, C)

    return main


@stuck("TL2004", "TL2011", "TL2008")
def ping_pong_without_the_first_arrival(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            with T.ws(0):
                for k in T.serial(2):
                    T.sync_threads(1, 256)  # BUG
                    s[tx] = A[k * 2, tx]
                    T.sync_threads(3, 128)
                    B[k * 2, tx] = s[127 - tx]
                    T.named_barrier_arrive(2, 256)
            with T.ws(1):
                if ok:
                    T.named_barrier_arrive(1, 256)
                for k in T.serial(2):
                    T.sync_threads(2, 256)  # BUG
                    s[tx - 128] = A[k * 2 + 1, tx - 128]
                    T.sync_threads(4, 128)
                    B[k * 2 + 1, tx - 128] = s[255 - tx]
                    if k == 0:
                        T.named_barrier_arrive(1, 256)

    return main


@stuck("TL2007", "TL2011", "TL2004")
def named_barrier_counts_the_waiters_only(ok):
    n = 256 if ok else 128

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            with T.ws(0):
                s[tx] = A[tx]
                T.named_barrier_arrive(1, n)  # BUG
            with T.ws(1):
                T.sync_threads(1, n)  # BUG
                B[tx - 128] = s[255 - tx]  # BUG

    return main


@stuck("TL2008", "TL2004")
def block_barrier_in_one_role(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            if tx < 128:
                s[tx] = A[tx]
                if ok:
                    T.sync_threads(1, 128)
                else:
                    T.sync_threads()  # BUG
                B[tx] = s[127 - tx]

    return main


@stuck("TL2004")
def three_consumers_raise_too_far(ok):
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=512):
            tx = T.get_thread_binding()
            with T.ws(0, 1, 2):
                T.set_max_nreg(160 if ok else 168, 1)  # BUG
                B[tx] = A[tx]
            with T.ws(3):
                T.set_max_nreg(32, 0)
                B[tx] = A[tx]

    return main


@stuck("TL2004")
def producer_lowers_after_its_loop(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            T.annotate_min_blocks_per_sm(2)
            s = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(128)
            empty = T.alloc_barrier(128)
            with T.ws(1):
                if ok:
                    T.set_max_nreg(40, 0)
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty, k % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s, barrier=full)
                    T.barrier_arrive(full)
                if not ok:
                    T.set_max_nreg(40, 0)
            with T.ws(0):
                T.set_max_nreg(208, 1)  # BUG
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[i, j]
                    T.barrier_arrive(empty)

    return main


@stuck("TL2004")
def asynchronous_arrivals_of_half_the_threads(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 4), "float32"), B: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 4), "float32")
            bar = T.alloc_barrier(64 if ok else 128)
            tx = T.get_thread_binding()
            if tx < 64:
                T.ptx_cp_async(T.access_ptr(s[tx, 0], "w"), T.access_ptr(A[tx, 0]), 4)
                T.cp_async_barrier_noinc(bar)
            T.mbarrier_wait_parity(bar, 0)  # BUG
            if tx < 64:
                for j in T.serial(4):
                    B[tx, j] = s[63 - tx, j]

    return main


@missing("TL2003")
def cleared_for_the_next_tile_in_flight(ok):
    @T.prim_func
    def main(A: T.Tensor((2, 64, 64), "float16"), C: T.Tensor((2, 64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            for t in T.serial(2):
                T.copy(A[t, 0, 0], a)
                T.clear(c)  # BUG
                T.wgmma_gemm(a, a, c)
                if ok:
                    T.wait_wgmma(0)
                T.copy(c, C[t, 0, 0])  # BUG
                T.wait_wgmma(0)

    return main


@missing("TL2003")
def loaded_back_before_the_store_is_complete(ok):
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        W: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            t = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            T.copy(A, s)
            T.tma_copy(s, W)
            if ok:
                T.tma_store_wait(0, read=False)
            else:
                T.tma_store_wait(0)
            T.sync_threads()
            T.tma_copy(W, t, barrier=bar)  # BUG
            T.barrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            T.copy(t, B)

    return main
