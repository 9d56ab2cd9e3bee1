"""warp-specialize: realise a TMA plan as two warp roles joined by a ring of mbarriers.

    producer, one thread, iteration k:  wait empty[k % S]; expect bytes on full[k % S]; TMA loads
    consumer, iteration k:              wait full[k % S]; compute; arrive on empty[k % S]

Barriers of one loop stand in one array: full at 0..S-1, empty at S..2S-1. A barrier's phase of
iteration k is (k / S) % 2; the producer waits for the opposite phase, which a fresh barrier
passes at once (PTX ISA, "mbarrier").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tilelab.dtypes import UINT64
from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    For,
    Function,
    If,
    Kernel,
    LoopKind,
    Node,
    Scope,
    Seq,
    Stmt,
    Var,
    as_expr,
    binary,
    map_children,
    walk,
)
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.hoist import split_scalar
from tilelab.passes.plan import BarrierPlan, PipelinePlan
from tilelab.passes.plan_pipeline import WARPGROUP, plan_of_loop
from tilelab.passes.versions import in_slot, sequence, versioned
from tilelab.target import Feature
from tilelab.thread.intrinsics.barrier import (
    FENCE_PROXY_ASYNC,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT_TX,
    MBARRIER_INIT,
    MBARRIER_INIT_FENCE,
    MBARRIER_WAIT,
    SYNCTHREADS,
)
from tilelab.thread.intrinsics.warp import warpgroup_reg_alloc, warpgroup_reg_dealloc
from tilelab.thread.nodes import Invoke, Ref, Role, WarpRoles
from tilelab.tile.ops.copy import Copy

USER_THREADS = "user_threads"


@dataclass(frozen=True)
class Ring:
    """The slots and barriers of one loop."""

    loop: For
    plan: PipelinePlan
    barrier: Buffer
    slots: dict[int, Buffer]
    arrivals: int  # arrivals that free a slot
    bytes: int
    thread: Var  # threadIdx.x of the block with the producer

    def full(self, k: Expr) -> Ref:
        return Ref(self.barrier, (k % self.plan.num_stages,))

    def empty(self, k: Expr) -> Ref:
        return Ref(self.barrier, (k % self.plan.num_stages + self.plan.num_stages,))

    def phase(self, k: Expr) -> Expr:
        return k // self.plan.num_stages % 2


@tile_pass("warp-specialize", needs=("planned",))
def warp_specialize(function: Function, ctx: PassContext) -> Function:
    """Split kernels with TMA plans into a producer warpgroup and consumer warpgroups."""
    return map_children(function, lambda n: _kernel(n, ctx) if isinstance(n, Kernel) else n)


def _kernel(kernel: Kernel, ctx: PassContext) -> Kernel:
    loops = [
        (s, plan)
        for s in kernel.body.body
        if isinstance(s, For) and (plan := plan_of_loop(s)) and plan.mechanism == "tma"
    ]
    if not loops:
        return kernel
    threads = kernel.num_threads
    thread = replace(kernel.thread_vars[0], lo=0, hi=threads + WARPGROUP - 1)
    rings = {id(s): _ring(s, plan, kernel, i, thread) for i, (s, plan) in enumerate(loops)}
    for ring in rings.values():
        _record_barriers(ring, ctx)
    before, rest = split_scalar(kernel)
    roles = (
        Role("consumer", 0, threads, _consumer(rest, rings, threads, ctx)),
        Role("producer", threads, WARPGROUP, _producer(rest, rings, threads, ctx)),
    )
    body = [
        *(s for s in kernel.body.body if isinstance(s, Alloc) and not _replaced(s, rings)),
        *(Alloc(b, loc=r.loop.loc) for r in rings.values() for b in (r.barrier, *r.slots.values())),
        *_init(rings, kernel, thread),
        *before,
        WarpRoles(roles, loc=kernel.loc),
    ]
    attrs = (*kernel.attrs, (USER_THREADS, kernel.threads))
    total = (threads + WARPGROUP,)
    ctx.note(f"{WARPGROUP} threads are added: a producer warpgroup that only loads", kernel)
    return replace(
        kernel,
        threads=total,
        thread_vars=(thread,),
        body=Seq(tuple(body), loc=kernel.loc),
        attrs=attrs,
    )


def _replaced(alloc: Alloc, rings: dict[int, Ring]) -> bool:
    return any(id(alloc.buffer) in ring.slots for ring in rings.values())


def _ring(loop: For, plan: PipelinePlan, kernel: Kernel, number: int, thread: Var) -> Ring:
    stages = plan.num_stages
    name = "mbarrier" if number == 0 else f"mbarrier_{number}"
    barrier = Buffer(name, (2 * stages,), UINT64, Scope.BARRIER, loc=loop.loc)
    slots = {id(v.buffer): versioned(v.buffer, stages) for v in plan.buffers}
    only_wgmma = all(op.engine.startswith("wgmma") for op in _readers(plan))
    # A finished wgmma group is known to its whole warpgroup; other readers speak for themselves.
    arrivals = kernel.num_threads // WARPGROUP if only_wgmma else kernel.num_threads
    size = sum(v.bytes_per_version for v in plan.buffers)
    return Ring(loop, plan, barrier, slots, arrivals, size, thread)


def _readers(plan: PipelinePlan) -> list[Any]:
    """Consumers that read a slot."""
    ring = [v.buffer for v in plan.buffers]

    def reads_slot(node: Node | None) -> bool:
        return node is not None and any(n is b for n in walk(node) for b in ring)

    return [op for op in plan.consumers if reads_slot(op.op)]


def _record_barriers(ring: Ring, ctx: PassContext) -> None:
    stages = ring.plan.num_stages
    barriers = (
        BarrierPlan("full", stages, 1, ring.bytes, "consumer", "producer"),
        BarrierPlan("empty", stages, ring.arrivals, 0, "producer", "consumer"),
    )
    index = next(i for i, p in enumerate(ctx.trace.pipelines) if p is ring.plan)
    ctx.trace.pipelines[index] = replace(ring.plan, barriers=barriers)


def _init(rings: dict[int, Ring], kernel: Kernel, thread: Var) -> list[Stmt]:
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


def _setmaxnreg(ctx: PassContext, ring: Ring, role: str) -> list[Stmt]:
    if not ctx.target.has(Feature.SETMAXNREG) or ctx.option("tl.disable_setmaxnreg", False):
        return []
    registers = next(r.registers for r in ring.plan.roles if r.name == role)
    if registers is None:
        return []
    make = warpgroup_reg_alloc if role == "consumer" else warpgroup_reg_dealloc
    return [Invoke(make(registers), (), loc=ring.loop.loc)]


def _consumer(rest: list[Stmt], rings: dict[int, Ring], threads: int, ctx: PassContext) -> Seq:
    out: list[Stmt] = _setmaxnreg(ctx, next(iter(rings.values())), "consumer")
    for stmt in rest:
        ring = rings.get(id(stmt))
        out.append(stmt if ring is None else _consumer_loop(ring, threads))
    return Seq(tuple(out))


def _trip(loop: For) -> Expr:
    return (loop.var - loop.start) // loop.step


def _consumer_loop(ring: Ring, threads: int) -> For:
    loop, k = ring.loop, _trip(ring.loop)
    producers = [p.op for p in ring.plan.producers]
    work = [s for s in loop.body.body if not any(s is p for p in producers)]
    loc = loop.loc
    release: Stmt = Invoke(MBARRIER_ARRIVE, (ring.empty(k),), "the slot may be refilled", loc=loc)
    before: tuple[Stmt, ...] = ()
    if ring.arrivals == threads:
        # Measured on an H200: without it a slow ldmatrix is overtaken by the refill of its slot.
        why = "what threads read of the slot has been read"
        before = (Invoke(FENCE_PROXY_ASYNC, (), why, loc=loc),)
    else:
        release = If(binary("==", ring.thread % WARPGROUP, 0), Seq((release,), loc=loc), loc=loc)
    body = [
        Invoke(
            MBARRIER_WAIT, (ring.full(k), ring.phase(k)), "the slot's tiles have arrived", loc=loc
        ),
        *in_slot(work, ring.slots, k % ring.plan.num_stages),
        *before,
        release,
    ]
    return _serial(loop, body)


def _serial(loop: For, body: list[Stmt]) -> For:
    attrs = tuple(a for a in loop.attrs if a[0] != "plan")
    return replace(
        loop, kind=LoopKind.SERIAL, num_stages=None, attrs=attrs, body=sequence(body, loop)
    )


def _producer(rest: list[Stmt], rings: dict[int, Ring], threads: int, ctx: PassContext) -> Seq:
    first = next(iter(rings.values()))
    loops = [_producer_loop(rings[id(s)]) for s in rest if id(s) in rings]
    one_thread = If(binary("==", first.thread, threads), Seq(tuple(loops)), loc=first.loop.loc)
    return Seq((*_setmaxnreg(ctx, first, "producer"), one_thread))


def _producer_loop(ring: Ring) -> For:
    loop = ring.loop
    fresh = Var(loop.var.name, loop.var.dtype, loop.var.lo, loop.var.hi)
    moved = replace(loop, var=fresh)
    k = _trip(moved)
    copies = [
        replace(p.op, barrier=ring.full(k)) for p in ring.plan.producers if isinstance(p.op, Copy)
    ]
    loc = loop.loc
    body: list[Stmt] = [
        Invoke(
            MBARRIER_WAIT,
            (ring.empty(k), binary("^", ring.phase(k), 1)),
            "the slot is free",
            loc=loc,
        ),
        Invoke(MBARRIER_EXPECT_TX, (ring.full(k), as_expr(ring.bytes)), loc=loc),
        *in_slot(copies, ring.slots, k % ring.plan.num_stages, {loop.var: fresh}),
    ]
    return _serial(moved, body)


__all__ = ["USER_THREADS", "warp_specialize"]
