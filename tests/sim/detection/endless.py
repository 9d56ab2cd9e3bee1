"""While loops without an end, by state: with barriers, copies, products, breaks, roles in them."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import Entry, collect

ENDLESS: list[Entry] = []
bug = collect(ENDLESS)


@bug("TL2010")
def barrier_in_a_loop_that_goes_in_a_circle(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            while n < 4:  # BUG
                T.sync_threads()
                n = (n + 1) % (8 if ok else 3)
            B[tx] = A[tx]

    return main


@bug("TL2010")
def only_a_counter_that_nobody_asks_moves(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            m = T.alloc_var("int32", init=0)
            while n < 100_000:  # BUG
                m = m + 1
                n = (n + 1000) % (100_001 if ok else 100_000)
            B[tx] = A[tx] + m

    return main


@bug("TL2010")
def break_that_no_iteration_reaches(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            m = T.alloc_var("int32", init=0)
            while m >= 0:  # BUG
                n = n + 1
                m = n % 8
                if m == (7 if ok else 8):
                    T.loop_break()
                T.sync_threads()
            B[tx] = A[tx] + n

    return main


@bug("TL2010")
def continue_that_leaves_out_the_step(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            m = T.alloc_var("int32", init=0)
            while n < 200:  # BUG
                m = m + 1
                if ok:
                    n = n + 1
                if n % 3 == 0:
                    T.continue_loop()
                n = n + 1
            B[tx] = A[tx] + m

    return main


@bug("TL2010")
def copies_by_tma_that_never_stop(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            k = T.alloc_var("int32", init=0)
            while k < 4:  # BUG
                T.copy(A[k, :, :], s)
                for i, j in T.Parallel(64, 64):
                    B[i, j] = s[i, j]
                k = (k + 1) % (5 if ok else 4)

    return main


@bug("TL2010", target="sm_80")
def copies_whose_value_ends_the_loop(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            k = T.alloc_var("int32", init=0)
            m = T.alloc_var("int32", init=0)
            while m < (90 if ok else 97):  # BUG
                T.copy(A[k, :], s)
                m = s[60]
                k = (k + 1) % 4
                T.sync_threads()
            B[tx] = k

    return main


@bug("TL2010")
def products_until_a_number_comes(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            k = T.alloc_var("int32", init=0)
            T.copy(A, s)
            T.clear(acc)
            while k != 3:  # BUG
                T.gemm(s, s, acc)
                k = (k + (1 if ok else 2)) % 4
            T.copy(acc, B)

    return main


@bug("TL2010")
def atomics_that_count_something_else(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            while n < 5:  # BUG
                T.atomic_add(B[bx * 32 + tx], A[tx])
                if ok:
                    n = n + 1

    return main


@bug("TL2010")
def shared_flag_that_the_loop_takes_back(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((1,), "int32")
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            if tx == 0:
                s[0] = 0
            T.sync_threads()
            while s[0] < 3:  # BUG
                T.sync_threads()
                if tx == 0:
                    s[0] = (s[0] + 1) % (4 if ok else 3)
                n = n + 1
                T.sync_threads()
            B[tx] = A[tx] + n

    return main


@bug("TL2010")
def one_role_goes_round_while_the_other_works(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            with T.ws(0):
                for k in T.serial(20):
                    T.sync_threads(1, 128)
                B[tx] = A[tx]
            with T.ws(1):
                while n != 7:  # BUG
                    T.sync_threads(2, 128)
                    n = (n + (1 if ok else 2)) % 8
                B[tx] = n

    return main


@bug("TL2010")
def producer_and_consumer_feed_each_other_for_ever(ok):
    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((128,), "int32")
            full = T.alloc_barrier(128)
            empty = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            k = T.alloc_var("int32", init=0)
            n = T.alloc_var("int32", init=0)
            with T.ws(1):
                while n < 6:  # BUG
                    T.mbarrier_wait_parity(empty, k % 2 ^ 1)
                    s[tx - 128] = A[tx - 128] + k
                    T.mbarrier_arrive(full)
                    k = k + 1
                    n = k % (7 if ok else 6)
            with T.ws(0):
                while n < 6:  # BUG
                    T.mbarrier_wait_parity(full, k % 2)
                    B[tx] = s[tx]
                    T.mbarrier_arrive(empty)
                    k = k + 1
                    n = k % (7 if ok else 6)

    return main


@bug("TL2010")
def inner_loops_end_and_the_outer_does_not(ok):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            i = T.alloc_var("int32", init=0)
            while n < 12:  # BUG
                i = 0
                while i < 4:
                    T.sync_threads()
                    i = i + 1
                for k in T.serial(3):
                    if i > k:
                        n = n + 1
                if not ok:
                    n = n - 3
            B[tx] = A[tx] + n

    return main
