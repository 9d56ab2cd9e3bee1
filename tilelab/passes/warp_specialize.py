"""warp-specialize: realise a TMA plan as two warp roles joined by a ring of mbarriers.

    producer, one thread, use k of the ring:  wait empty; expect bytes on full; TMA loads
    consumer, use k:                          wait full; compute; arrive on empty

The producer waits for the phase of `empty` opposite to the use's, which a fresh barrier passes at
once (PTX ISA, "mbarrier"). The loop over tiles of a persistent kernel moves into both roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilelab.ir import (
    Alloc,
    Expr,
    For,
    Function,
    If,
    Kernel,
    LoopKind,
    Seq,
    Stmt,
    Var,
    as_expr,
    binary,
    map_children,
)
from tilelab.ir.rewrite import substitute
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.hoist import split_scalar
from tilelab.passes.in_flight import released_late, runs_on
from tilelab.passes.persist import bound_variables, tile_loop
from tilelab.passes.plan import RolePlan
from tilelab.passes.plan_pipeline import WARPGROUP, plan_of_loop
from tilelab.passes.ring import Ring, make_ring, prepare, record_barriers
from tilelab.passes.versions import in_slot, sequence
from tilelab.target import Feature
from tilelab.thread.intrinsics.barrier import (
    FENCE_PROXY_ASYNC,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT_TX,
    MBARRIER_WAIT,
)
from tilelab.thread.intrinsics.warp import warpgroup_reg_alloc, warpgroup_reg_dealloc
from tilelab.thread.nodes import Invoke, Role, WarpRoles
from tilelab.tile.ops.copy import Copy

USER_THREADS = "user_threads"


@tile_pass("warp-specialize", needs=("planned",))
def warp_specialize(function: Function, ctx: PassContext) -> Function:
    """Split kernels with TMA plans into a producer role and consumer warpgroups."""
    return map_children(function, lambda n: _kernel(n, ctx) if isinstance(n, Kernel) else n)


@dataclass(frozen=True)
class Split:
    """A kernel taken apart: `before` computes scalars that both roles need, `rest` is work of the
    consumers and the rings' loops. `tiles` is the loop around all of it, if there is one."""

    before: list[Stmt]
    rest: list[Stmt]
    rings: dict[int, Ring]
    tiles: For | None
    ctx: PassContext

    @property
    def first_ring(self) -> Ring:
        return next(iter(self.rings.values()))

    def role(self, name: str) -> RolePlan:
        return next(r for r in self.first_ring.plan.roles if r.name == name)


def _kernel(kernel: Kernel, ctx: PassContext) -> Kernel:
    tiles = tile_loop(kernel)
    program = kernel if tiles is None else replace(kernel, body=tiles.body)
    loops = [
        (s, plan)
        for s in program.body.body
        if isinstance(s, For) and (plan := plan_of_loop(s)) and plan.mechanism == "tma"
    ]
    if not loops:
        return kernel
    threads = kernel.num_threads
    extra = next(r for r in loops[0][1].roles if r.name == "producer").threads
    thread = replace(kernel.thread_vars[0], lo=0, hi=threads + extra - 1)
    rings = {
        id(s): make_ring(s, plan, kernel, i, thread, tiles) for i, (s, plan) in enumerate(loops)
    }
    for ring in rings.values():
        record_barriers(ring, ctx)
    split = Split(*split_scalar(program), rings, tiles, ctx)
    roles = (
        Role("consumer", 0, threads, _consumer(split, threads)),
        Role("producer", threads, extra, _producer(split, threads)),
    )
    body = [
        *(s for s in kernel.body.body if isinstance(s, Alloc) and not _replaced(s, rings)),
        *(s for ring in rings.values() for s in ring.allocations()),
        *prepare(rings, kernel, thread),
        *(split.before if tiles is None else ()),
        WarpRoles(roles, loc=kernel.loc),
    ]
    unit = "a producer warpgroup" if extra == WARPGROUP else "a producer warp"
    ctx.note(f"{extra} threads are added: {unit} that only loads", kernel)
    return replace(
        kernel,
        threads=(threads + extra,),
        thread_vars=(thread,),
        body=Seq(tuple(body), loc=kernel.loc),
        attrs=(*kernel.attrs, (USER_THREADS, kernel.threads)),
    )


def _replaced(alloc: Alloc, rings: dict[int, Ring]) -> bool:
    return any(id(alloc.buffer) in ring.slots for ring in rings.values())


