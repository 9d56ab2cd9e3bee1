"""Lanes and warps that act for others: at barriers, locks and copies."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

SHARED: list[Entry] = []
GLOBAL: list[Entry] = []
STUCK: list[Entry] = []
ASYNC: list[Entry] = []
SLOTS: list[Entry] = []
shared, between, stuck, missing, early = (
    collect(SHARED), collect(GLOBAL), collect(STUCK), collect(ASYNC), collect(SLOTS)
)  # fmt: skip


@shared("TL2007", configs=BY_HAND)
def one_lane_arrives_for_its_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32,), "float32")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if tx < 32:
                s[tx] = A[tx]
                if ok:
                    T.sync_warp()
                if tx == 0:
                    T.mbarrier_arrive(bar)
            else:
                T.mbarrier_wait_parity(bar, 0)
                B[tx - 32] = s[63 - tx]  # BUG

    return main


@shared("TL2007", configs=BY_HAND)
def lane_writes_after_the_warp_has_met(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((33,), "float32")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if tx < 32:
                s[tx] = A[tx]
                if not ok:
                    T.sync_warp()
                if tx == 7:
                    s[32] = A[40]
                if ok:
                    T.sync_warp()
                if tx == 0:
                    T.mbarrier_arrive(bar)
            else:
                T.mbarrier_wait_parity(bar, 0)
                B[tx - 32] = s[63 - tx] + s[32]  # BUG

    return main


@shared("TL2007", "TL2002", configs=BY_HAND)
def arrivals_read_the_slot_of_the_last_round(ok):
    # named_barrier_arrive gives the arriver nothing: only the waiters know

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((256,), "float32")
            tx = T.get_thread_binding()
            with T.ws(0):
                s[tx] = A[tx]
                T.sync_threads(1, 256)
                B[tx] = s[tx + 128]
            with T.ws(1):
                s[tx] = A[tx - 128]
                if ok:
                    T.sync_threads(1, 256)
                else:
                    T.named_barrier_arrive(1, 256)
                B[tx] = s[255 - tx]  # BUG

    return main


@shared("TL2007", "TL2002", configs=BY_HAND)
def arriver_writes_on_before_the_barrier_passes(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            with T.ws(0):
                if ok:
                    s[tx] = A[tx]
                T.named_barrier_arrive(1, 256)
                if not ok:
                    s[tx] = A[tx]  # BUG
            with T.ws(1):
                T.sync_threads(1, 256)
                B[tx - 128] = s[255 - tx]  # BUG

    return main


@shared("TL2007", "TL2002", configs=BY_HAND)
def reader_arrives_and_writer_waits(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            with T.ws(0):
                s[tx] = A[tx]
                if ok:
                    T.named_barrier_arrive(1, 256)
                else:
                    T.sync_threads(1, 256)
            with T.ws(1):
                if ok:
                    T.sync_threads(1, 256)
                else:
                    T.named_barrier_arrive(1, 256)
                B[tx - 128] = s[255 - tx]  # BUG

    return main


@between("TL2007", inputs={"L": 0, "B": 0})
def lock_of_warps_given_back_too_early(ok):
    @T.prim_func
    def main(L: T.Tensor((1,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if tx % 32 == 0:
                while T.atomic_max(L[0], 1, "acquire", return_prev=True) != 0:
                    T.evaluate(0)
                if not ok:
                    T.atomic_store(L[0], 0, memory_order="release")
                B[0] = B[0] + 1  # BUG
                if ok:
                    T.atomic_store(L[0], 0, memory_order="release")

    return main


@between("TL2007", inputs={"L": 0, "B": 0})
def lock_of_lanes_given_back_too_early(ok):
    @T.prim_func
    def main(L: T.Tensor((1,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(2, threads=3):
            while T.atomic_max(L[0], 1, "acquire", return_prev=True) != 0:
                T.evaluate(0)
            if not ok:
                T.atomic_store(L[0], 0, memory_order="release")
            B[0] = B[0] + 1  # BUG
            if ok:
                T.atomic_store(L[0], 0, memory_order="release")

    return main


@shared("TL2007", inputs={"F": 0}, configs=BY_HAND)
def lanes_hand_over_by_relaxed_flags(ok):
    order = "release" if ok else "relaxed"

    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), F: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "int32")
            tx = T.get_thread_binding()
            go = T.alloc_var("int32", init=1)
            while go == 1:
                if tx == 0 or T.atomic_load(F[tx], memory_order="acquire") == 1:
                    if tx == 0:
                        s[0] = A[0]
                    else:
                        s[tx] = s[tx - 1] + A[tx]  # BUG
                    if tx < 31:
                        T.atomic_store(F[tx + 1], 1, memory_order=order)
                    go = 0
            B[tx] = s[tx]

    return main


@stuck("TL2010", inputs={"L": 0, "B": 0})
def lock_of_warps_never_given_back(ok):
    @T.prim_func
    def main(L: T.Tensor((1,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if tx % 32 == 0:
                while T.atomic_max(L[0], 1, "acquire", return_prev=True) != 0:  # BUG
                    T.evaluate(0)
                B[0] = B[0] + 1
                if ok or tx != 64:
                    T.atomic_store(L[0], 0, memory_order="release")

    return main


@early("TL2007", "TL2003", configs=BY_HAND)
def slot_released_by_one_lane_while_others_read(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32,), "float32")
            full = T.alloc_barrier(32)
            empty = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if tx < 32:
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty, k % 2 ^ 1)
                    s[tx] = A[k, tx]  # BUG
                    T.mbarrier_arrive(full)
            else:
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)
                    B[k, tx - 32] = s[63 - tx]  # BUG
                    if ok:
                        T.sync_warp()
                    if tx == 32:
                        T.mbarrier_arrive(empty)

    return main


@early("TL2007", "TL2003", configs=BY_HAND)
def tma_refill_by_a_lane_whose_neighbours_read(ok):
    @T.prim_func
    def main(A: T.Tensor((3, 32, 64), "float16"), B: T.Tensor((3, 32, 64), "float16")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            for k in T.serial(3):
                T.tma_copy(A[k, 0, 0], s, barrier=bar)  # BUG
                if tx == 0:
                    T.mbarrier_arrive(bar)
                T.mbarrier_wait_parity(bar, k % 2)
                for i in T.serial(64):
                    B[k, tx, i] = s[tx, i]
                if ok:
                    T.sync_warp()

    return main


@early("TL2003", "TL2007")
def atomics_onto_a_tile_a_store_reads(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding()
            T.copy(A, s)
            T.tma_copy(s, B)
            if ok:
                T.tma_store_wait(0)
            T.sync_threads()
            T.atomic_add(s[tx % 64, 0], 1.0)  # BUG
            T.tma_store_wait(0)

    return main


@shared("TL2007", "TL2002", configs=BY_HAND)
def one_lane_waits_for_its_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32,), "float32")
            bar = T.alloc_barrier(32)
            tx = T.get_thread_binding()
            if tx < 32:
                s[tx] = A[tx]
                T.mbarrier_arrive(bar)
            else:
                if tx == 32:
                    T.mbarrier_wait_parity(bar, 0)
                if ok:
                    T.sync_warp()
                B[tx - 32] = s[63 - tx]  # BUG

    return main


@missing("TL2003", "TL2007", configs=BY_HAND)
def one_lane_of_each_warp_waits_for_the_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((3, 64, 64), "float16"), B: T.Tensor((3, 64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            for k in T.serial(3):
                T.tma_copy(A[k, 0, 0], s, barrier=bar)
                if tx == 0:
                    T.mbarrier_arrive(bar)
                if tx % 32 == 0:
                    T.mbarrier_wait_parity(bar, k % 2)
                if ok:
                    T.sync_warp()
                for i in T.serial(32):
                    B[k, i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]  # BUG
                T.sync_threads()

    return main


@missing("TL2011", "TL2003", "TL2007")
def two_loads_one_arrival_between(ok):
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        V: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((64, 64), "float16")
            v = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            bar = T.alloc_barrier(128)
            with T.ws(1):
                T.tma_copy(A, a, barrier=bar)
                if not ok:
                    T.barrier_arrive(bar)
                T.tma_copy(V, v, barrier=bar)  # BUG
                if ok:
                    T.barrier_arrive(bar)
            with T.ws(0):
                T.mbarrier_wait_parity(bar, 0)
                T.clear(c)
                T.gemm(a, v, c)  # BUG
                T.copy(c, C)

    return main
