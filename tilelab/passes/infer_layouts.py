"""infer-layouts: collect facts from ops and loops, solve, write layouts into the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tilelab.errors import TileInternalError, TileNotSupported
from tilelab.ir import (
    Alloc,
    Buffer,
    If,
    Kernel,
    Load,
    Node,
    ParallelFor,
    ReducerBuffer,
    Scope,
    Stmt,
    Store,
    as_expr,
    children,
    const_int,
    map_children,
    walk,
)
from tilelab.ir.rewrite import rewrite
from tilelab.layout import Fragment
from tilelab.passes.bank_layouts import bank_layouts
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.copies_of_points import check_copies
from tilelab.passes.defer_sums import joined_again
from tilelab.passes.layout_choices import check_rows, chosen_layouts, held_by_all
from tilelab.passes.layout_solver import LayoutConflict, Solution, solve, unassigned
from tilelab.passes.layout_views import Views
from tilelab.passes.lowering_context import planning_context
from tilelab.passes.parted_loops import part_of, rejoined
from tilelab.passes.picked_rows import unrolled_for, unrolled_vars
from tilelab.passes.plan import LayoutDecision
from tilelab.passes.relayout import resolve
from tilelab.passes.warp_specialize import USER_THREADS
from tilelab.passes.wide_access import wanted_vector
from tilelab.thread.nodes import Role
from tilelab.tile.context import LowerContext
from tilelab.tile.op import Access, Fact, Loop, TileOp
from tilelab.tile.ops.copy import Copy
from tilelab.tile.structure import BANK_LAYOUTS, setting

SPREAD = "spread"


def worker_threads(kernel: Kernel) -> int:
    """Threads that compute: the block without a producer warpgroup."""
    for key, value in kernel.attrs:
        if key == USER_THREADS:
            count = 1
            for t in value:  # type: ignore[attr-defined]
                count *= int(t)  # pyright: ignore[reportUnknownArgumentType]
            return count
    return kernel.num_threads


MAX_RELAYOUTS = 64


@kernel_pass("infer-layouts", needs=("planned",), makes=("layouts",))
def infer_layouts(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Choose a register layout for every fragment and an address map for every shared tile."""
    threads = worker_threads(kernel)
    for _ in range(MAX_RELAYOUTS):
        try:
            facts = [*chosen_layouts(kernel), *_facts(kernel, ctx)]
            facts += held_by_all(kernel, facts, threads)
            solution = solve(facts, threads, Views.of(kernel))
            for loop in (f for f in facts if isinstance(f, Loop)):
                if isinstance(loop.key, ParallelFor):
                    check_copies(loop.key, solution.loops[id(loop.key)])
        except LayoutConflict as conflict:
            joined = joined_again(kernel, conflict.buffer)
            if joined is not None:
                why = "a row's sum is joined in every iteration: layouts differ"
                ctx.note(why, conflict.statement)
                kernel = joined
                continue
            if part_of(conflict.statement) is not None:
                ctx.note("a loop in two parts is one again: layouts differ", conflict.statement)
                kernel = rejoined(kernel)
                continue
            unrolled = unrolled_for(kernel, conflict.statement, conflict.buffer, threads)
            if unrolled is not None:
                why = f"a loop that picks rows of {conflict.buffer.name} is unrolled"
                ctx.note(why, conflict.statement)
                kernel = unrolled
                continue
            step = resolve(kernel, conflict, threads)
            ctx.note(step.note, conflict.statement, level="warning")
            kernel = step.kernel
            continue
        _check_threads(facts, solution)
        check_rows(facts, solution)
        return _finish(kernel, solution, threads, ctx)
    raise TileInternalError(f"layouts still conflict after {MAX_RELAYOUTS} re-layouts")


def _facts(kernel: Kernel, ctx: PassContext) -> list[Fact]:
    """Facts of ops, then of loops: each for the threads that run it."""
    facts: list[Fact] = []
    loops: list[Fact] = []
    contexts: dict[int, LowerContext] = {}
    unrolled = unrolled_vars(kernel)
    for node, threads in threads_of(kernel):
        lower = contexts.get(threads) or planning_context(kernel, ctx, threads)
        contexts[threads] = lower
        if isinstance(node, TileOp):
            facts += [_for_threads(f, threads) for f in node.layout_rule(lower)]
        elif isinstance(node, ParallelFor):
            fact = replace(_loop_fact(node, lower), unrolled=unrolled)
            loops.append(_for_threads(fact, threads))
    return facts + loops


def _for_threads(fact: Fact, threads: int) -> Fact:
    return replace(fact, threads=threads) if isinstance(fact, Loop) else fact


