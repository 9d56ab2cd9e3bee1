"""Asynchronous copies that are used before they have come, and slots that are reused too early."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

ASYNC: list[Entry] = []
SLOTS: list[Entry] = []
missing, early = collect(ASYNC), collect(SLOTS)


@missing("TL2003", target="sm_80")
def tile_by_cp_async(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            T.async_copy(A, s)
            if ok:
                T.ptx_wait_group(0)
            T.copy(s, B)  # BUG

    return main


@missing("TL2003", target="sm_80")
def one_group_too_many_left(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((2, 128), "float32")
            T.async_copy(A[0, 0], s[0, :])
            for k in T.serial(4):
                if k < 3:
                    T.async_copy(A[k + 1, 0], s[(k + 1) % 2, :])
                    T.ptx_wait_group(1 if ok else 2)
                else:
                    T.ptx_wait_group(0)
                T.sync_threads()
                for i in T.Parallel(128):
                    B[k, i] = s[k % 2, i]  # BUG
                T.sync_threads()

    return main


@missing("TL2003")
def group_never_committed(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128, 4), "float32")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx, 0], "w"), T.access_ptr(A[tx, 0]), 4)
            if ok:
                T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            for j in T.serial(4):
                B[tx, j] = s[127 - tx, j]  # BUG

    return main


@missing("TL2003", "TL2007", target="sm_80")
def waited_for_by_the_copier_alone(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128, 4), "float32")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(0):
                T.ptx_cp_async(T.access_ptr(s[tx, 0], "w"), T.access_ptr(A[tx, 0]), 4)
                T.ptx_commit_group()
                T.ptx_wait_group(0)
                T.mbarrier_arrive(bar)
            with T.ws(1):
                if ok:
                    T.mbarrier_wait_parity(bar, 0)
                for j in T.serial(4):
                    B[tx - 128, j] = s[tx - 128, j]  # BUG

    return main


@missing("TL2003")
def tma_without_a_wait(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128, 64), "float16")
            bar = T.alloc_barrier(128)
            T.tma_copy(A[0, 0], s, barrier=bar)
            T.barrier_arrive(bar)
            if ok:
                T.mbarrier_wait_parity(bar, 0)
            for i, j in T.Parallel(128, 64):
                B[i, j] = s[i, j] + s[i, j]  # BUG
            if not ok:
                T.mbarrier_wait_parity(bar, 0)

    return main


@missing("TL2003")
def wrong_parity(ok):
    @T.prim_func
    def main(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            for k in T.serial(4):
                T.tma_copy(A[k * 64, 0], s, barrier=bar)
                T.barrier_arrive(bar)
                T.mbarrier_wait_parity(bar, k % 2 if ok else (k + 1) % 2)
                for i, j in T.Parallel(64, 64):
                    B[k * 64 + i, j] = s[i, j]  # BUG
                T.sync_threads()

    return main


@missing("TL2003")
def tma_store_still_reading(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            T.copy(A, s)
            T.tma_copy(s, B)
            if ok:
                T.tma_store_wait(0)
            for i, j in T.Parallel(64, 64):
                s[i, j] = 0.0  # BUG
            if not ok:
                T.tma_store_wait(0)

    return main


@missing("TL2003")
def other_barrier_waited_for(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((2, 64, 64), "float16")
            bar = T.alloc_barrier([128, 128])
            T.tma_copy(A[0, 0], s[0, :, :], barrier=bar[0])
            T.barrier_arrive(bar[0])
            T.tma_copy(A[64, 0], s[1, :, :], barrier=bar[1])
            T.barrier_arrive(bar[1])
            T.mbarrier_wait_parity(bar[0], 0)
            for i, j in T.Parallel(64, 64):
                B[i, j] = s[0 if ok else 1, i, j]  # BUG
            T.mbarrier_wait_parity(bar[1], 0)

    return main


@missing("TL2003")
def copies_arrive_at_a_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128, 4), "float32")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx, 0], "w"), T.access_ptr(A[tx, 0]), 4)
            if ok:
                T.cp_async_barrier_noinc(bar)
            else:
                T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            for j in T.serial(4):
                B[tx, j] = s[127 - tx, j]  # BUG

    return main


# ---- slots -------------------------------------------------------------------------------------


@early("TL2003", "TL2007")
def ring_without_empty_barriers(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 64, 64), "float16"), B: T.Tensor((8, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(8):
                    if ok:
                        T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])  # BUG
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(8):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[k % 2, i, j]
                    T.barrier_arrive(empty[k % 2])

    return main


@early("TL2003", "TL2007")
def empty_announced_before_the_last_read(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 64, 64), "float16"), B: T.Tensor((6, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(6):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])  # BUG
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(6):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    if not ok:
                        T.barrier_arrive(empty[k % 2])
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[k % 2, i, j]  # BUG
                    if ok:
                        T.barrier_arrive(empty[k % 2])

    return main


@early("TL2003", "TL2007")
def parity_off_by_one_round(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 64, 64), "float16"), B: T.Tensor((8, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(8):
                    if k >= (2 if ok else 4):
                        T.mbarrier_wait_parity(empty[k % 2], (k // 2 - 1) % 2)
                    T.tma_copy(A[k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])  # BUG
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(8):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[k % 2, i, j]
                    T.barrier_arrive(empty[k % 2])

    return main


@early("TL2003", "TL2007", target="sm_80")
def cp_async_into_the_slot_in_use(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 512), "float32"), B: T.Tensor((6, 512), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((2, 512), "float32")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[0, tx * 4], "w"), T.access_ptr(A[0, tx * 4]), 4)
            T.ptx_commit_group()
            for k in T.serial(6):
                T.ptx_wait_group(0)
                T.sync_threads()
                if k < 5:
                    T.ptx_cp_async(
                        T.access_ptr(s[(k + 1) % 2 if ok else k % 2, tx * 4], "w"),
                        T.access_ptr(A[k + 1, tx * 4]),
                        4,
                    )  # BUG
                T.ptx_commit_group()
                for j in T.serial(4):
                    B[k, tx + j * 128] = s[k % 2, 511 - tx - j * 128]  # BUG

    return main


@early("TL2007", "TL2003", target="sm_80", configs=BY_HAND)
def no_barrier_before_the_slot_is_refilled(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 512), "float32"), B: T.Tensor((6, 512), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((512,), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(6):
                T.ptx_cp_async(T.access_ptr(s[tx * 4], "w"), T.access_ptr(A[k, tx * 4]), 4)  # BUG
                T.ptx_commit_group()
                T.ptx_wait_group(0)
                T.sync_threads()
                for j in T.serial(4):
                    B[k, tx + j * 128] = s[511 - tx - j * 128]
                if ok:
                    T.sync_threads()

    return main


@early("TL2003", "TL2007")
def refilled_while_a_store_reads(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            for k in T.serial(4):
                T.tma_copy(A[k, 0, 0], s, barrier=bar)  # BUG
                if tx == 0:
                    T.barrier_arrive(bar)
                T.mbarrier_wait_parity(bar, k % 2)
                T.tma_copy(s, B[k, 0, 0])
                if ok:
                    T.tma_store_wait(0)
                T.sync_threads()
            if not ok:
                T.tma_store_wait(0)

    return main


@early("TL2003", "TL2007")
def refilled_by_hand_while_wgmma_reads(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(4):
                    if ok:
                        T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.copy(A[k, 0, 0], s[k % 2, :, :])  # BUG
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                T.clear(c)
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)
                    T.gemm(s[k % 2, :, :], s[k % 2, :, :], c)
                    T.barrier_arrive(empty[k % 2])
                T.copy(c, C)

    return main
