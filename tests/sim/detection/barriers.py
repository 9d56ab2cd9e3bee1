"""Barriers that not all threads reach, and threads that wait for each other for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

STUCK: list[Entry] = []
SHARED: list[Entry] = []
bug, race = collect(STUCK), collect(SHARED)


@bug("TL2008")
def barrier_in_a_branch(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if tx < (128 if ok else 96):
                T.sync_threads()  # BUG
                B[tx] = s[127 - tx]

    return main


@bug("TL2008", target="sm_80")
def barrier_by_data(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if A[tx // 32 if not ok else 0] == 0:
                T.sync_threads()  # BUG
            B[tx] = tx

    return main


@bug("TL2008", target="sm_80")
def different_trip_counts(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            for k in T.serial(2 if ok else 1 + tx // 32):
                B[tx] = k
                T.sync_threads()  # BUG

    return main


@bug("TL2008", "TL2009")
def part_of_a_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if tx % 2 == 0 or ok:
                T.sync_threads()  # BUG
            B[tx] = A[tx]

    return main


@bug("TL2008", "TL2004")
def named_barriers_crossed(ok):
    @T.prim_func
    def main(A: T.Tensor((256,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            if tx < 128:
                T.sync_threads(1, 256)  # BUG
                T.sync_threads(2, 256)
            else:
                T.sync_threads(1 if ok else 2, 256)  # BUG
                T.sync_threads(2 if ok else 1, 256)
            B[tx] = A[tx]

    return main


@bug("TL2004")
def nobody_arrives(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            if tx < (128 if ok else 127):
                T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)  # BUG
            B[tx] = A[tx]

    return main


@bug("TL2004")
def roles_wait_for_each_other(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(128)
            empty = T.alloc_barrier(128)
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty, (k % 2 ^ 1) if ok else k % 2)  # BUG
                    T.tma_copy(A[k, 0, 0], s, barrier=full)
                    T.barrier_arrive(full)
            with T.ws(0):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[i, j]
                    T.barrier_arrive(empty)

    return main


@bug("TL2004")
def last_arrival_forgotten(ok):
    @T.prim_func
    def main(A: T.Tensor((8, 64, 64), "float16"), B: T.Tensor((8, 64, 64), "float16")):
        with T.Kernel(2, threads=256) as bx:
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)  # BUG
                    T.tma_copy(A[bx * 4 + k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        B[bx * 4 + k, i, j] = s[k % 2, i, j]
                    if ok or k != 1:
                        T.barrier_arrive(empty[k % 2])

    return main


@bug("TL2004", "TL2005")
def bytes_that_never_come(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            if tx == 0 and not ok:
                T.mbarrier_expect_tx(bar, 64)
            T.tma_copy(A[0, 0], s, barrier=bar)
            T.barrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)  # BUG
            for i, j in T.Parallel(64, 64):
                B[i, j] = s[i, j]

    return main


@bug("TL2011", "TL2004")
def arrivals_of_all_threads_at_a_barrier_of_one(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            bar = T.alloc_barrier(128 if ok else 48)
            tx = T.get_thread_binding()
            T.mbarrier_arrive(bar)  # BUG
            T.mbarrier_wait_parity(bar, 0)
            B[tx] = A[tx]

    return main


@bug("TL2011", configs=BY_HAND)
def counts_differ_where_threads_meet(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if tx < 64:
                T.sync_threads(1, 128)  # BUG
                B[tx] = s[127 - tx]
            else:
                T.sync_threads(1, 128 if ok else 64)  # BUG
                B[tx] = s[127 - tx] * 2.0

    return main


@bug("TL2011", configs=BY_HAND)
def counts_differ_and_some_wait_for_ever(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            if tx < 64:
                T.sync_threads(1, 128 if ok else 64)
                B[tx] = s[127 - tx]
            else:
                T.sync_threads(1, 128)  # BUG
                B[tx] = s[127 - tx] * 2.0

    return main


@bug("TL2011")
def count_of_the_block_for_a_half(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if tx < 64:
                T.sync_threads(1, 64)
            T.sync_threads()
            if tx >= 64:
                T.sync_threads(1, 64 if ok else 128)  # BUG
            B[tx] = A[tx]

    return main


@bug("TL2011", inputs={"N": np.array([3, 16])})
def number_of_a_barrier_out_of_data(ok):
    @T.prim_func
    def main(
        N: T.Tensor((2,), "int32"), A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")
    ):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "int32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_threads(N[0 if ok else 1], 128)  # BUG
            B[tx] = s[127 - tx]

    return main


def turns(first: bool = True, number: Callable[[Any], Any] = lambda group: 1 + group) -> Any:
    """Two groups of threads in turn, at barriers whose numbers are computed; whether the first one
    may begin, and the number of a group's barrier."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), B: T.Tensor((4, 128), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            group = tx // 128
            if first and group == 1:
                T.named_barrier_arrive(1, 256)
            for k in T.serial(2):
                T.sync_threads(number(group), 256)  # WAIT
                s[tx % 128] = A[k * 2 + group, tx % 128]  # USE
                T.sync_threads(3 + group, 128)
                B[k * 2 + group, tx % 128] = s[127 - tx % 128]  # USE
                if k == 0 or group == 0:
                    T.named_barrier_arrive(2 - group, 256)

    return main


@bug("TL2008", source=turns, mark="# WAIT", configs=BY_HAND)
def nobody_has_the_first_turn(ok):
    return turns(first=ok)


@race("TL2007", source=turns, mark="# USE", configs=BY_HAND)
def both_have_the_same_turn(ok):
    return turns() if ok else turns(number=lambda group: 5)


@race("TL2007", configs=BY_HAND)
def halves_meet_apart(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[tx]
            T.sync_threads(1 + tx // 64, 64)
            B[tx] = s[tx ^ 63 if ok else tx ^ 127]  # BUG

    return main
