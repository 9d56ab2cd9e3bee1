"""Barriers that the program makes itself: their initialisation, before anyone uses them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from tilelab.ir import Buffer, Expr, If, LoopKind, Seq, Stmt, as_expr, binary
from tilelab.target import Feature
from tilelab.thread.intrinsics.barrier import MBARRIER_INIT, MBARRIER_INIT_FENCE, SYNCTHREADS
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import loop
from tilelab.tile.op import TileOp, lowering


@dataclass(frozen=True, eq=False)
class BarrierInit(TileOp):
    """Make each place of `barrier` an mbarrier that expects `arrivals`; `thread` counts threads."""

    op_name: ClassVar[str] = "barrier init"
    team: ClassVar[str] = "each"

    barrier: Buffer
    arrivals: tuple[int, ...]
    thread: Expr

    def label(self) -> str:
        return self.barrier.name


@lowering(BarrierInit, needs={Feature.MBARRIER})
def _one_thread(op: BarrierInit, ctx: LowerContext) -> Iterable[Stmt]:
    """The first thread of the block initialises all; the others wait until it has."""
    body: list[Stmt] = []
    first = 0
    for arrivals, group in groupby(op.arrivals):
        count = len(list(group))
        i = ctx.fresh("i", count)
        place = Ref(op.barrier, (i + first,))
        init = Invoke(MBARRIER_INIT, (place, as_expr(arrivals)), loc=op.loc)
        body.append(loop(i, count, LoopKind.UNROLL, [init], op.loc))
        first += count
    if ctx.target.has(Feature.TMA):
        why = "make them known to the async proxy"
        body.append(Invoke(MBARRIER_INIT_FENCE, (), why, loc=op.loc))
    yield If(binary("==", op.thread, 0), Seq(tuple(body), loc=op.loc), loc=op.loc)
    why = "barriers are initialised before any thread uses them"
    yield Invoke(SYNCTHREADS, (), why, loc=op.loc)
