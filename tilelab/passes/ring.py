"""The ring of a pipelined loop with a producer role: slots, mbarriers, and how both are counted.

Tiles that the same statement reads first share a ring; others have rings of their own, so that a
statement waits for its operands only and frees them when it is done (`tl.plain_pipeline`: one
ring for all). Barriers of one ring stand in one array: full at 0..S-1, empty at S..2S-1. The k-th
use of the ring takes slot k % S; a barrier's phase is then (k / S) % 2. In a persistent kernel k
counts on across tiles: by the tile's number where every tile has as many iterations, else in a
register.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilelab.dtypes import INT32, UINT64
from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
    walk,
)
from tilelab.passes.base import PassContext
from tilelab.passes.persist import bound_variables
from tilelab.passes.plan import BarrierPlan, PipelinePlan, PlannedOp
from tilelab.passes.versions import versioned
from tilelab.target import WARPGROUP
from tilelab.thread.intrinsics.barrier import MBARRIER_INIT, MBARRIER_INIT_FENCE, SYNCTHREADS
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.ops.copy import Copy
from tilelab.tile.structure import SPLIT_RINGS, setting


@dataclass(frozen=True)
class Ring:
    """Slots of one loop that are filled and freed together, and their barriers. `first` is the
    number of uses before the loop begins; where a register counts them, it is `counter` and each
    role keeps its own."""

    loop: For
    plan: PipelinePlan
    copies: tuple[Copy, ...]  # that fill a slot
    barrier: Buffer
    slots: dict[int, Buffer]
    arrivals: int  # arrivals that free a slot
    bytes: int
    thread: Var  # threadIdx.x of the block with the producer
    first: Expr
    counter: Buffer | None = None
    once: bool = False  # its slot is filled a single time

    def use(self, loop: For) -> Expr:
        """The number of the ring's use in an iteration of `loop` (self.loop or a copy of it)."""
        return self.first + (loop.var - loop.start) // loop.step

    def named_use(self, loop: For) -> tuple[Expr, list[Stmt]]:
        """As `use`, and the statement that names it where slot or phase are no function of the
        loop's variable alone."""
        k = self.use(loop)
        before = {id(n) for n in walk(self.first) if isinstance(n, Var)}
        parts = (self.slot(k), self.phase(k))
        if not any(id(n) in before for part in parts for n in walk(part)):
            return k, []
        use = Var("use", lo=0)
        return use, [Let(use, k, loc=loop.loc)]

    def slot(self, k: Expr) -> Expr:
        return k % self.plan.num_stages

    def full(self, k: Expr) -> Ref:
        return Ref(self.barrier, (self.slot(k),))

    def empty(self, k: Expr) -> Ref:
        return Ref(self.barrier, (self.slot(k) + self.plan.num_stages,))

    def phase(self, k: Expr) -> Expr:
        return k // self.plan.num_stages % 2

    def allocations(self) -> list[Stmt]:
        """What the ring needs in place of the buffers that it versions."""
        counter = [] if self.counter is None else [self.counter]
        buffers = (self.barrier, *self.slots.values(), *counter)
        return [Alloc(b, loc=self.loop.loc) for b in buffers]

    def from_zero(self) -> list[Stmt]:
        """Before a role's first tile."""
        if self.counter is None:
            return []
        return [Store(self.counter, (as_expr(0),), as_expr(0), loc=self.loop.loc)]

    def counted(self, loop: For, parts: Sequence[Stmt] = ()) -> list[Stmt]:
        """`loop`, or the parts that run its iterations, with the statements that keep the count
        around it."""
        run = parts or [loop]
        if self.counter is None or not isinstance(self.first, Var):
            return list(run)
        place, loc = (as_expr(0),), loop.loc
        return [
            Let(self.first, Load(self.counter, place), loc=loc),
            *run,
            Store(self.counter, place, self.first + loop.extent, loc=loc),
        ]


def make_rings(
    loops: Sequence[tuple[For, PipelinePlan]], kernel: Kernel, thread: Var, tiles: For | None,
    ctx: PassContext,
) -> dict[int, list[Ring]]:  # fmt: skip
    """The rings of each loop, by the loop's id; `tiles` is the loop over tiles around them. The
    first ring of a loop keeps the count for all of them."""
    groups = [_groups(loop, plan, ctx) for loop, plan in loops]
    alone = sum(len(g) for g in groups) == 1
    out: dict[int, list[Ring]] = {}
    for number, ((loop, plan), of_loop) in enumerate(zip(loops, groups, strict=True)):
        first, counter = _before(loop, tiles, "" if number == 0 else f"_{number}")
        rings: list[Ring] = []
        for copies in of_loop:
            name = "mbarrier" if alone else f"mbarrier_{copies[0].dst.buffer.name}"
            ring = _ring(loop, plan, copies, kernel, name, thread)
            rings.append(replace(ring, first=first, counter=None if rings else counter))
        record_barriers(plan, rings, ctx)
        out[id(loop)] = rings
    return out


def work_of(loop: For, copies: Iterable[Copy]) -> list[Stmt]:
    """The statements of a loop's body that its consumers run."""
    loads = list(copies)
    return [s for s in loop.body.body if not any(s is c for c in loads)]


