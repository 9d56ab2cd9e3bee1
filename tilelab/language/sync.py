"""Synchronisation of threads: barriers of the block, of warps, mbarriers, fences."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelab.dtypes import BOOL, INT32, UINT32, UINT64
from tilelab.errors import TileNotSupported, TileValueError
from tilelab.frontend import open_kernel, session
from tilelab.ir import Alloc, Buffer, Expr, Scope, Stmt, as_expr, cast, const_int
from tilelab.language.instruct import barrier_place, evaluate, perform
from tilelab.language.instruct import predicate as truth_of
from tilelab.language.launch import linear_thread
from tilelab.target import NAMED_BARRIERS
from tilelab.thread.intrinsics import (
    FENCE_PROXY_ASYNC,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT_TX,
    MBARRIER_INIT,
    MBARRIER_INIT_FENCE,
    MBARRIER_WAIT,
    NAMED_BARRIER_SYNC,
    SYNCTHREADS,
    WARPGROUP_ARRIVE,
    WARPGROUP_COMMIT,
)
from tilelab.thread.intrinsics.barrier import (
    GRID_LAUNCH_DEPENDENTS,
    GRID_WAIT,
    MBARRIER_ADD_EXPECTED,
    NAMED_BARRIER_ARRIVE,
)
from tilelab.thread.intrinsics.exchange import (
    SYNCTHREADS_AND,
    SYNCTHREADS_COUNT,
    SYNCTHREADS_OR,
    SYNCWARP,
)
from tilelab.tile.ops.barriers import BarrierInit


def sync_threads(barrier_id: int | None = None, arrive_count: int | None = None) -> Stmt:
    """All threads of the block wait for each other; with `barrier_id` (0 to 15) and
    `arrive_count` only so many threads (whole warps), at that named barrier.

    Needed only where the program hands values between threads by itself; tile operations are
    synchronised by the compiler.
    """
    if barrier_id is None and arrive_count is None:
        return perform(SYNCTHREADS, what="T.sync_threads")
    threads = open_kernel("T.sync_threads").threads
    total = threads[0] * (threads[1] if len(threads) > 1 else 1)
    total *= threads[2] if len(threads) > 2 else 1
    number = 0 if barrier_id is None else barrier_id
    count = total if arrive_count is None else arrive_count
    return _named(NAMED_BARRIER_SYNC, number, count, "T.sync_threads")


def named_barrier_arrive(barrier_id: int, thread_count: int) -> Stmt:
    """Count in at a named barrier without waiting for the others."""
    return _named(NAMED_BARRIER_ARRIVE, barrier_id, thread_count, "T.named_barrier_arrive")


def _named(record: Any, barrier_id: Any, count: Any, what: str) -> Stmt:
    number, threads = const_int(barrier_id), const_int(count)
    bad_number = number is not None and not 0 <= number < NAMED_BARRIERS
    if bad_number or (threads is not None and (threads <= 0 or threads % 32)):
        raise TileValueError(
            f"{what}({barrier_id!r}, {count!r}) names no barrier of whole warps", code="TL1758",
            loc=session().loc(), hint="the number is 0 to 15, the count a multiple of 32",
        )  # fmt: skip
    return perform(record, as_expr(barrier_id), as_expr(count), what=what)


def sync_warp(mask: Any = None) -> Stmt:
    """The lanes of a warp (of `mask`: all) wait for each other."""
    return perform(SYNCWARP, _mask(mask), what="T.sync_warp")


def _mask(mask: Any) -> Expr:
    return cast(as_expr(0xFFFFFFFF if mask is None else mask, UINT32), UINT32)


def sync_grid() -> NoReturn:
    """Not supported: blocks of a launch cannot wait for each other."""
    raise TileNotSupported(
        "T.sync_grid makes all blocks wait for each other, and kernels are not launched "
        "cooperatively",
        code="TL1755", loc=session().loc(),
        hint="write two kernels in one function: the second begins when the first has ended",
    )  # fmt: skip


sync_global = sync_grid


def tvm_storage_sync(storage_scope: str) -> Stmt:
    """The barrier of a memory scope: "shared" is T.sync_threads(), "warp" is T.sync_warp()."""
    barriers = {"shared": sync_threads, "shared.dyn": sync_threads, "warp": sync_warp}
    if storage_scope not in barriers:
        raise TileValueError(
            f"{storage_scope!r} is no scope that threads can synchronise on", code="TL1758",
            loc=session().loc(), hint='use "shared" or "warp"',
        )  # fmt: skip
    return barriers[storage_scope]()


def syncthreads_count(predicate: Any) -> Expr:
    """All threads wait for each other; in how many of them the predicate holds."""
    what = "T.syncthreads_count"
    return evaluate(SYNCTHREADS_COUNT, truth_of(predicate, what), dtype=INT32, what=what)


def syncthreads_and(predicate: Any) -> Expr:
    """All threads wait for each other; whether the predicate holds in all of them."""
    what = "T.syncthreads_and"
    return evaluate(SYNCTHREADS_AND, truth_of(predicate, what), dtype=BOOL, what=what)


def syncthreads_or(predicate: Any) -> Expr:
    """All threads wait for each other; whether the predicate holds in some of them."""
    what = "T.syncthreads_or"
    return evaluate(SYNCTHREADS_OR, truth_of(predicate, what), dtype=BOOL, what=what)


def fence_proxy_async() -> Stmt:
    """Order ordinary writes before later reads by TMA and wgmma (PTX ISA, "Async proxy"): those to
    shared memory, and to tensors that this kernel both writes and loads by TMA. Who wrote runs it,
    before the barrier or flag; for a tensor, who has waited for these may."""
    return perform(FENCE_PROXY_ASYNC, what="T.fence_proxy_async")


def pdl_sync() -> Stmt | None:
    """Wait for the kernel launched before this one. Kernels are launched one after the other's
    end, so there is nothing to wait for; the instruction stands where the target has it."""
    return perform(GRID_WAIT, what="T.pdl_sync")


def pdl_trigger() -> Stmt | None:
    """Let the kernel launched after this one begin. It begins at this one's end all the same."""
    return perform(GRID_LAUNCH_DEPENDENTS, what="T.pdl_trigger")


