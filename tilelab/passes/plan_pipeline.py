"""plan-pipeline: for each T.Pipelined loop, which copies run ahead, in how many slots, by what.

The plan is data, attached to the loop; `warp_specialize` and `software_pipeline` realise it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tilelab.ir import (
    Alloc,
    Break,
    Buffer,
    Continue,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    Region,
    Scope,
    Stmt,
    const_int,
    walk,
)
from tilelab.ir.rewrite import rewrite_statements
from tilelab.ir.stmt import leaves
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.gathers import with_plain_places, without_unused
from tilelab.passes.hoist import split_scalar, unavailable
from tilelab.passes.lowering_context import planning_context
from tilelab.passes.plan import Mechanism, PipelinePlan, PlannedOp, RolePlan, VersionedBuffer
from tilelab.passes.touch import touches
from tilelab.passes.versions import slot_refusal
from tilelab.target import REGISTERS_BESIDE_TILES, WARP, WARPGROUP, Feature
from tilelab.thread.nodes import Invoke, WarpRoles
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import is_static
from tilelab.tile.op import TileOp
from tilelab.tile.ops.barriers import BarrierInit
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.copy_async import async_width, why_not_tma
from tilelab.tile.ops.gather import Gather
from tilelab.tile.ops.gemm import Gemm, plan_of
from tilelab.tile.ops.registers import RegisterBudget
from tilelab.tile.structure import PRODUCER_WARP, setting

PLAN = "plan"


def plan_of_loop(loop: For) -> PipelinePlan | None:
    """The plan that `plan-pipeline` attached to a loop."""
    return next((v for k, v in loop.attrs if k == PLAN), None)  # type: ignore[return-value]


@kernel_pass("plan-pipeline", needs=("checked",), makes=("planned",))
def plan_pipeline(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Decide stages, slots, producers and consumers of every pipelined loop."""
    lower = planning_context(kernel, ctx, kernel.num_threads)
    kernel, named = with_plain_places(kernel, lower)
    candidates = {
        id(n): Candidate(n, kernel, lower)
        for n in walk(kernel)
        if isinstance(n, For) and n.kind is LoopKind.PIPELINED
    }
    specialise, why = _may_specialise(kernel, list(candidates.values()), ctx)

    def planned(node: Node) -> Node | None:
        found = candidates.get(id(node))
        if found is None:
            return None
        plan = _decide(found, ctx, specialise, why)
        ctx.trace.pipelines.append(plan)
        ctx.note(plan.reason, found.loop)
        ahead = {id(op.op) for op in plan.producers}
        body = [s if id(s) in ahead else named.get(id(s), s) for s in found.loop.body.body]
        body = without_unused(body) if ahead else body
        attrs = (*found.loop.attrs, (PLAN, plan))
        return replace(found.loop, body=replace(found.loop.body, body=tuple(body)), attrs=attrs)

    return rewrite_statements(kernel, planned)


