"""wgmma kept in flight: a consumer issues the next group while the last one still runs.

    before: pin what the accumulator holds
    use k:  wait full[k]; issue group k; wait until group k-1 is done; free the slot of k-1
    after:  wait until the last group is done; free its slot

With one consumer warpgroup nothing else fills the tensor cores between two groups (measured: +8 to
13%); with two it gains nothing. A slot is held one step longer, which needs a third one, and costs
more than it brings where loads set the pace (measured for 64x64 tiles: -2%). Where the accumulator
begins with values, they are pinned before the loop: the assembler moves their definitions into it
otherwise, finds them between two groups in flight, and makes each wait for the one before (C7515,
seen with an extent known at run time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilelab.ir import Expr, If, Seq, Stmt, binary, const_int
from tilelab.passes.base import PassContext
from tilelab.passes.ring import Ring
from tilelab.target import WARPGROUP, Limits
from tilelab.thread.costs import rates
from tilelab.thread.intrinsics.barrier import MBARRIER_ARRIVE
from tilelab.thread.nodes import Invoke
from tilelab.tile.ops.gemm import Gemm, PinAccumulator, WaitWgmma
from tilelab.tile.structure import IN_FLIGHT, setting

FEWEST_SLOTS = 3
MOST_BYTES_PER_CYCLE = 96  # loads of more than this for each cycle of products set the pace


def runs_on(ring: Ring, work: Sequence[Stmt], threads: int, ctx: PassContext) -> Gemm | None:
    """The gemm that may still run while the next one is issued: all of an iteration's work."""
    if not setting(ctx, IN_FLIGHT) or threads != WARPGROUP:
        return None
    if ring.plan.num_stages < FEWEST_SLOTS or ring.arrivals == threads or len(work) != 1:
        return None
    gemm = work[0]
    if not isinstance(gemm, Gemm) or not gemm.waits:
        return None
    if _loads_set_the_pace(ring, gemm, ctx.target.limits):
        return None
    ctx.note(
        f"{gemm.label()} runs on while the next one is issued: one warpgroup computes, so nothing "
        "else fills the tensor cores between two groups",
        gemm,
    )
    return gemm


def _loads_set_the_pace(ring: Ring, gemm: Gemm, limits: Limits) -> bool:
    cycles = rates(limits).product_cycles(*gemm.extents, gemm.a.dtype.bits)
    return ring.bytes > MOST_BYTES_PER_CYCLE * cycles


def released_late(
    ring: Ring, gemm: Gemm, k: Expr
) -> tuple[list[Stmt], list[Stmt], list[Stmt]]:  # fmt: skip
    """What stands before the loop, what an iteration (use `k` of the ring) does after its tiles
    have come, and what follows the loop."""
    loop = ring.loop
    adds = const_int(gemm.clear_accum) == 0
    before: list[Stmt] = [PinAccumulator(gemm.c, loc=gemm.loc)] if adds else []
    trip = (loop.var - loop.start) // loop.step
    body: list[Stmt] = [
        replace(gemm, waits=False),
        WaitWgmma(1, "the group before is done; this one runs on", loc=gemm.loc),
        _release(ring, k - 1, binary(">", trip, 0), "the slot before may be refilled"),
    ]
    extent = loop.extent
    count = const_int(extent)
    some = None if count is not None and count > 0 else binary(">", extent, 0)
    last = _release(ring, ring.first + extent - 1, some, "the last slot may be refilled")
    after: list[Stmt] = [WaitWgmma(0, "the accumulator is complete", loc=gemm.loc), last]
    return before, body, after


def _release(ring: Ring, k: Expr, condition: Expr | None, why: str) -> Stmt:
    loc = ring.loop.loc
    arrive = Invoke(MBARRIER_ARRIVE, (ring.empty(k),), why, loc=loc)
    chosen = binary("==", ring.thread % WARPGROUP, 0)
    if condition is not None:
        chosen = binary("and", chosen, condition)
    return If(chosen, Seq((arrive,), loc=loc), loc=loc)


__all__ = ["released_late", "runs_on"]