def warpgroup_arrive() -> Stmt:
    """Order this warp group's writes to registers before the wgmma that follow."""
    return perform(WARPGROUP_ARRIVE, what="T.warpgroup_arrive")


def warpgroup_commit_batch() -> Stmt:
    """Close the group of wgmma that the warp group has started."""
    return perform(WARPGROUP_COMMIT, what="T.warpgroup_commit_batch")


# ---- mbarriers ---------------------------------------------------------------------------------


def alloc_barrier(arrive_count: Any) -> Buffer:
    """Barriers in shared memory, ready for use: one for an int, several for a list of counts.

    Each lets a phase end after `arrive_count` arrivals (and the bytes expected of TMA copies).
    """
    given = list(arrive_count) if isinstance(arrive_count, tuple | list) else [arrive_count]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    counts = tuple(const_int(c) for c in given)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if not counts or any(c is None or c <= 0 for c in counts):
        raise TileValueError(
            f"T.alloc_barrier({arrive_count!r}) gives no numbers of arrivals", code="TL1758",
            loc=session().loc(), hint="give a positive int, or a list of them",
        )  # fmt: skip
    open_kernel("T.alloc_barrier")
    trace = session()
    loc = trace.loc()
    buffer = Buffer(trace.hinted("barrier"), (len(counts),), UINT64, Scope.BARRIER, loc=loc)
    init = BarrierInit(buffer, tuple(c for c in counts if c), linear_thread(), loc=loc)
    trace.blocks[_KERNEL_BLOCK].extend((Alloc(buffer, loc=loc), init))
    return buffer