def _setmaxnreg(split: Split, role: str) -> list[Stmt]:
    ctx, registers = split.ctx, split.role(role).registers
    if not ctx.target.has(Feature.SETMAXNREG) or ctx.option("tl.disable_setmaxnreg", False):
        return []
    if registers is None:
        return []
    make = warpgroup_reg_alloc if role == "consumer" else warpgroup_reg_dealloc
    return [Invoke(make(registers), (), loc=split.first_ring.loop.loc)]


def _over_tiles(split: Split, body: Sequence[Stmt]) -> list[Stmt]:
    """A role's work for all tiles of its block."""
    if split.tiles is None:
        return list(body)
    start = [s for ring in split.rings.values() for s in ring.from_zero()]
    inside = Seq((*split.before, *body), loc=split.tiles.loc)
    return [*start, replace(split.tiles, body=inside)]


def _consumer(split: Split, threads: int) -> Seq:
    out: list[Stmt] = []
    for stmt in split.rest:
        ring = split.rings.get(id(stmt))
        out.extend([stmt] if ring is None else _consumer_loop(ring, threads, split.ctx))
    return Seq((*_setmaxnreg(split, "consumer"), *_over_tiles(split, out)))


def _consumer_loop(ring: Ring, threads: int, ctx: PassContext) -> list[Stmt]:
    loop = ring.loop
    k, named = ring.named_use(loop)
    producers = [p.op for p in ring.plan.producers]
    work = [s for s in loop.body.body if not any(s is p for p in producers)]
    loc = loop.loc
    arrived = Invoke(
        MBARRIER_WAIT, (ring.full(k), ring.phase(k)), "the slot's tiles have arrived", loc=loc
    )
    gemm = runs_on(ring, work, threads, ctx)
    if gemm is not None:
        body, after = released_late(ring, gemm, k)
        inner = in_slot(body, ring.slots, ring.slot(k))
        return [*ring.counted(_serial(loop, [*named, arrived, *inner])), *after]
    release: Stmt = Invoke(MBARRIER_ARRIVE, (ring.empty(k),), "the slot may be refilled", loc=loc)
    before: tuple[Stmt, ...] = ()
    if ring.arrivals == threads:
        # Measured on an H200: without it a slow ldmatrix is overtaken by the refill of its slot.
        why = "what threads read of the slot has been read"
        before = (Invoke(FENCE_PROXY_ASYNC, (), why, loc=loc),)
    else:
        release = If(binary("==", ring.thread % WARPGROUP, 0), Seq((release,), loc=loc), loc=loc)
    body = [*named, arrived, *in_slot(work, ring.slots, ring.slot(k)), *before, release]
    return ring.counted(_serial(loop, body))


def _serial(loop: For, body: Sequence[Stmt]) -> For:
    attrs = tuple(a for a in loop.attrs if a[0] != "plan")
    return replace(
        loop, kind=LoopKind.SERIAL, num_stages=None, attrs=attrs, body=sequence(body, loop)
    )


def _producer(split: Split, threads: int) -> Seq:
    ring = split.first_ring
    loops = [split.rings[id(s)] for s in split.rest if id(s) in split.rings]
    body = [s for r in loops for s in r.counted(_producer_loop(r))]
    own = _renamed(_over_tiles(split, body))
    one_thread = If(binary("==", ring.thread, threads), own, loc=ring.loop.loc)
    return Seq((*_setmaxnreg(split, "producer"), one_thread))


def _renamed(body: list[Stmt]) -> Seq:
    """A role's own copy of statements that another role runs too: the variables are its own."""
    whole = Seq(tuple(body))
    own: dict[Var, Expr] = {v: Var(v.name, v.dtype, v.lo, v.hi) for v in bound_variables(whole)}
    return substitute(whole, own)


def _producer_loop(ring: Ring) -> For:
    loop, loc = ring.loop, ring.loop.loc
    k, named = ring.named_use(loop)
    copies = [
        replace(p.op, barrier=ring.full(k)) for p in ring.plan.producers if isinstance(p.op, Copy)
    ]
    body: list[Stmt] = [
        *named,
        Invoke(
            MBARRIER_WAIT,
            (ring.empty(k), binary("^", ring.phase(k), 1)),
            "the slot is free",
            loc=loc,
        ),
        Invoke(MBARRIER_EXPECT_TX, (ring.full(k), as_expr(ring.bytes)), loc=loc),
        *in_slot(copies, ring.slots, ring.slot(k)),
    ]
    return _serial(loop, body)


__all__ = ["USER_THREADS", "warp_specialize"]
