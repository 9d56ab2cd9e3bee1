"""Slots of a ring, and tiles, that are used again too early, in unlike styles."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

SLOTS: list[Entry] = []
early = collect(SLOTS)


@early("TL2003", "TL2007")
def released_twice_a_round(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 64, 64), "float16"), B: T.Tensor((8, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(8):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])  # BUG
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(8):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    if not ok:
                        T.barrier_arrive(empty[(k + 1) % 2])
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[k % 2, i, j]
                    if ok or k == 0:
                        T.barrier_arrive(empty[k % 2])

    return main


@early("TL2003", "TL2007")
def wrong_slot_released(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 64, 64), "float16"), B: T.Tensor((6, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((3, 64, 64), "float16")
            full = T.alloc_barrier([128, 128, 128])
            empty = T.alloc_barrier([128, 128, 128])
            with T.ws(1):
                for k in T.serial(6):
                    T.mbarrier_wait_parity(empty[k % 3], (k // 3) % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s[k % 3, :, :], barrier=full[k % 3])  # BUG
                    T.barrier_arrive(full[k % 3])
            with T.ws(0):
                for k in T.serial(6):
                    T.mbarrier_wait_parity(full[k % 3], (k // 3) % 2)
                    if not ok:
                        T.barrier_arrive(empty[(k + 1) % 3])
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[k % 3, i, j]  # BUG
                    if ok:
                        T.barrier_arrive(empty[k % 3])

    return main


@early("TL2003", "TL2007")
def half_of_the_readers_release(ok):
    count = 256 if ok else 128

    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((2, 4, 64, 64), "float16")):
        with T.Kernel(1, threads=384):
            s = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(128)
            empty = T.alloc_barrier(count)
            tx = T.get_thread_binding()
            with T.ws(2):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty, k % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s, barrier=full)  # BUG
                    T.barrier_arrive(full)
            with T.ws(0):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)
                    for i in T.serial(32):
                        B[0, k, i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]  # BUG
                    T.barrier_arrive(empty)
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)
                    for i in T.serial(32):
                        B[1, k, i * 2 + tx // 64 - 2, tx % 64] = s[
                            i * 2 + tx // 64 - 2, tx % 64
                        ]  # BUG
                    if ok:
                        T.barrier_arrive(empty)

    return main


@early("TL2003", "TL2007")
def released_before_the_product_has_read(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])  # BUG
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                T.clear(c)
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    T.gemm(s[k % 2, :, :], s[k % 2, :, :], c, wg_wait=-1)  # BUG
                    if ok:
                        T.wait_wgmma(0)
                    T.barrier_arrive(empty[k % 2])
                T.wait_wgmma(0)
                T.copy(c, C)

    return main


@early("TL2003", "TL2007")
def staging_tile_rewritten_in_a_loop(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            tx = T.get_thread_binding()
            for k in T.serial(4):
                for i in T.serial(32):
                    s[i * 2 + tx // 64, tx % 64] = A[k, i * 2 + tx // 64, tx % 64]  # BUG
                T.fence_proxy_async()
                T.sync_threads()
                T.tma_copy(s, B[k, 0, 0])
                if ok:
                    T.tma_store_wait(0)
                    T.sync_threads()
            T.tma_store_wait(0)

    return main


@early("TL2007", configs=BY_HAND)
def double_buffer_with_one_barrier_too_few(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 128), "float32"), B: T.Tensor((8, 128), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((2, 128), "float32")
            tx = T.get_thread_binding()
            s[0, tx] = A[0, tx]
            T.sync_threads()
            for k in T.serial(8):
                if k < 7:
                    s[(k + 1) % 2, tx] = A[k + 1, tx]  # BUG
                B[k, tx] = s[k % 2, 127 - tx]  # BUG
                if ok or k % 2 == 0:
                    T.sync_threads()

    return main