_KERNEL_BLOCK = 1
"""Index of the kernel's own block among the open ones: barriers are made once, before any loop."""


def mbarrier_wait_parity(mbarrier: Any, parity: Any) -> Stmt:
    """Wait until the phase with this parity (0, 1, 0, ...) of the barrier has ended; a fresh
    barrier lets parity 1 pass at once."""
    what = "T.mbarrier_wait_parity"
    place = barrier_place(mbarrier, what)
    return perform(MBARRIER_WAIT, place, cast(as_expr(parity), INT32), what=what)


def mbarrier_arrive(mbarrier: Any, cta_id: Any = None) -> Stmt:
    """One arrival of the calling thread."""
    if cta_id is not None and const_int(cta_id) != 0:
        raise TileNotSupported(
            "T.mbarrier_arrive(cta_id=...) arrives in another block of a cluster", code="TL1755",
            loc=session().loc(),
            hint="clusters of several blocks are not supported: block 0 is the only one",
        )  # fmt: skip
    return perform(
        MBARRIER_ARRIVE, barrier_place(mbarrier, "T.mbarrier_arrive"), what="T.mbarrier_arrive"
    )


def mbarrier_expect_tx(mbarrier: Any, tx: Any) -> Stmt:
    """Let the phase wait for `tx` more bytes of TMA copies; no arrival."""
    what = "T.mbarrier_expect_tx"
    place = barrier_place(mbarrier, what)
    return perform(MBARRIER_ADD_EXPECTED, place, cast(as_expr(tx), INT32), what=what)


def mbarrier_arrive_expect_tx(mbarrier: Any, tx: Any) -> Stmt:
    """Let the phase wait for `tx` more bytes of TMA copies, and arrive."""
    what = "T.mbarrier_arrive_expect_tx"
    place = barrier_place(mbarrier, what)
    return perform(MBARRIER_EXPECT_TX, place, cast(as_expr(tx), INT32), what=what)


def ptx_init_barrier_thread_count(barrier_id: Any, thread_count: Any) -> Stmt:
    """Initialise one barrier again, by the calling thread alone."""
    what = "T.ptx_init_barrier_thread_count"
    place = barrier_place(barrier_id, what)
    return perform(MBARRIER_INIT, place, cast(as_expr(thread_count), INT32), what=what)


def ptx_fence_barrier_init() -> Stmt:
    """Make barriers that this thread initialised known to TMA."""
    return perform(MBARRIER_INIT_FENCE, what="T.ptx_fence_barrier_init")


def ptx_arrive_barrier(barrier_id: Any) -> Stmt:
    """T.mbarrier_arrive."""
    return mbarrier_arrive(barrier_id)


def ptx_arrive_barrier_expect_tx(barrier_id: Any, byte_count: Any) -> Stmt:
    """T.mbarrier_arrive_expect_tx."""
    return mbarrier_arrive_expect_tx(barrier_id, byte_count)


def barrier_arrive(mbarrier: Any) -> Stmt:
    """T.mbarrier_arrive."""
    return mbarrier_arrive(mbarrier)


barrier_wait = mbarrier_wait_parity

NAMES: dict[str, Any] = {
    f: globals()[f]
    for f in (
        "alloc_barrier", "barrier_arrive", "barrier_wait", "fence_proxy_async", "mbarrier_arrive",
        "mbarrier_arrive_expect_tx", "mbarrier_expect_tx", "mbarrier_wait_parity",
        "named_barrier_arrive", "ptx_arrive_barrier", "ptx_arrive_barrier_expect_tx",
        "pdl_sync", "pdl_trigger", "ptx_fence_barrier_init", "ptx_init_barrier_thread_count",
        "sync_global", "sync_grid",
        "sync_threads", "sync_warp", "syncthreads_and", "syncthreads_count", "syncthreads_or",
        "tvm_storage_sync", "warpgroup_arrive", "warpgroup_commit_batch",
    )
}  # fmt: skip
"""What this module adds to the language."""
