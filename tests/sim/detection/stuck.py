"""Barriers that not all reach and waits without end, in unlike styles: loops, early ends, bytes,
collectives in divergent code."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import Entry, collect

STUCK: list[Entry] = []
bug = collect(STUCK)


@bug("TL2008", "TL2009")
def barrier_in_a_while_by_thread(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            while n < (3 if ok else 1 + tx // 32):
                T.sync_threads()  # BUG
                n = n + 1
            B[tx] = A[tx] + n

    return main


@bug("TL2008", "TL2009")
def some_leave_the_loop_early(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            for k in T.serial(4):
                if k == 2 and (tx >= 32 or ok):
                    T.loop_break()
                T.sync_threads()  # BUG
            B[tx] = A[tx]

    return main


@bug("TL2008", "TL2009", target="sm_80")
def barrier_skipped_by_continue(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            for k in T.serial(4):
                if A[tx] % 2 == 1 and k == 1 and not ok:
                    T.continue_loop()
                T.sync_threads()  # BUG
            B[tx] = A[tx]

    return main


@bug("TL2009")
def shuffle_in_half_a_warp(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = 0
            if tx < (64 if ok else 48):
                B[tx] = T.shfl_down(A[tx], 1)  # BUG

    return main


@bug("TL2009")
def shuffle_by_data(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            x = T.alloc_var("int32", init=0)
            x = A[tx]
            for k in T.serial(3):
                if x > 5 or ok:
                    x = x + T.shfl_xor(x, 1)  # BUG
            B[tx] = x

    return main


@bug("TL2009")
def vote_in_a_loop_of_unequal_length(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            for k in T.serial(4 if ok else tx % 4):
                if T.any_sync(A[tx] > k):  # BUG
                    n = n + 1
            B[tx] = n

    return main


@bug("TL2004", "TL2005")
def too_many_bytes_expected(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            T.tma_copy(A[0, 0], s, barrier=bar)
            if tx == 0:
                T.mbarrier_arrive_expect_tx(bar, 0 if ok else 64 * 64 * 2)
            T.mbarrier_wait_parity(bar, 0)  # BUG
            for i in T.serial(32):
                B[i * 2 + tx // 64, tx % 64] = s[i * 2 + tx // 64, tx % 64]

    return main


@bug("TL2004")
def consumer_waits_for_one_round_too_many(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((5, 64, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 64), "float16")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            with T.ws(1):
                for k in T.serial(4):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2) % 2 ^ 1)
                    T.tma_copy(A[k, 0, 0], s[k % 2, :, :], barrier=full[k % 2])
                    T.barrier_arrive(full[k % 2])
            with T.ws(0):
                for k in T.serial(4 if ok else 5):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2) % 2)  # BUG
                    for i, j in T.Parallel(64, 64):
                        B[k, i, j] = s[k % 2, i, j]
                    T.barrier_arrive(empty[k % 2])

    return main


@bug("TL2004", "TL2008")
def named_barrier_counts_too_many(ok):
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            with T.ws(0):
                T.sync_threads(1, 128 if ok else 160)  # BUG
                B[tx] = A[tx]
            with T.ws(1):
                B[tx] = A[tx]

    return main


@bug("TL2004")
def arrivals_counted_by_warps_not_threads(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            bar = T.alloc_barrier(4 if ok else 128)
            tx = T.get_thread_binding()
            with T.ws(0):
                if tx % 32 == 0:
                    T.mbarrier_arrive(bar)
            with T.ws(1):
                T.mbarrier_wait_parity(bar, 0)  # BUG
                B[tx - 128] = A[tx - 128]

    return main


@bug("TL2011")
def barrier_of_half_the_threads(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            bar = T.alloc_barrier(128 if ok else 100)
            tx = T.get_thread_binding()
            for k in T.serial(2):
                T.mbarrier_arrive(bar)  # BUG
                T.mbarrier_wait_parity(bar, k)
            B[tx] = A[tx]

    return main


@bug("TL2008")
def last_block_skips_its_barrier(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64) as bx:
            s = T.alloc_shared((64,), "float32")
            tx = T.get_thread_binding()
            s[tx] = A[bx, tx]
            if bx < 3 or tx < (64 if ok else 32):
                T.sync_threads()  # BUG
            if bx < 3:
                B[bx, tx] = s[63 - tx]

    return main


@bug("TL2008", "TL2004")
def parity_waited_for_never_comes(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=256):
            go = T.alloc_barrier(128)
            back = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(0):
                for k in T.serial(3):
                    T.mbarrier_arrive(go)
                    T.mbarrier_wait_parity(back, k % 2)  # BUG
            with T.ws(1):
                for k in T.serial(3 if ok else 2):
                    T.mbarrier_wait_parity(go, k % 2)
                    T.mbarrier_arrive(back)
                B[tx - 128] = A[tx - 128]

    return main


@bug("TL2010")
def loop_that_waits_for_itself(ok):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            m = T.alloc_var("int32", init=0)
            while n < 4:  # BUG
                m = m + 1
                if ok:
                    n = n + 1
            B[tx] = A[tx] + m

    return main


@bug("TL2011")
def roles_meet_at_one_named_barrier_by_mistake(ok):
    other = 2 if ok else 1

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((256,), "float32")
            tx = T.get_thread_binding()
            if tx < 128:
                s[tx] = A[tx]
                T.sync_threads(1, 128)  # BUG
                B[tx] = s[127 - tx]
            else:
                s[tx] = A[tx]
                T.sync_threads(other, 128)  # BUG
                B[tx] = s[383 - tx]

    return main


@bug("TL2004")
def more_registers_than_are_given_back(ok):
    @T.prim_func
    def main(A: T.Tensor((384,), "float32"), B: T.Tensor((384,), "float32")):
        with T.Kernel(1, threads=384):
            tx = T.get_thread_binding()
            with T.ws(0, 1):
                T.set_max_nreg(208 if ok else 224, 1)  # BUG
                B[tx] = A[tx]
            with T.ws(2):
                T.set_max_nreg(80, 0)
                B[tx] = A[tx] + 1.0

    return main


@bug("TL2004")
def nobody_gives_registers_back(ok):
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            T.annotate_min_blocks_per_sm(2)
            with T.ws(0):
                T.set_max_nreg(168, 1)  # BUG
                B[tx] = A[tx]
            with T.ws(1):
                if ok:
                    T.set_max_nreg(40, 0)
                B[tx] = A[tx] + 1.0

    return main


@bug("TL2004")
def registers_wait_for_who_waits(ok):
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            T.annotate_min_blocks_per_sm(2)
            done = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(0):
                T.set_max_nreg(200, 1)  # BUG
                T.mbarrier_arrive(done)
                B[tx] = A[tx]
            with T.ws(1):
                if ok:
                    T.set_max_nreg(56, 0)
                T.mbarrier_wait_parity(done, 0)
                if not ok:
                    T.set_max_nreg(56, 0)
                B[tx] = A[tx] + 1.0

    return main


@bug("TL2010")
def bisection_that_stays(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(2, threads=32):
            tx = T.get_thread_binding()
            low = T.alloc_var("int32", init=0)
            high = T.alloc_var("int32", init=64)
            while low < high:  # BUG
                middle = (low + high) // 2
                if A[middle] < 20.0:
                    low = middle + (1 if ok else 0)
                else:
                    high = middle
            B[tx] = low

    return main


@bug("TL2010", target="sm_80")
def walk_in_a_circle(ok):
    step = 3 if ok else 4

    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            at = T.alloc_var("int32", init=0)
            at = tx * 2
            while at != 1:  # BUG
                at = (at + step) % 32
            B[tx] = A[tx] + at

    return main