def span(work: Sequence[Stmt], tiles: Collection[int]) -> tuple[int, int]:
    """The places of the first and the last statement that read one of the tiles (by id)."""
    found = [i for i, s in enumerate(work) if any(id(n) in tiles for n in walk(s))]
    return (found[0], found[-1]) if found else (0, len(work) - 1)


def _groups(loop: For, plan: PipelinePlan, ctx: PassContext) -> list[tuple[Copy, ...]]:
    """The loop's copies, those together that the same statement reads first."""
    copies = [p.op for p in plan.producers if isinstance(p.op, Copy)]
    if not setting(ctx, SPLIT_RINGS):
        return [tuple(copies)]
    work = work_of(loop, copies)
    first: dict[int, list[Copy]] = {}
    for copy in copies:
        first.setdefault(span(work, {id(copy.dst.buffer)})[0], []).append(copy)
    return [tuple(first[place]) for place in sorted(first)]


def _ring(
    loop: For, plan: PipelinePlan, copies: tuple[Copy, ...], kernel: Kernel, name: str, thread: Var
) -> Ring:
    mine = {id(c.dst.buffer) for c in copies}
    only_wgmma = all(op.engine.startswith("wgmma") for op in _readers(plan, mine))
    # A finished wgmma group is known to its whole warpgroup; other readers speak for themselves.
    arrivals = kernel.num_threads // WARPGROUP if only_wgmma else kernel.num_threads
    return make_ring(loop, plan, copies, name, thread, plan.num_stages, arrivals)


def make_ring(
    loop: For, plan: PipelinePlan, copies: tuple[Copy, ...], name: str, thread: Var, stages: int,
    arrivals: int, once: bool = False,
) -> Ring:  # fmt: skip
    """A ring of `stages` slots for the tiles that `copies` fill, counted from 0."""
    count = stages if once else 2 * stages
    barrier = Buffer(name, (count,), UINT64, Scope.BARRIER, loc=loop.loc)
    tiles = [c.dst.buffer for c in copies]
    slots = {id(b): versioned(b, stages, boxes=True) for b in tiles}
    size = sum(prod(b.static_shape) * b.dtype.bits // 8 for b in tiles)
    own = replace(plan, num_stages=stages)
    return Ring(
        loop, own, copies, barrier, slots, arrivals, size, thread, as_expr(0), once=once
    )  # fmt: skip


def _before(loop: For, tiles: For | None, suffix: str) -> tuple[Expr, Buffer | None]:
    """How often the ring was used before a tile's loop, and the register that counts it."""
    if tiles is None:
        return as_expr(0), None
    inside = {id(v) for v in bound_variables(tiles)}
    if not any(id(n) in inside or isinstance(n, Load) for n in walk(loop.extent)):
        return tiles.var * loop.extent, None
    counter = Buffer(f"uses{suffix}", (1,), INT32, Scope.LOCAL, loc=loop.loc)
    return Var(f"first{suffix}", lo=0), counter


def _readers(plan: PipelinePlan, tiles: Collection[int]) -> list[PlannedOp]:
    """Consumers that read one of the tiles (by id)."""
    return [op for op in plan.consumers if op.op and any(id(n) in tiles for n in walk(op.op))]


def record_barriers(plan: PipelinePlan, rings: Sequence[Ring], ctx: PassContext) -> None:
    """Add barriers of rings to the newest form of a loop's plan in the trace."""
    found: list[BarrierPlan] = []
    for ring in rings:
        of = (
            " " + ", ".join(c.dst.buffer.name for c in ring.copies)
            if ring.barrier.name != "mbarrier"
            else ""
        )
        stages = ring.plan.num_stages
        found.append(BarrierPlan(f"full{of}", stages, 1, ring.bytes, "consumer", "producer"))
        if not ring.once:
            empty = BarrierPlan(f"empty{of}", stages, ring.arrivals, 0, "producer", "consumer")
            found.append(empty)
    index = next(
        i for i, p in enumerate(ctx.trace.pipelines) if p.loc == plan.loc and p.loop == plan.loop
    )
    known = ctx.trace.pipelines[index]
    ctx.trace.pipelines[index] = replace(known, barriers=(*known.barriers, *found))


def prepare(rings: Sequence[Ring], kernel: Kernel, thread: Var) -> list[Stmt]:
    """One thread prepares all barriers; nobody uses one before the barrier that follows."""
    body: list[Stmt] = []
    for ring in rings:
        stages = ring.plan.num_stages
        i = Var("i", lo=0, hi=stages - 1)
        loc = ring.loop.loc
        one, arrivals = as_expr(1), as_expr(ring.arrivals)
        init: list[Stmt] = [Invoke(MBARRIER_INIT, (Ref(ring.barrier, (i,)), one), loc=loc)]
        if not ring.once:
            empty = Ref(ring.barrier, (i + stages,))
            init.append(Invoke(MBARRIER_INIT, (empty, arrivals), loc=loc))
        body.append(
            For(i, as_expr(0), as_expr(stages), one, LoopKind.UNROLL, Seq(tuple(init)), loc=loc)
        )
    body.append(
        Invoke(MBARRIER_INIT_FENCE, (), "make them known to the async proxy", loc=kernel.loc)
    )
    first = binary("==", thread, 0)
    return [
        If(first, Seq(tuple(body), loc=kernel.loc), loc=kernel.loc),
        Invoke(
            SYNCTHREADS, (), "barriers are initialised before any role uses them", loc=kernel.loc
        ),
    ]
