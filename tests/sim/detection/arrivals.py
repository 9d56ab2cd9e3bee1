"""Work that arrives later than the instruction which announces it: cp.async at mbarriers, TMA
stores that another block reads, TMA loads of what another block has written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilelab.language as T
from tests.sim.detection.matrix import Entry, collect

ASYNC: list[Entry] = []
SLOTS: list[Entry] = []
GLOBAL: list[Entry] = []
missing, early, between = collect(ASYNC), collect(SLOTS), collect(GLOBAL)


@missing("TL2003")
def copies_read_before_the_barrier_is_asked(ok):
    @T.prim_func
    def main(A: T.Tensor((128, 4), "float32"), B: T.Tensor((128, 4), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128, 4), "float32")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx, 0], "w"), T.access_ptr(A[tx, 0]), 4)
            T.cp_async_barrier_noinc(bar)
            if ok:
                T.mbarrier_wait_parity(bar, 0)
            for j in T.serial(4):
                B[tx, j] = s[tx, j]  # BUG
            if not ok:
                T.mbarrier_wait_parity(bar, 0)

    return main


@missing("TL2003")
def one_of_two_roles_waits_for_copies(ok):
    @T.prim_func
    def main(A: T.Tensor((64, 4), "float32"), B: T.Tensor((2, 64, 4), "float32")):
        with T.Kernel(1, threads=384):
            s = T.alloc_shared((64, 4), "float32")
            bar = T.alloc_barrier(64)
            tx = T.get_thread_binding()
            with T.ws(2):
                if tx < 320:
                    T.ptx_cp_async(
                        T.access_ptr(s[tx - 256, 0], "w"), T.access_ptr(A[tx - 256, 0]), 4
                    )
                    T.cp_async_barrier_noinc(bar)
            with T.ws(0):
                T.mbarrier_wait_parity(bar, 0)
                if tx < 64:
                    for j in T.serial(4):
                        B[0, tx, j] = s[63 - tx, j]
            with T.ws(1):
                if ok:
                    T.mbarrier_wait_parity(bar, 0)
                if tx < 192:
                    for j in T.serial(4):
                        B[1, tx - 128, j] = s[191 - tx, j]  # BUG

    return main


def ring(
    full: Callable[[Any], Any] = lambda k: (k // 2) % 2,
    empty: Callable[[Any], Any] = lambda k: (k // 2) % 2 ^ 1,
    asks: bool = True,
) -> Any:
    """Rows that one warpgroup copies by cp.async and another one reads, in two slots; the parities
    waited for, and whether the first waits for free slots."""

    @T.prim_func
    def main(A: T.Tensor((8, 512), "float32"), B: T.Tensor((8, 512), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 512), "float32")
            come = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([128, 128])
            tx = T.get_thread_binding()
            with T.ws(1):
                for k in T.serial(8):
                    if asks:
                        T.mbarrier_wait_parity(free[k % 2], empty(k))
                    T.ptx_cp_async(  # SLOT
                        T.access_ptr(s[k % 2, (tx - 128) * 4], "w"),
                        T.access_ptr(A[k, (tx - 128) * 4]),
                        4,
                    )
                    T.cp_async_barrier_noinc(come[k % 2])
            with T.ws(0):
                for k in T.serial(8):
                    T.mbarrier_wait_parity(come[k % 2], full(k))
                    for j in T.serial(4):
                        B[k, tx * 4 + j] = s[k % 2, 511 - tx * 4 - j]  # READ
                    T.barrier_arrive(free[k % 2])

    return main


@early("TL2003", "TL2007", source=ring, mark="# SLOT")
def copied_into_a_slot_that_is_not_free(ok):
    return ring(asks=ok)


@early("TL2003", "TL2007", source=ring, mark="# SLOT")
def copied_one_round_too_early(ok):
    return ring() if ok else ring(empty=lambda k: (k // 2) % 2 ^ (k < 4))


@missing("TL2003", "TL2002", source=ring, mark="# READ")
def parity_of_the_arrivals_flipped(ok):
    return ring() if ok else ring(full=lambda k: (k // 2) % 2 ^ 1)


@missing("TL2003", source=ring, mark="# READ")
def parity_of_the_arrivals_by_step(ok):
    return ring() if ok else ring(full=lambda k: k % 2)


def operand(waits: bool = True, fences: bool = True) -> Any:
    """A product of a tile that another warpgroup copies by cp.async."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(1):
                for i in T.serial(4):
                    T.ptx_cp_async(
                        T.access_ptr(s[i * 16 + (tx - 128) // 8, tx % 8 * 8], "w"),
                        T.access_ptr(A[i * 16 + (tx - 128) // 8, tx % 8 * 8]),
                        8,
                    )
                T.cp_async_barrier_noinc(bar)
            with T.ws(0):
                T.clear(c)
                if waits:
                    T.mbarrier_wait_parity(bar, 0)
                if fences:
                    T.fence_proxy_async()
                T.wgmma_gemm(s, s, c)  # PRODUCT
                T.wait_wgmma(0)
                T.copy(c, C)
                if not waits:
                    T.mbarrier_wait_parity(bar, 0)

    return main


@missing("TL2003", "TL2002", source=operand, mark="# PRODUCT")
def operand_copied_by_threads_not_waited_for(ok):
    return operand(waits=ok)


@missing("TL2007", source=operand, mark="# PRODUCT")
def operand_copied_by_threads_not_fenced(ok):
    return operand(fences=ok)


# ---- what another block stores, or loads ------------------------------------------------------


@T.macro
def asks_for(flags, i):
    """The first thread waits for a flag, and the others for it."""
    if T.get_thread_binding() == 0:
        while T.atomic_load(flags[i]) == 0:
            T.evaluate(0)
    T.sync_threads()


@T.macro
def raises(flags, i):
    """All threads have come, and the first raises a flag."""
    T.sync_threads()
    if T.get_thread_binding() == 0:
        T.atomic_add(flags[i], 1, memory_order="release")


def stored(whole: bool = True, by_box: bool = False, stays: bool = False) -> Any:
    """A tile that one block stores by TMA, and another one reads behind a flag. whole: the first
    waits until it is written; stays: it goes on until the other has read; by_box: that loads by
    TMA."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        F: T.Tensor((2,), "int32"),
        W: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            if bx == 0:
                T.copy(A, s)
                T.tma_copy(s, W)
                T.tma_store_wait(0, read=not whole)
                raises(F, 0)
                if stays:
                    asks_for(F, 1)
                    T.tma_store_wait(0, read=False)
            else:
                asks_for(F, 0)
                if by_box:
                    T.tma_copy(W, s, barrier=bar)  # READ
                    T.barrier_arrive(bar)
                    T.mbarrier_wait_parity(bar, 0)
                    T.copy(s, B)
                else:
                    for i in T.serial(32):
                        B[i * 2 + tx // 64, tx % 64] = W[i * 2 + tx // 64, tx % 64]  # READ
                raises(F, 1)

    return main


@between("TL2003", "TL2007", source=stored, mark="# READ", inputs={"F": 0})
def store_announced_when_its_source_is_free(ok):
    return stored(whole=ok)


@between("TL2003", "TL2007", source=stored, mark="# READ", inputs={"F": 0})
def store_loaded_when_its_source_is_free(ok):
    return stored(whole=ok, by_box=True)


@between("TL2003", source=stored, mark="# READ", inputs={"F": 0})
def store_under_way_while_another_block_reads(ok):
    return stored(whole=ok, stays=True)


@between("TL2003", source=stored, mark="# READ", inputs={"F": 0})
def store_under_way_while_another_block_loads(ok):
    return stored(whole=ok, stays=True, by_box=True)


@T.macro
def fenced(here):
    """A proxy fence, where there is to be one."""
    if here:
        T.fence_proxy_async()


def loaded(fence: str, asks: bool = True, meets: bool = True) -> Any:
    """A tile that threads of one block write, and another block loads by TMA behind a flag. fence:
    where the proxy fence stands; whether the reader asks for the flag, and its threads meet."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        F: T.Tensor((1,), "int32"),
        W: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            bar = T.alloc_barrier(1)
            tx = T.get_thread_binding()
            if bx == 0:
                fenced(fence == "before the writes")
                for i in T.serial(32):
                    W[i * 2 + tx // 64, tx % 64] = A[i * 2 + tx // 64, tx % 64] * 2
                fenced(fence == "behind the writes")
                raises(F, 0)
            else:
                fenced(fence == "before the flag")
                if tx == 32 and asks:
                    while T.atomic_load(F[0]) == 0:
                        T.evaluate(0)
                if meets:
                    T.sync_threads()
                fenced(fence == "behind the flag")
                if tx == 0:
                    T.tma_copy(W, s, barrier=bar)  # LOAD
                    T.barrier_arrive(bar)
                T.mbarrier_wait_parity(bar, 0)
                T.copy(s, B)

    return main


@between("TL2007", source=loaded, mark="# LOAD", inputs={"F": 0})
def box_of_another_block_without_a_proxy_fence(ok):
    return loaded("behind the writes" if ok else "nowhere")


@between("TL2007", source=loaded, mark="# LOAD", inputs={"F": 0})
def box_of_another_block_fenced_before_the_flag(ok):
    return loaded("behind the flag" if ok else "before the flag")


@between("TL2007", source=loaded, mark="# LOAD", inputs={"F": 0})
def box_of_another_block_fenced_before_it_is_written(ok):
    return loaded("behind the writes" if ok else "before the writes")


@between("TL2007", source=loaded, mark="# LOAD", inputs={"F": 0})
def box_of_another_block_without_the_flag(ok):
    return loaded("behind the writes", asks=ok)


@between("TL2007", source=loaded, mark="# LOAD", inputs={"F": 0})
def box_loaded_by_a_thread_that_has_not_asked(ok):
    return loaded("behind the writes", meets=ok)