def threads_of(kernel: Kernel) -> Iterator[tuple[Node, int]]:
    """Every node of a kernel's body with the number of threads that run it, parents first."""

    def visit(node: Node, threads: int) -> Iterator[tuple[Node, int]]:
        threads = node.count if isinstance(node, Role) else threads
        if isinstance(node, If) and node.threads is not None:
            threads = node.threads[1]
        yield node, threads
        for child in children(node):
            yield from visit(child, threads)

    return visit(kernel.body, worker_threads(kernel))


def _check_threads(facts: Sequence[Fact], solution: Solution) -> None:
    """TileNotSupported (TL1765) for a fragment that different numbers of threads hold."""
    for fact in facts:
        spread = solution.loops.get(id(fact.key)) if isinstance(fact, Loop) else None
        if isinstance(fact, Loop) and spread is not None and spread.num_threads != fact.threads:
            names = ", ".join(sorted({a.buffer.name for a in fact.accesses}))
            raise TileNotSupported(
                f"{names}: {fact.why} is run by {fact.threads} threads, and the fragment is held "
                f"by {spread.num_threads}",
                code="TL1765", loc=fact.key.loc,
                hint="use the fragment inside one T.ws, or hand it over in shared memory",
            )  # fmt: skip


def _finish(kernel: Kernel, solution: Solution, threads: int, ctx: PassContext) -> Kernel:
    buffers = [n.buffer for n in walk(kernel) if isinstance(n, Alloc)]
    for buffer in unassigned(buffers, solution):
        spread = Fragment.blocked(buffer.static_shape, threads)
        if solution.layout(buffer) is None:  # else a view of it has been laid out by now
            solution.put(buffer, spread, "nothing constrains it: spread evenly")
    if setting(ctx, BANK_LAYOUTS):
        nodes = ((n, planning_context(kernel, ctx, count)) for n, count in threads_of(kernel)
                 if isinstance(n, ParallelFor | Copy))  # fmt: skip
        for chosen in bank_layouts(kernel, list(nodes), solution):
            solution.put(*chosen)
    return _apply(kernel, solution, ctx)


def _loop_fact(loop: ParallelFor, ctx: LowerContext) -> Loop:
    extents = [const_int(e) or 0 for e in loop.extents]
    accesses = tuple(_accesses(loop))
    names = sorted({a.buffer.name for a in accesses})
    why = f"the T.Parallel loop over {', '.join(v.name for v in loop.vars)}"
    why += f" ({', '.join(names)})" if names else ""
    vector = wanted_vector(loop, extents, ctx)
    return Loop(loop, loop.vars, tuple(extents), accesses, why, vector)


def _accesses(loop: ParallelFor) -> Iterator[Access]:
    stores = [n.buffer for n in walk(loop.body) if isinstance(n, Store)]
    gathered = {b for b in stores if isinstance(b, ReducerBuffer)}
    for n in walk(loop.body):
        if isinstance(n, Load | Store) and n.buffer.scope is Scope.FRAGMENT:
            indices = tuple(as_expr(i) for i in n.indices)
            yield Access(n.buffer, indices, isinstance(n, Store), n.buffer in gathered)


def _apply(kernel: Kernel, solution: Solution, ctx: PassContext) -> Kernel:
    """The kernel with layouts in its buffers, and spreads in its loops and copies."""
    placed: dict[int, Buffer] = {}
    for buffer, layout, reason in solution.buffers.values():
        placed[id(buffer)] = replace(buffer, layout=layout)
        ctx.trace.layouts.append(LayoutDecision(placed[id(buffer)], layout, reason))
        ctx.note(f"{buffer.name}: {layout}: {reason}", buffer)
    _join_views(kernel, placed)

    def visit(n: Node) -> Node | None:
        if isinstance(n, Buffer):
            return placed.get(id(n))
        spread = solution.loops.get(id(n))
        return None if spread is None else _with_spread(n, spread, visit)

    done = rewrite(kernel, visit)
    attrs = tuple((k, _map_buffers(v, placed)) for k, v in done.attrs)
    return replace(done, attrs=attrs)


def _join_views(kernel: Kernel, placed: dict[int, Buffer]) -> None:
    """Let views name the storage as it is after the pass."""
    for group in Views.of(kernel).groups:
        storage = placed.get(id(group[0].storage), group[0].storage)
        for buffer in group:
            if buffer.alias_of is not None:
                placed[id(buffer)] = replace(placed.get(id(buffer), buffer), alias_of=storage)


def _with_spread(node: Node, spread: Fragment, visit: object) -> Stmt:
    inner = map_children(node, lambda c: rewrite(c, visit))  # type: ignore[arg-type]
    if isinstance(inner, ParallelFor):
        return replace(inner, attrs=(*inner.attrs, (SPREAD, spread)))
    assert isinstance(inner, TileOp)
    return inner.with_spread(spread)


def _map_buffers(value: object, placed: dict[int, Buffer]) -> object:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType]
        return tuple(_map_buffers(v, placed) for v in items)
    return placed.get(id(value), value)