class Candidate:
    """A pipelined loop with what its body allows."""

    def __init__(self, loop: For, kernel: Kernel, lower: LowerContext) -> None:
        self.loop, self.kernel, self.lower = loop, kernel, lower
        self.stages = loop.num_stages or 0
        self.refusals: list[str] = []
        moves = (s for s in loop.body.body if isinstance(s, Copy | Gather))
        self.producers = [s for s in moves if self._runs_ahead(s)]

    def _runs_ahead(self, op: Copy | Gather) -> bool:
        """Whether this copy may be issued iterations before its tile is used."""
        if op.src.buffer.scope is not Scope.GLOBAL or op.dst.buffer.scope is not Scope.SHARED:
            return False
        why = ""
        if isinstance(op, Copy) and op.best == "sync":
            why = "the program asks for it where it stands"
        if isinstance(op, Copy) and not is_static(op.src, op.dst):
            why = "an extent is known only at run time"
        why = why or self._why_not(op)
        if why:
            self.refusals.append(f"{op.label()} cannot run ahead: {why}")
        return not why

    def _why_not(self, op: Copy | Gather) -> str:
        tile = op.dst.buffer
        position = self._position(op)
        views = (n.buffer for n in walk(self.kernel) if isinstance(n, Alloc))
        if any(v.storage is tile.storage and v is not tile for v in views):
            return f"{tile.name} is seen under another shape too, and slots are made of one buffer"
        for touch in touches(self.kernel):
            if touch.buffer.storage is op.src.buffer.storage and touch.is_write:
                return f"{op.src.buffer.name} is also written by this kernel"
            if touch.buffer is not tile or touch.stmt is op:
                continue
            if touch.is_write:
                return f"{tile.name} has another writer"
            if isinstance(touch.stmt, Gemm) and not touch.stmt.waits:
                return f"the program itself waits for the gemm that reads {tile.name}"
            where = self._position(touch.stmt)
            if where is None:
                return f"{tile.name} is also read outside of the loop"
            if position is not None and where < position:
                return f"{tile.name} is read before it is written, so it carries the last tile"
        if not _covers(op.dst):
            return f"it fills only a part of {tile.name}"
        return self._index_problem(op)

    def _index_problem(self, op: Copy | Gather) -> str:
        bound = [s.var for s in self.loop.body.body if isinstance(s, Let)]
        bound += [s.result for s in self.loop.body.body if isinstance(s, Invoke) and s.result]
        for node in (n for place in _places(op) for n in walk(place)):
            if isinstance(node, Load) and self._changes(node.buffer):
                return f"its place depends on {node.buffer.name}, which changes meanwhile"
            if any(node is v for v in bound):
                return "its place depends on a value computed in the loop"
        return ""

    def _changes(self, buffer: Buffer) -> bool:
        """Whether a value read from `buffer` may be another one when the copy is issued early."""
        if buffer.scope is Scope.GLOBAL:
            return any(t.buffer is buffer and t.is_write for t in touches(self.kernel))
        if buffer.scope is Scope.LOCAL:
            return any(t.buffer is buffer and t.is_write for t in touches(self.loop))
        return True

    def _position(self, stmt: Stmt) -> int | None:
        """Index of the body statement that contains `stmt`."""
        for index, top in enumerate(self.loop.body.body):
            if any(n is stmt for n in walk(top)):
                return index
        return None

    @property
    def consumers(self) -> list[Stmt]:
        return [s for s in self.loop.body.body if not any(s is p for p in self.producers)]

    def tma_refusals(self) -> list[str]:
        """Why no producer may load for this loop by TMA; empty where one may."""
        if leaves(self.loop.body, (Break, Continue)):
            return ["a break or continue ends iterations, which a producer cannot foresee"]
        found = [(op, self._why_not_tma(op)) for op in self.producers]
        return [f"{op.label()}: {why}" for op, why in found if why]

    def _why_not_tma(self, op: Copy | Gather) -> str:
        if isinstance(op, Gather):
            return "its rows are looked up one by one"
        if op.best != "tma":
            return "the program asks for another instruction"
        why = why_not_tma(op.src, op.dst, self.lower)
        return why or slot_refusal(op.dst.buffer, self.stages)


def _places(op: Copy | Gather) -> Sequence[Expr]:
    """What says where a copy reads."""
    if isinstance(op, Copy):
        return op.src.starts
    return op.indices if op.when is None else (*op.indices, op.when)


def _covers(region: Region) -> bool:
    starts_at_zero = all(const_int(s) == 0 for s in region.starts)
    pairs = zip(region.extents, region.buffer.shape, strict=True)
    return starts_at_zero and all(const_int(e) == const_int(n) for e, n in pairs)


