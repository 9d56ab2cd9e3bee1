"""Blocks that wait for each other: locks, flags, counters that others ask for."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import Entry, collect

GLOBAL: list[Entry] = []
STUCK: list[Entry] = []
between, stuck = collect(GLOBAL), collect(STUCK)


@between("TL2007", inputs={"F": 0, "B": 0})
def flag_raised_before_the_value(ok):
    @T.prim_func
    def main(
        A: T.Tensor((8, 64), "int32"), F: T.Tensor((8,), "int32"), B: T.Tensor((8, 64), "int32")
    ):
        with T.Kernel(8, threads=64) as bx:
            tx = T.get_thread_binding()
            if tx == 0 and bx > 0:
                while T.atomic_load(F[bx - 1]) == 0:
                    T.evaluate(0)
            T.sync_threads()
            if not ok and tx == 0:
                T.atomic_store(F[bx], 1)
            if bx > 0:
                B[bx, tx] = A[bx, tx] + B[bx - 1, tx]  # BUG
            else:
                B[bx, tx] = A[bx, tx]
            T.sync_threads()
            if ok and tx == 0:
                T.atomic_store(F[bx], 1)

    return main


@between("TL2007", inputs={"N": 0})
def barrier_of_the_grid_not_waited_for(ok):
    @T.prim_func
    def main(
        A: T.Tensor((4, 64), "int32"),
        N: T.Tensor((1,), "int32"),
        W: T.Tensor((4, 64), "int32"),
        B: T.Tensor((4, 64), "int32"),
    ):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            W[bx, tx] = A[bx, tx] * 2
            T.sync_threads()
            if tx == 0:
                T.atomic_add(N[0], 1, memory_order="release")
                if ok:
                    while T.atomic_load(N[0]) < 4:
                        T.evaluate(0)
            T.sync_threads()
            B[bx, tx] = W[3 - bx, tx]  # BUG

    return main


@between("TL2007", inputs={"L": 0, "B": 0})
def lock_given_back_too_early(ok):
    @T.prim_func
    def main(
        A: T.Tensor((6, 32), "int32"), L: T.Tensor((1,), "int32"), B: T.Tensor((32,), "int32")
    ):
        with T.Kernel(6, threads=32) as bx:
            tx = T.get_thread_binding()
            if tx == 0:
                while T.atomic_max(L[0], 1, "acquire", return_prev=True) != 0:
                    T.evaluate(0)
            T.sync_threads()
            if not ok and tx == 0:
                T.atomic_store(L[0], 0)
            B[tx] = B[tx] + A[bx, tx]  # BUG
            T.sync_threads()
            if ok and tx == 0:
                T.atomic_store(L[0], 0)

    return main


@between("TL2007", inputs={"F": 0})
def partial_tile_read_without_asking(ok):
    @T.prim_func
    def main(
        A: T.Tensor((2, 64, 64), "float16"),
        F: T.Tensor((1,), "int32"),
        P: T.Tensor((64, 64), "float32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            p = T.alloc_fragment((64, 64), "float32")
            tx = T.get_thread_binding()
            T.copy(A[bx, 0, 0], a)
            T.clear(c)
            T.gemm(a, a, c)
            if bx == 0:
                T.copy(c, P)
                T.sync_threads()
                if tx == 0:
                    T.atomic_add(F[0], 1, memory_order="release")
            else:
                if ok:
                    if tx == 0:
                        while T.atomic_load(F[0]) == 0:
                            T.evaluate(0)
                    T.sync_threads()
                T.copy(P, p)  # BUG
                for i, j in T.Parallel(64, 64):
                    c[i, j] += p[i, j]
                T.copy(c, C)

    return main


@stuck("TL2010", inputs={"L": 0, "B": 0})
def lock_never_given_back(ok):
    @T.prim_func
    def main(
        A: T.Tensor((3, 32), "int32"), L: T.Tensor((1,), "int32"), B: T.Tensor((32,), "int32")
    ):
        with T.Kernel(3, threads=32) as bx:
            tx = T.get_thread_binding()
            if tx == 0:
                while T.atomic_max(L[0], 1, "acquire", return_prev=True) != 0:  # BUG
                    T.evaluate(0)
            T.sync_threads()
            B[tx] = B[tx] + A[bx, tx]
            T.sync_threads()
            if ok and tx == 0:
                T.atomic_store(L[0], 0)

    return main


@stuck("TL2010", inputs={"N": 0})
def barrier_of_the_grid_counts_one_too_many(ok):
    @T.prim_func
    def main(
        A: T.Tensor((4, 64), "int32"),
        N: T.Tensor((1,), "int32"),
        W: T.Tensor((4, 64), "int32"),
        B: T.Tensor((4, 64), "int32"),
    ):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            W[bx, tx] = A[bx, tx] * 2
            T.sync_threads()
            if tx == 0:
                T.atomic_add(N[0], 1, memory_order="release")
                while T.atomic_load(N[0]) < (4 if ok else 5):  # BUG
                    T.evaluate(0)
            T.sync_threads()
            B[bx, tx] = W[3 - bx, tx]

    return main


@between("TL2007", inputs={"B": 0})
def result_stored_beside_atomic_maxima(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            T.atomic_max(B[tx % 4], A[bx, tx])  # BUG
            if not ok and tx == 0:
                B[bx] = A[bx, 63]  # BUG

    return main


@between("TL2007", inputs={"F": 0, "W": 0})
def scratch_of_the_neighbour(ok):
    @T.prim_func
    def main(
        A: T.Tensor((4, 64), "int32"),
        W: T.Tensor((4, 64), "int32"),
        F: T.Tensor((1,), "int32"),
        B: T.Tensor((64,), "int32"),
    ):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            last = T.alloc_shared((1,), "int32")
            W[bx, tx] = A[bx, tx] * 2
            T.sync_threads()
            if tx == 0:
                last[0] = T.atomic_add(F[0], 1, "acq_rel", return_prev=True)
            T.sync_threads()
            if last[0] == (3 if ok else 2):
                B[tx] = W[0, tx] + W[1, tx] + W[2, tx] + W[3, tx]  # BUG

    return main


@between("TL2007", inputs={"F": 0, "W": 0})
def counted_before_it_is_written(ok):
    @T.prim_func
    def main(
        A: T.Tensor((4, 64), "int32"),
        W: T.Tensor((4, 64), "int32"),
        F: T.Tensor((1,), "int32"),
        B: T.Tensor((64,), "int32"),
    ):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            last = T.alloc_shared((1,), "int32")
            if ok:
                W[bx, tx] = A[bx, tx] * 2  # BUG
                T.sync_threads()
            if tx == 0:
                last[0] = T.atomic_add(F[0], 1, "acq_rel", return_prev=True)
            if not ok:
                W[bx, tx] = A[bx, tx] * 2  # BUG
            T.sync_threads()
            if last[0] == 3:
                B[tx] = W[0, tx] + W[1, tx] + W[2, tx] + W[3, tx]  # BUG

    return main


@between("TL2007", inputs={"F": 0, "W": 0})
def block_counts_before_its_threads_have_written(ok):
    @T.prim_func
    def main(
        A: T.Tensor((4, 64), "int32"),
        W: T.Tensor((4, 64), "int32"),
        F: T.Tensor((1,), "int32"),
        B: T.Tensor((64,), "int32"),
    ):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            last = T.alloc_shared((1,), "int32")
            W[bx, tx] = A[bx, tx] * 2  # BUG
            if ok:
                T.sync_threads()
            if tx == 0:
                last[0] = T.atomic_add(F[0], 1, "acq_rel", return_prev=True)
            T.sync_threads()
            if last[0] == 3:
                B[tx] = W[0, tx] + W[1, tx] + W[2, tx] + W[3, tx]  # BUG

    return main


@stuck("TL2010", inputs={"F": 0, "W": 0})
def waits_for_a_block_that_never_signals(ok):
    @T.prim_func
    def main(
        A: T.Tensor((2, 64), "int32"),
        W: T.Tensor((64,), "int32"),
        F: T.Tensor((1,), "int32"),
        B: T.Tensor((64,), "int32"),
    ):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            if bx == 0:
                W[tx] = A[0, tx]
                T.sync_threads()
                if tx == 0 and ok:
                    T.atomic_add(F[0], 1, memory_order="release")
            else:
                if tx == 0:
                    while T.atomic_add(F[0], 0, "acquire", return_prev=True) == 0:  # BUG
                        T.evaluate(0)
                T.sync_threads()
                B[tx] = W[tx] + A[1, tx]

    return main
