"""warp-specialize: realise a TMA plan as two warp roles joined by a ring of mbarriers.

    producer, one thread, use k of the ring:  wait empty; expect bytes on full; TMA loads
    consumer, use k:                          wait full; compute; arrive on empty

The producer waits for the phase of `empty` opposite to the use's, which a fresh barrier passes at
once (PTX ISA, "mbarrier"). The loop over tiles of a persistent kernel moves into both roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tilelab.ir import (
    Alloc,
    Expr,
    For,
    If,
    Kernel,
    Let,
    LoopKind,
    Seq,
    Stmt,
    Var,
    as_expr,
    binary,
    walk,
)
from tilelab.ir.rewrite import substitute
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.drawn_tiles import Draw, computed_tiles, loaded_tiles, make_draw
from tilelab.passes.early_loads import early_rings, use_of
from tilelab.passes.hoist import split_scalar
from tilelab.passes.in_flight import released_late, runs_on
from tilelab.passes.lowering_context import planning_context
from tilelab.passes.masks import rows_of
from tilelab.passes.own_trips import Consumers, own_trips
from tilelab.passes.persist import bound_variables, tile_loop
from tilelab.passes.plan import RolePlan
from tilelab.passes.plan_pipeline import (
    PRODUCER_REGISTERS,
    WARPGROUP,
    consumer_registers,
    drawing_budgets,
    plan_of_loop,
)
from tilelab.passes.ring import Ring, make_rings, prepare, record_barriers, span, work_of
from tilelab.passes.versions import entries_named, in_slot, sequence
from tilelab.passes.warpgroups import name_warpgroup
from tilelab.target import Feature
from tilelab.thread.intrinsics.barrier import (
    FENCE_PROXY_ASYNC,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT_TX,
    MBARRIER_WAIT,
)
from tilelab.thread.intrinsics.warp import warpgroup_reg_alloc, warpgroup_reg_dealloc
from tilelab.thread.nodes import Invoke, Role, WarpRoles

USER_THREADS = "user_threads"


@dataclass(frozen=True)
class Split:
    """A kernel taken apart: `before` computes scalars that both roles need, `rest` is work of the
    consumers and the rings' loops. `tiles` is the loop around all of it, if there is one."""

    before: list[Stmt]
    rest: list[Stmt]
    rings: dict[int, list[Ring]]
    early: dict[int, Ring]
    tiles: For | None
    draw: Draw | None
    ctx: PassContext

    @property
    def every_ring(self) -> list[Ring]:
        in_loops = [ring for of_loop in self.rings.values() for ring in of_loop]
        drawn = [] if self.draw is None else [self.draw.ring]
        return [*in_loops, *self.early.values(), *drawn]

    @property
    def first_ring(self) -> Ring:
        return self.every_ring[0]

    def role(self, name: str) -> RolePlan:
        return next(r for r in self.first_ring.plan.roles if r.name == name)