def _may_specialise(
    kernel: Kernel, loops: Sequence[Candidate], ctx: PassContext
) -> tuple[bool, str]:
    """Whether the kernel gets a producer warpgroup, and the reason either way."""
    if not ctx.target.has(Feature.TMA, Feature.MBARRIER):
        return False, f"{ctx.target} has no TMA"
    if ctx.option("tl.disable_warp_specialized", False):
        return False, "tl.disable_warp_specialized is set"
    if ctx.option("tl.disable_tma_lower", False):
        return False, "tl.disable_tma_lower is set"
    threads = kernel.num_threads
    if threads % WARPGROUP or threads + WARPGROUP > ctx.target.limits.threads_per_block:
        return False, f"{threads} threads leave no place for a producer warpgroup"
    why = _thread_use(kernel)
    if why:
        return False, why
    wanted = [c for c in loops if c.stages >= 1 and c.producers]
    _, rest = split_scalar(kernel)
    for candidate in wanted:
        if not any(s is candidate.loop for s in kernel.body.body):
            return False, "a pipelined loop is nested in another statement"
        loop = candidate.loop
        places = [i for op in candidate.producers for i in _places(op)]
        missing = unavailable([*places, loop.start, loop.extent], rest)
        if missing:
            return False, missing
        refusals = candidate.tma_refusals()
        if refusals:
            return False, refusals[0]
    return bool(wanted), "every producer copy is a TMA load"


def _thread_use(kernel: Kernel) -> str:
    """What the program does with its threads that keeps them one role; empty: nothing."""
    if len(kernel.threads) > 1 and any(t > 1 for t in kernel.threads[1:]):
        return "the block's threads have more than one axis"
    if any(n is v for v in kernel.thread_vars for n in walk(kernel.body)):
        return "the program uses the thread index itself"
    if any(_joins_threads(n) for n in walk(kernel.body)):
        return "the program divides or synchronises its threads itself"
    return ""


def _joins_threads(n: Node) -> bool:
    """Whether a statement of the program cannot be moved into one of two warp roles."""
    if not isinstance(n, Invoke):
        return isinstance(n, WarpRoles | BarrierInit | RegisterBudget)
    record = n.intrinsic
    barrier = any(p.role == "barrier" for p in record.operands)
    return barrier or record.waits or record.group != "thread" or n.result is not None


def _decide(c: Candidate, ctx: PassContext, specialise: bool, why: str) -> PipelinePlan:
    mechanism: Mechanism = "sync"
    if not c.producers or c.stages < 1:
        reason = c.refusals[0] if c.refusals else (
            "num_stages = 0: load, wait, compute" if c.stages < 1 else "nothing to load ahead"
        )  # fmt: skip
    elif specialise:
        mechanism, reason = "tma", why
    elif c.stages > 1 and ctx.target.has(Feature.CP_ASYNC):
        mechanism, reason = "cp.async", f"cp.async in one instruction stream ({why})"
    else:
        reason = f"one stage cannot overlap in one instruction stream ({why})"
    stages = c.stages if mechanism != "sync" else 1
    producers = c.producers if mechanism != "sync" else []
    names = [op.dst.buffer for op in producers]
    engines = {"tma": "TMA", "cp.async": "cp.async", "sync": "threads"}
    return PipelinePlan(
        loop=c.loop.var.name,
        kernel="",
        mechanism=mechanism,
        num_stages=stages,
        prefetch={"tma": stages, "cp.async": stages - 1, "sync": 0}[mechanism],
        trip_count=const_int(c.loop.extent),
        producers=tuple(_planned_copy(op, engines[mechanism], c.lower) for op in producers),
        consumers=tuple(_planned(s, c.lower) for s in _work(c, mechanism)),
        buffers=tuple(VersionedBuffer(b, stages, _bytes(b)) for b in names),
        roles=_roles(c.kernel, mechanism, ctx),
        barriers=(),
        loc=c.loop.loc,
        reason=f"pipeline over {c.loop.var.name}: {reason}",
    )


def _work(c: Candidate, mechanism: Mechanism) -> Iterable[Stmt]:
    body = c.consumers if mechanism != "sync" else list(c.loop.body.body)
    return [s for s in body if not isinstance(s, Alloc | Let)]


def _bytes(buffer: Buffer) -> int:
    count = buffer.dtype.bytes
    for extent in buffer.static_shape:
        count *= extent
    return count


def _planned_copy(op: Copy | Gather, engine: str, lower: LowerContext) -> PlannedOp:
    if engine == "cp.async" and isinstance(op, Copy) and async_width(op.src, op.dst, lower) is None:
        engine = "threads"
    return PlannedOp(op.label(), "copy", engine, _bytes(op.dst.buffer), op.loc, op)


