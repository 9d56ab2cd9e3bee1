"""The ring of a pipelined loop with a producer role: slots, mbarriers, and how both are counted.

Barriers of one loop stand in one array: full at 0..S-1, empty at S..2S-1. The k-th use of the ring
takes slot k % S; a barrier's phase is then (k / S) % 2. In a persistent kernel k counts on across
tiles: by the tile's number where every tile has as many iterations, else in a register.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

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
    Node,
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
from tilelab.passes.plan import BarrierPlan, PipelinePlan
from tilelab.passes.plan_pipeline import WARPGROUP
from tilelab.passes.versions import versioned
from tilelab.thread.intrinsics.barrier import MBARRIER_INIT, MBARRIER_INIT_FENCE, SYNCTHREADS
from tilelab.thread.nodes import Invoke, Ref


@dataclass(frozen=True)
class Ring:
    """The slots and barriers of one loop. `first` is the number of uses before the loop begins;
    where a register counts them, it is `counter` and each role keeps its own."""

    loop: For
    plan: PipelinePlan
    barrier: Buffer
    slots: dict[int, Buffer]
    arrivals: int  # arrivals that free a slot
    bytes: int
    thread: Var  # threadIdx.x of the block with the producer
    first: Expr
    counter: Buffer | None = None

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

    def counted(self, loop: For) -> list[Stmt]:
        """`loop` with the statements that keep the count around it."""
        if self.counter is None or not isinstance(self.first, Var):
            return [loop]
        place, loc = (as_expr(0),), loop.loc
        return [
            Let(self.first, Load(self.counter, place), loc=loc),
            loop,
            Store(self.counter, place, self.first + loop.extent, loc=loc),
        ]


def make_ring(
    loop: For, plan: PipelinePlan, kernel: Kernel, number: int, thread: Var, tiles: For | None
) -> Ring:
    """The ring of the `number`-th loop of a kernel; `tiles` is the loop over tiles around it."""
    stages = plan.num_stages
    suffix = "" if number == 0 else f"_{number}"
    barrier = Buffer(f"mbarrier{suffix}", (2 * stages,), UINT64, Scope.BARRIER, loc=loop.loc)
    slots = {id(v.buffer): versioned(v.buffer, stages) for v in plan.buffers}
    only_wgmma = all(op.engine.startswith("wgmma") for op in _readers(plan))
    # A finished wgmma group is known to its whole warpgroup; other readers speak for themselves.
    arrivals = kernel.num_threads // WARPGROUP if only_wgmma else kernel.num_threads
    size = sum(v.bytes_per_version for v in plan.buffers)
    first, counter = _before(loop, tiles, suffix)
    return Ring(loop, plan, barrier, slots, arrivals, size, thread, first, counter)


def _before(loop: For, tiles: For | None, suffix: str) -> tuple[Expr, Buffer | None]:
    """How often the ring was used before a tile's loop, and the register that counts it."""
    if tiles is None:
        return as_expr(0), None
    inside = {id(v) for v in bound_variables(tiles)}
    if not any(id(n) in inside or isinstance(n, Load) for n in walk(loop.extent)):
        return tiles.var * loop.extent, None
    counter = Buffer(f"uses{suffix}", (1,), INT32, Scope.LOCAL, loc=loop.loc)
    return Var(f"first{suffix}", lo=0), counter


def _readers(plan: PipelinePlan) -> list[Any]:
    """Consumers that read a slot."""
    ring = [v.buffer for v in plan.buffers]

    def reads_slot(node: Node | None) -> bool:
        return node is not None and any(n is b for n in walk(node) for b in ring)

    return [op for op in plan.consumers if reads_slot(op.op)]


def record_barriers(ring: Ring, ctx: PassContext) -> None:
    """Add a ring's barriers to its plan in the trace."""
    stages = ring.plan.num_stages
    barriers = (
        BarrierPlan("full", stages, 1, ring.bytes, "consumer", "producer"),
        BarrierPlan("empty", stages, ring.arrivals, 0, "producer", "consumer"),
    )
    index = next(i for i, p in enumerate(ctx.trace.pipelines) if p is ring.plan)
    ctx.trace.pipelines[index] = replace(ring.plan, barriers=barriers)


def prepare(rings: Mapping[int, Ring], kernel: Kernel, thread: Var) -> list[Stmt]:
    """One thread prepares all barriers; nobody uses one before the barrier that follows."""
    body: list[Stmt] = []
    for ring in rings.values():
        stages = ring.plan.num_stages
        i = Var("i", lo=0, hi=stages - 1)
        loc = ring.loop.loc
        one, arrivals = as_expr(1), as_expr(ring.arrivals)
        init: list[Stmt] = [
            Invoke(MBARRIER_INIT, (Ref(ring.barrier, (i,)), one), loc=loc),
            Invoke(MBARRIER_INIT, (Ref(ring.barrier, (i + stages,)), arrivals), loc=loc),
        ]
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
