"""What atomics order: acquire and release, fences, and how what one thread has heard spreads."""

from __future__ import annotations

import tilelab.language as T
from tests.sim.detection.matrix import BY_HAND, Entry, collect

GLOBAL: list[Entry] = []
SHARED: list[Entry] = []
orders, within = collect(GLOBAL), collect(SHARED)


def _chain(store="release", load="acquire", before=True, after=True):
    """Blocks in a row, each of which waits for the flag of the one before."""

    @T.prim_func
    def main(
        A: T.Tensor((6, 64), "int32"), F: T.Tensor((6,), "int32"), B: T.Tensor((6, 64), "int32")
    ):
        with T.Kernel(6, threads=64) as bx:
            tx = T.get_thread_binding()
            if bx > 0:
                if tx == 0:
                    while T.atomic_load(F[bx - 1], memory_order=load) == 0:
                        T.evaluate(0)
                if after:
                    T.sync_threads()
                B[bx, tx] = B[bx - 1, tx] + A[bx, tx]  # CHAIN
            else:
                B[bx, tx] = A[bx, tx]
            if before:
                T.sync_threads()
            if tx == 0:
                T.atomic_store(F[bx], 1, memory_order=store)

    return main


chained = {"inputs": {"F": 0, "B": 0}, "source": _chain, "mark": "# CHAIN"}


@orders("TL2007", **chained)
def flag_raised_relaxed(ok):
    return _chain(store="release" if ok else "relaxed")


@orders("TL2007", **chained)
def flag_read_relaxed(ok):
    return _chain(load="acquire" if ok else "relaxed")


@orders("TL2007", configs=BY_HAND, **chained)
def flag_heard_by_one_thread_only(ok):
    return _chain(after=ok)


@orders("TL2007", configs=BY_HAND, **chained)
def flag_raised_before_the_others_have_written(ok):
    return _chain(before=ok)


def _last_block(order, fence_before=False, fence_after=False, threads=64, meet=True):
    """The block that counts last adds up what all have left."""

    @T.prim_func
    def main(
        A: T.Tensor((4, threads), "int32"),
        N: T.Tensor((1,), "int32"),
        W: T.Tensor((4, threads), "int32"),
        B: T.Tensor((threads,), "int32"),
    ):
        with T.Kernel(4, threads=threads) as bx:
            tx = T.get_thread_binding()
            last = T.alloc_shared((1,), "int32")
            W[bx, tx] = A[bx, tx] * 2
            if fence_before:
                T.call_extern("void", "__threadfence")
            if meet:
                T.sync_threads()
            if tx == 0:
                last[0] = T.atomic_add(N[0], 1, memory_order=order, return_prev=True)
            T.sync_threads()
            if last[0] == 3:
                if fence_after:
                    T.call_extern("void", "__threadfence")
                B[tx] = W[0, tx] + W[1, tx] + W[2, tx] + W[3, tx]  # LAST

    return main


counted = {"inputs": {"N": 0, "W": 0}, "source": _last_block, "mark": "# LAST"}


@orders("TL2007", **counted)
def ticket_is_relaxed(ok):
    return _last_block("acq_rel" if ok else None)


@orders("TL2007", target="sm_80", **counted)
def ticket_only_releases(ok):
    return _last_block("seq_cst" if ok else "release")


@orders("TL2007", **counted)
def ticket_only_acquires(ok):
    return _last_block("acq_rel" if ok else "acquire")


@orders("TL2007", **counted)
def fence_only_before_the_ticket(ok):
    return _last_block("relaxed", fence_before=True, fence_after=ok)


@orders("TL2007", target="sm_80", **counted)
def fence_only_behind_the_ticket(ok):
    return _last_block("relaxed", fence_before=ok, fence_after=True)


@orders("TL2007", configs=BY_HAND, **counted)
def warp_counts_before_its_lanes_have_met(ok):
    return _last_block("acq_rel", threads=32, meet=ok)


def _roles(memory, store="release", before=True, after=True):
    """One warp of a block hands a row to another by a flag."""

    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), F: T.Tensor((1,), "int32"), B: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            s = T.alloc_shared((32,), "int32")
            flag = T.alloc_shared((1,), "int32")
            if tx == 0:
                flag[0] = 0
            T.sync_threads()
            if tx < 32:
                s[tx] = A[tx] * 2
                if before:
                    T.sync_warp()
                if tx == 0:
                    T.atomic_store(F[0] if memory == "global" else flag[0], 1, memory_order=store)
            else:
                if tx == 32:
                    while T.atomic_load(F[0] if memory == "global" else flag[0]) == 0:
                        T.evaluate(0)
                if after:
                    T.sync_warp()
                B[tx - 32] = s[63 - tx]  # ROLES

    return main


handed = {"inputs": {"F": 0}, "source": _roles, "mark": "# ROLES", "configs": BY_HAND}


@within("TL2007", **handed)
def warp_raises_a_relaxed_flag_in_global_memory(ok):
    return _roles("global", store="release" if ok else "relaxed")


@within("TL2007", target="sm_80", **handed)
def warp_raises_a_relaxed_flag_in_shared_memory(ok):
    return _roles("shared", store="release" if ok else "relaxed")


@orders("TL2007", target="sm_80", inputs={"N": 0, "W": 0})
def counter_set_back_by_one_that_is_not_last(ok):
    @T.prim_func
    def main(A: T.Tensor((4, 32), "int32"), N: T.Tensor((1,), "int32"), W: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            tx = T.get_thread_binding()
            last = T.alloc_var("int32", init=0)
            if tx == 0:
                W[bx] = A[bx, 0]
                last = T.atomic_add(N[0], 1, return_prev=True)  # BUG
                if last == (3 if ok else 1):
                    N[0] = 0  # BUG

    return main