def _planned(stmt: Stmt, lower: LowerContext) -> PlannedOp:
    if isinstance(stmt, Gemm):
        plan = plan_of(stmt, lower)
        return PlannedOp(stmt.label(), "gemm", plan.instruction, 0, stmt.loc, stmt)
    label = stmt.label() if isinstance(stmt, TileOp) else _statement_label(stmt)
    kind: Any = "copy" if isinstance(stmt, Copy) else "compute"
    return PlannedOp(label, kind, "threads", 0, stmt.loc, stmt)


def _statement_label(stmt: Stmt) -> str:
    written = [t.buffer.name for t in touches(stmt) if t.is_write]
    what = "parallel" if isinstance(stmt, ParallelFor) else "compute"
    return f"{what} {written[0]}" if written else what


def _roles(kernel: Kernel, mechanism: Mechanism, ctx: PassContext) -> tuple[RolePlan, ...]:
    threads = kernel.num_threads
    if mechanism != "tma":
        return (RolePlan("all", 0, threads, None),)
    wishes: dict[str, Any] = dict(kernel.attrs)
    if not REGISTER_WISHES.intersection(wishes) and _one_warp_loads(kernel, ctx):
        return (RolePlan("consumer", 0, threads, None), RolePlan("producer", threads, WARP, None))
    keep = "keep_registers" in wishes
    mine = wishes.get("consumer_registers", consumer_registers(threads))
    spared = wishes.get("producer_registers", PRODUCER_REGISTERS)
    return (
        RolePlan("consumer", 0, threads, None if keep else mine),
        RolePlan("producer", threads, WARPGROUP, None if keep else spared),
    )


REGISTER_WISHES = frozenset({"keep_registers", "consumer_registers", "producer_registers"})
PRODUCER_REGISTERS = 24
DRAWING_REGISTERS = 32  # of a producer that draws tiles: fewer spill
REGISTERS_PER_WARPGROUP_SLOT = 512  # 64 K registers / 128 threads
MAX_PRODUCER_REGISTERS = 40
MAX_REGISTERS = 240  # largest multiple of 8 that setmaxnreg takes below the hard limit of 255
SCHEDULERS = 4  # of a multiprocessor: each has a quarter of its registers


def _one_warp_loads(kernel: Kernel, ctx: PassContext) -> bool:
    """Whether a producer of one warp leaves the consumers enough registers without setmaxnreg,
    which moves registers between whole warpgroups. A warp more on one of the schedulers costs the
    warps of all of them (measured: 168 registers a thread at 288 threads)."""
    threads = kernel.num_threads
    warps = -(-(threads // WARP + 1) // SCHEDULERS)
    share = ctx.target.limits.registers_per_sm // SCHEDULERS // (warps * WARP) // 8 * 8
    tiles = (n.buffer for n in walk(kernel) if isinstance(n, Alloc))
    held = sum(_bytes(b) for b in tiles if b.scope is Scope.FRAGMENT) // 4 // threads
    return bool(setting(ctx, PRODUCER_WARP)) and held + REGISTERS_BESIDE_TILES <= share


def consumer_registers(threads: int, producer: int = PRODUCER_REGISTERS) -> int:
    """Registers per consumer thread when the producer keeps `producer` or more: a multiple of 8
    for setmaxnreg."""
    groups = threads // WARPGROUP
    return min(MAX_REGISTERS, (_register_pool(groups + 1) - producer) // groups // 8 * 8)


def drawing_budgets(threads: int) -> dict[str, int]:
    """Registers of either role when the producer draws tiles: it gets what consumers leave."""
    mine, groups = consumer_registers(threads, DRAWING_REGISTERS), threads // WARPGROUP
    left = _register_pool(groups + 1) - groups * mine
    return {"consumer": mine, "producer": min(left, MAX_PRODUCER_REGISTERS)}


def _register_pool(groups: int) -> int:
    """What setmaxnreg can share out among so many warpgroups, a thread of each: what the block
    had at its launch, where threads have equal numbers of registers, in steps of 8."""
    return REGISTERS_PER_WARPGROUP_SLOT // groups // 8 * 8 * groups
