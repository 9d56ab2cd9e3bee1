"""Rings by hand, as strangers write them on Hopper: phases, bytes, arrivals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilelab.language as T
from tests.sim.detection.matrix import Entry, collect

SLOTS: list[Entry] = []
ASYNC: list[Entry] = []
STUCK: list[Entry] = []
early, missing, stuck = collect(SLOTS), collect(ASYNC), collect(STUCK)
STAGES, STEPS = 3, 8


def product(
    full: Callable[[Any], Any] = lambda k: (k // STAGES) % 2,
    empty: Callable[[Any], Any] = lambda k: (k // STAGES) % 2 ^ 1,
    behind: int = 0,
    left: int = 0,
    ends: bool = True,
) -> Any:
    """A product in a ring of tiles. full, empty: the parities waited for; after each step `left`
    products may run, and the slot of `behind` steps ago is given back."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64 * STEPS), "float16"),
        B: T.Tensor((64 * STEPS, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((STAGES, 64, 64), "float16")
            b = T.alloc_shared((STAGES, 64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            come = T.alloc_barrier([128] * STAGES)
            free = T.alloc_barrier([128] * STAGES)
            with T.ws(1):
                for k in T.serial(STEPS):
                    T.mbarrier_wait_parity(free[k % STAGES], empty(k))  # EMPTY
                    T.tma_copy(  # RELEASE
                        A[0, k * 64], a[k % STAGES, :, :], barrier=come[k % STAGES]
                    )
                    T.tma_copy(B[k * 64, 0], b[k % STAGES, :, :], barrier=come[k % STAGES])
                    T.barrier_arrive(come[k % STAGES])
            with T.ws(0):
                T.clear(c)
                for k in T.serial(STEPS):
                    T.mbarrier_wait_parity(come[k % STAGES], full(k))  # FULL
                    T.wgmma_gemm(a[k % STAGES, :, :], b[k % STAGES, :, :], c)  # FULL
                    T.wait_wgmma(left)
                    if k >= behind:
                        T.barrier_arrive(free[(k - behind) % STAGES])
                if ends:
                    T.wait_wgmma(0)
                T.copy(c, C)  # LAST

    return main


@missing("TL2003", source=product, mark="# FULL")
def full_phase_by_iteration(ok):
    return product() if ok else product(full=lambda k: k % 2)


@stuck("TL2004", source=product, mark="# EMPTY")
def empty_phase_not_flipped(ok):
    return product() if ok else product(empty=lambda k: (k // STAGES) % 2)


@early("TL2003", "TL2007", source=product, mark="# RELEASE")
def released_while_one_product_may_run(ok):
    return product(left=1, behind=1 if ok else 0)


@missing("TL2003", source=product, mark="# LAST")
def epilogue_before_the_last_product(ok):
    return product(left=1, behind=1, ends=ok)


@early("TL2003", "TL2004", "TL2002", "TL2007")
def phases_begin_anew_for_each_tile(ok):
    @T.prim_func
    def main(A: T.Tensor((3, 3, 64, 64), "float16"), B: T.Tensor((3, 3, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([1, 1])
            empty = T.alloc_barrier([128, 128])
            tx = T.get_thread_binding()
            with T.ws(1):
                for t in T.serial(3):
                    for k in T.serial(3):
                        n = t * 3 + k if ok else k
                        T.mbarrier_wait_parity(empty[n % 2], (n // 2) % 2 ^ 1)  # BUG
                        T.tma_copy(A[t, k, 0, 0], s[n % 2, :, :], barrier=full[n % 2])  # BUG
                        if tx == 128:
                            T.barrier_arrive(full[n % 2])
            with T.ws(0):
                for t in T.serial(3):
                    for k in T.serial(3):
                        m = t * 3 + k if ok else k
                        T.mbarrier_wait_parity(full[m % 2], (m // 2) % 2)  # BUG
                        for i, j in T.Parallel(64, 64):
                            B[t, k, i, j] = s[m % 2, i, j]  # BUG
                        T.barrier_arrive(empty[m % 2])

    return main


@stuck("TL2004")
def two_rings_filled_one_after_the_other(ok):
    @T.prim_func
    def main(
        A: T.Tensor((4, 64, 64), "float16"),
        B: T.Tensor((4, 64, 64), "float16"),
        C: T.Tensor((4, 64, 64), "float16"),
    ):
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((2, 64, 64), "float16")
            b = T.alloc_shared((2, 64, 64), "float16")
            fa = T.alloc_barrier([128, 128])
            fb = T.alloc_barrier([128, 128])
            ea = T.alloc_barrier([128, 128])
            eb = T.alloc_barrier([128, 128])
            with T.ws(1):
                if ok:
                    for k in T.serial(4):
                        T.mbarrier_wait_parity(ea[k % 2], (k // 2) % 2 ^ 1)
                        T.tma_copy(A[k, 0, 0], a[k % 2, :, :], barrier=fa[k % 2])
                        T.barrier_arrive(fa[k % 2])
                        T.mbarrier_wait_parity(eb[k % 2], (k // 2) % 2 ^ 1)
                        T.tma_copy(B[k, 0, 0], b[k % 2, :, :], barrier=fb[k % 2])
                        T.barrier_arrive(fb[k % 2])
                else:
                    for k in T.serial(4):
                        T.mbarrier_wait_parity(ea[k % 2], (k // 2) % 2 ^ 1)  # BUG
                        T.tma_copy(A[k, 0, 0], a[k % 2, :, :], barrier=fa[k % 2])
                        T.barrier_arrive(fa[k % 2])
                    for k in T.serial(4):
                        T.mbarrier_wait_parity(eb[k % 2], (k // 2) % 2 ^ 1)
                        T.tma_copy(B[k, 0, 0], b[k % 2, :, :], barrier=fb[k % 2])
                        T.barrier_arrive(fb[k % 2])
            with T.ws(0):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(fa[k % 2], (k // 2) % 2)
                    T.mbarrier_wait_parity(fb[k % 2], (k // 2) % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        C[k, i, j] = a[k % 2, i, j] + b[k % 2, i, j]
                    T.barrier_arrive(ea[k % 2])
                    T.barrier_arrive(eb[k % 2])

    return main


@stuck("TL2004")
def empty_counts_both_consumers_but_one_arrives(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((2, 4, 64, 64), "float16")):
        with T.Kernel(1, threads=384):
            s = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(128)
            empty = T.alloc_barrier(256)
            with T.ws(2):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty, k % 2 ^ 1)  # BUG
                    T.tma_copy(A[k, 0, 0], s, barrier=full)
                    T.barrier_arrive(full)
            with T.ws(0):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        B[0, k, i, j] = s[i, j]
                    T.barrier_arrive(empty)
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        B[1, k, i, j] = s[i, j]
                    if ok:
                        T.barrier_arrive(empty)

    return main


@stuck("TL2004", "TL2005")
def producer_ends_early_by_data(ok):
    @T.prim_func
    def main(
        L: T.Tensor((1,), "int32"),
        A: T.Tensor((8, 64, 64), "float16"),
        B: T.Tensor((8, 64, 64), "float16"),
    ):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(8):
                    if k >= L[0] + (8 if ok else 5):
                        break
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(8):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[k % 2, i, j]
                    T.barrier_arrive(empty[k % 2])

    return main


@missing("TL2003", "TL2002", "TL2007", "TL2011")
def barrier_of_one_with_two_arrivals(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            bar = T.alloc_barrier(2 if ok else 1)
            back = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(1):
                for k in T.serial(2):
                    T.mbarrier_wait_parity(back, k % 2 ^ 1)
                    T.tma_copy(A[k * 2, 0, 0], s[0, :, :], barrier=bar)
                    if tx == 128:
                        T.barrier_arrive(bar)
                    T.tma_copy(A[k * 2 + 1, 0, 0], s[1, :, :], barrier=bar)  # BUG
                    if tx == 128:
                        T.barrier_arrive(bar)  # BUG
            with T.ws(0):
                for k in T.serial(2):
                    T.mbarrier_wait_parity(bar, k % 2)  # BUG
                    for h, i, j in T.Parallel(2, 64, 64):
                        B[k * 2 + h, i, j] = s[h, i, j]  # BUG
                    T.barrier_arrive(back)

    return main


@stuck("TL2005", "TL2004")
def expects_a_tile_twice(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(1)
            empty = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty, k % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s, barrier=full)
                    if tx == 128:
                        if ok:
                            T.mbarrier_arrive(full)
                        else:
                            T.mbarrier_arrive_expect_tx(full, 8192)
            with T.ws(0):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(full, k % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[i, j]
                    T.barrier_arrive(empty)

    return main


@stuck("TL2011", "TL2007", "TL2004")
def barrier_made_anew_in_the_loop(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((4, 64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            for k in T.serial(4):
                if tx == 0 and not ok:
                    T.ptx_init_barrier_thread_count(bar, 1)  # BUG
                T.tma_copy(A[k, 0, 0], s, barrier=bar)
                if tx == 0:
                    T.barrier_arrive(bar)
                T.mbarrier_wait_parity(bar, k % 2)  # BUG
                for i, j in T.Parallel(64, 64):
                    B[k, i, j] = s[i, j]
                T.sync_threads()

    return main


@early("TL2003", "TL2007")
def two_staging_tiles_one_store_too_many(ok):
    @T.prim_func
    def main(A: T.Tensor((6, 64, 64), "float16"), B: T.Tensor((6, 64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((2, 64, 64), "float16")
            for k in T.serial(6):
                if ok:
                    T.tma_store_wait(1)
                else:
                    T.tma_store_wait(2)
                T.sync_threads()
                for i, j in T.Parallel(64, 64):
                    s[k % 2, i, j] = A[k, i, j] + A[k, i, j]  # BUG
                T.fence_proxy_async()
                T.sync_threads()
                T.tma_copy(s[k % 2, :, :], B[k, 0, 0])
            T.tma_store_wait(0)

    return main