@kernel_pass("warp-specialize", needs=("planned",))
def warp_specialize(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Split kernels with TMA plans into a producer role and consumer warpgroups."""
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
    rings = make_rings(loops, kernel, thread, tiles, ctx)
    before, rest = split_scalar(program)
    in_loops = [ring for of_loop in rings.values() for ring in of_loop]
    early = early_rings(program, rest, in_loops, tiles, ctx)
    record_barriers(in_loops[0].plan, list(early.values()), ctx)
    draw = make_draw(tiles, in_loops[0], threads)
    if draw is not None:
        before = [s for s in before if not (isinstance(s, Let) and s.var is draw.of.tile)]
    split = Split(before, rest, rings, early, tiles, draw, ctx)
    consumer = _consumer(split, threads, kernel)
    roles = (
        Role("consumer", 0, threads, consumer, apart=_apart(consumer)),
        Role("producer", threads, extra, _producer(split, threads)),
    )
    body = [
        *(s for s in kernel.body.body if _stays(s, split.every_ring)),
        *(s for ring in split.every_ring for s in ring.allocations()),
        *(() if draw is None else draw.allocations()),
        *prepare(split.every_ring, kernel, thread),
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


def _apart(role: Seq) -> int:
    """How many threads of a role go on by themselves in its loops; 0: all of them together."""
    loops = (n for n in walk(role) if isinstance(n, For))
    return WARPGROUP if any(rows_of(loop) for loop in loops) else 0


def _stays(stmt: Stmt, rings: list[Ring]) -> bool:
    """Whether a statement allocates a buffer that no ring has replaced."""
    return isinstance(stmt, Alloc) and not any(id(stmt.buffer) in r.slots for r in rings)


def _setmaxnreg(split: Split, role: str) -> list[Stmt]:
    ctx, registers = split.ctx, split.role(role).registers
    if not ctx.target.has(Feature.SETMAXNREG) or ctx.option("tl.disable_setmaxnreg", False):
        return []
    if registers is None:
        return []
    consumers = split.role("consumer")
    usual = consumer_registers(consumers.threads), PRODUCER_REGISTERS
    if split.draw is not None and (consumers.registers, split.role("producer").registers) == usual:
        registers = drawing_budgets(consumers.threads)[role]
    make = warpgroup_reg_alloc if role == "consumer" else warpgroup_reg_dealloc
    return [Invoke(make(registers), (), loc=split.first_ring.loop.loc)]


def _over_tiles(split: Split, body: Sequence[Stmt], role: str) -> list[Stmt]:
    """A role's work for all tiles of its block."""
    if split.tiles is None:
        return list(body)
    start = [s for ring in split.every_ring for s in ring.from_zero()]
    inside = (*split.before, *body)
    if split.draw is not None and role == "producer":
        return [*start, *loaded_tiles(split.draw, split.tiles, inside)]
    if split.draw is not None:
        return [*start, computed_tiles(split.draw, split.tiles, inside)]
    return [*start, replace(split.tiles, body=Seq(inside, loc=split.tiles.loc))]


def _consumer(split: Split, threads: int, kernel: Kernel) -> Seq:
    out: list[Stmt] = []
    named = name_warpgroup(split.first_ring.thread, threads)
    lower = planning_context(kernel, split.ctx, threads)
    k = use_of(split.tiles)
    for stmt in split.rest:
        rings, early = split.rings.get(id(stmt)), split.early.get(id(stmt))
        if early is not None:
            out.append(_arrived(early, k))
        else:
            others = [s for s in split.rest if s is not stmt]
            mine = Consumers(named.var, others, lower, split.ctx)
            out.extend([stmt] if rings is None else _consumer_loop(rings, threads, mine))
    for ring in split.early.values():
        last = span(out, ring.slots.keys())[1] + 1
        freed = [] if ring.once else _release(ring, k, threads)
        out = [*in_slot(out[:last], ring.slots, ring.slot(k)), *freed, *out[last:]]
    apart = any(isinstance(s, For) and rows_of(s) for s in out)
    names = [named] if apart else []
    return Seq((*_setmaxnreg(split, "consumer"), *names, *_over_tiles(split, out, "consumer")))


def _consumer_loop(rings: list[Ring], threads: int, of: Consumers) -> list[Stmt]:
    """The loop's work, each ring's slot waited for before its first reader and freed behind its
    last one (a single ring: around the whole body)."""
    loop = rings[0].loop
    k, named = rings[0].named_use(loop)
    work = work_of(loop, (c for ring in rings for c in ring.copies))
    gemm = runs_on(rings[0], work, threads, of.ctx) if len(rings) == 1 else None
    if gemm is not None:
        ring = rings[0]
        before_loop, body, after = released_late(ring, gemm, k)
        inner = in_slot(body, ring.slots, ring.slot(k))
        run = ring.counted(_serial(loop, [*named, _arrived(ring, k), *inner]))
        return [*before_loop, *run, *after]
    before: dict[int, list[Stmt]] = {}
    behind: dict[int, list[Stmt]] = {}
    for ring in rings:
        whole = (0, len(work) - 1)
        first, last = span(work, ring.slots.keys()) if len(rings) > 1 else whole
        before.setdefault(first, []).append(_arrived(ring, k))
        behind.setdefault(last, []).extend(_release(ring, k, threads))
    slots = {i: b for ring in rings for i, b in ring.slots.items()}
    body = list(named)
    for place, stmt in enumerate(in_slot(work, slots, rings[0].slot(k))):
        body += [*before.get(place, ()), stmt, *behind.get(place, ())]
    left_out = list(named)
    for ring in rings:
        left_out += [_arrived(ring, k), *_release(ring, k, threads)]
    whole = _serial(loop, body)
    return rings[0].counted(whole, own_trips(whole, work, left_out, of))


def _arrived(ring: Ring, k: Expr) -> Stmt:
    why = "the slot's tiles have arrived"
    return Invoke(MBARRIER_WAIT, (ring.full(k), ring.phase(k)), why, loc=ring.loop.loc)


def _release(ring: Ring, k: Expr, threads: int) -> list[Stmt]:
    """Tell the producer that slot k has been read."""
    loc = ring.loop.loc
    release: Stmt = Invoke(MBARRIER_ARRIVE, (ring.empty(k),), "the slot may be refilled", loc=loc)
    if ring.arrivals == threads:
        # Measured on an H200: without it a slow ldmatrix is overtaken by the refill of its slot.
        why = "what threads read of the slot has been read"
        return [Invoke(FENCE_PROXY_ASYNC, (), why, loc=loc), release]
    return [If(binary("==", ring.thread % WARPGROUP, 0), Seq((release,), loc=loc), loc=loc)]


def _serial(loop: For, body: Sequence[Stmt]) -> For:
    attrs = tuple(a for a in loop.attrs if a[0] != "plan")
    return replace(
        loop, kind=LoopKind.SERIAL, num_stages=None, attrs=attrs, body=sequence(body, loop)
    )


def _producer(split: Split, threads: int) -> Seq:
    ring = split.first_ring
    body: list[Stmt] = []
    for stmt in split.rest:
        if id(stmt) in split.early:
            body += _fill(split.early[id(stmt)], use_of(split.tiles))
        elif id(stmt) in split.rings:
            rings = split.rings[id(stmt)]
            body += rings[0].counted(_producer_loop(rings))
    own = _renamed(_over_tiles(split, body, "producer"))
    one_thread = If(binary("==", ring.thread, threads), own, loc=ring.loop.loc)
    return Seq((*_setmaxnreg(split, "producer"), one_thread))


def _renamed(body: list[Stmt]) -> Seq:
    """A role's own copy of statements that another role runs too: the variables are its own."""
    whole = Seq(tuple(body))
    own: dict[Var, Expr] = {v: Var(v.name, v.dtype, v.lo, v.hi) for v in bound_variables(whole)}
    return substitute(whole, own)


def _producer_loop(rings: list[Ring]) -> For:
    loop = rings[0].loop
    k, named = rings[0].named_use(loop)
    entries, copies = entries_named(c for ring in rings for c in ring.copies)
    rest = iter(copies)
    mine = (replace(ring, copies=tuple(islice(rest, len(ring.copies)))) for ring in rings)
    return _serial(loop, [*named, *entries, *(s for ring in mine for s in _fill(ring, k))])


def _fill(ring: Ring, k: Expr) -> list[Stmt]:
    """Load a ring's tiles into slot k, once it is free."""
    loc, copies = ring.loop.loc, [replace(c, barrier=ring.full(k)) for c in ring.copies]
    wait: list[Stmt] = []
    if not ring.once:
        free = (ring.empty(k), binary("^", ring.phase(k), 1))
        wait = [Invoke(MBARRIER_WAIT, free, "the slot is free", loc=loc)]
    return [
        *wait,
        Invoke(MBARRIER_EXPECT_TX, (ring.full(k), as_expr(ring.bytes)), loc=loc),
        *in_slot(copies, ring.slots, ring.slot(k)),
    ]


__all__ = ["USER_THREADS", "warp_specialize"]
