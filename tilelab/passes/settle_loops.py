"""settle-loops: T.Parallel loops get constant extents; copies of one element in them are stores.

Hides how an extent known only at run time is shared out: where it indexes a fragment, the
fragment's extent bounds it; elsewhere the threads take its points in turns. A loop that a condition
keeps within a fragment it indexes from an offset on ends where the condition does: the threads
that hold that part then have all of its points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tilelab.ir import (
    Binary,
    Expr,
    For,
    If,
    Kernel,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
    cast,
    ceildiv,
    const_int,
    walk,
)
from tilelab.ir.build import conjuncts
from tilelab.ir.rewrite import rewrite_statements, substitute
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.infer_layouts import threads_of
from tilelab.tile.elementwise import both
from tilelab.tile.ops.atomic import AtomicFill
from tilelab.tile.ops.copy import Copy


@kernel_pass("settle-loops", needs=("checked",))
def settle_loops(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Bound T.Parallel loops, and turn copies of single elements inside of them into stores."""
    threads = {id(n): count for n, count in threads_of(kernel) if isinstance(n, ParallelFor)}

    def settle(node: Node) -> Node | None:
        if not isinstance(node, ParallelFor):
            return None
        loop = rewrite_statements(node, _store_of)
        if all(const_int(e) is not None for e in loop.extents):
            shorter = _shortened(loop)
            if shorter is not loop:
                ctx.note("points that the condition leaves out are no part of the loop", node)
            return shorter
        ctx.note("extents known only at run time: points beyond them are skipped", node)
        return _bounded(loop, threads[id(node)])

    return rewrite_statements(kernel, settle)


def _store_of(node: Node) -> Node | None:
    """The store that a copy of one element is; the instruction that updates one."""
    if isinstance(node, AtomicFill) and all(const_int(e) == 1 for e in node.dst.extents):
        return node.at(node.dst.buffer, (as_expr(0),) * len(node.dst.tile_shape))
    if not isinstance(node, Copy):
        return None
    regions = (node.src, node.dst)
    if any(const_int(e) != 1 for r in regions for e in r.extents):
        return None
    value = cast(Load(node.src.buffer, node.src.starts), node.dst.dtype)
    return Store(node.dst.buffer, node.dst.starts, value, loc=node.loc)


def _shortened(loop: ParallelFor) -> ParallelFor:
    """The loop without the points past a constant bound of its whole body, where it would index a
    fragment past its end."""
    inner = loop.body.body[0] if len(loop.body.body) == 1 else None
    if not isinstance(inner, If) or inner.orelse is not None or inner.threads is not None:
        return loop
    extents = [const_int(e) or 0 for e in loop.extents]
    left: Expr | None = None
    for term in conjuncts(inner.cond):
        axis, end = _end(term, loop)
        if end < 1 or end >= extents[axis] or not _runs_past(loop, loop.vars[axis]):
            left = both(left, term)
        else:
            extents[axis] = end
    if extents == [const_int(e) for e in loop.extents]:
        return loop
    return _parallel(loop, loop.vars, list(map(as_expr, extents)), inner.then, left)


def _end(term: Expr, loop: ParallelFor) -> tuple[int, int]:
    """The axis whose variable is below a number where `term` holds, and the number; 0 if none."""
    if isinstance(term, Binary) and term.op == "<":
        for axis, var in enumerate(loop.vars):
            if var is term.a:
                return axis, const_int(term.b) or 0
    return 0, 0


def _runs_past(loop: ParallelFor, var: Var) -> bool:
    """Whether `var` plus something indexes a fragment, past its end for some point."""
    for n in walk(loop.body):
        if isinstance(n, Load | Store) and n.buffer.scope is Scope.FRAGMENT:
            for index, size in zip(n.indices, n.buffer.shape, strict=True):
                if index is not var and any(x is var for x in walk(as_expr(index))):
                    most = as_expr(index).bounds[1]
                    if most is None or most >= (const_int(size) or 0):
                        return True
    return False


def _bounded(loop: ParallelFor, threads: int) -> Stmt:
    """A loop with extents known at run time as loops with constant extents and a condition."""
    extents = list(map(as_expr, loop.extents))
    guard: Expr | None = None
    for axis, (var, extent) in enumerate(zip(loop.vars, extents, strict=True)):
        most = None if const_int(extent) is not None else _fragment_extent(loop, var)
        if most is not None:
            guard = both(guard, binary("<", var, extent))
            extents[axis] = as_expr(most)
    open_axes = [n for n, e in enumerate(extents) if const_int(e) is None]
    if not open_axes:
        return _parallel(loop, loop.vars, extents, loop.body, guard)
    return _in_turns(loop, extents, open_axes, guard, threads)


def _in_turns(
    loop: ParallelFor, extents: Sequence[Expr], open_axes: list[int], guard: Expr | None,
    threads: int,
) -> Stmt:  # fmt: skip
    """The last open axis is cut into as many rows as give each thread a point; the axes before it
    are loops around."""
    *outer, last = open_axes
    fixed = prod(const_int(e) or 1 for e in extents)
    rows = max(-(-threads // max(fixed, 1)), 1)
    var = loop.vars[last]
    turn = Var(f"{var.name}_turn", var.dtype, lo=0)
    row = Var(var.name, var.dtype, lo=0, hi=rows - 1)
    place = turn * rows + row
    body = substitute(loop.body, {var: place})
    others = None if guard is None else substitute(guard, {var: place})
    guard = both(others, binary("<", place, extents[last]))
    inner = [n for n in range(len(extents)) if n not in outer]
    vars = tuple(row if n == last else loop.vars[n] for n in inner)
    sizes = [as_expr(rows) if n == last else extents[n] for n in inner]
    made: Stmt = _parallel(loop, vars, sizes, body, guard)
    made = _serial(turn, ceildiv(extents[last], rows), made)
    for axis in reversed(outer):
        made = _serial(loop.vars[axis], extents[axis], made)
    return made


def _parallel(
    loop: ParallelFor, vars: tuple[Var, ...], extents: Sequence[Expr], body: Seq, guard: Expr | None
) -> ParallelFor:
    if guard is not None:
        body = Seq((If(guard, body, loc=loop.loc),), loc=body.loc)
    sizes = [const_int(e) or 0 for e in extents]
    known = [Var(v.name, v.dtype, lo=0, hi=n - 1) for v, n in zip(vars, sizes, strict=True)]
    body = substitute(body, dict(zip(vars, known, strict=True)))
    return replace(loop, vars=tuple(known), extents=tuple(sizes), body=body)


def _serial(var: Var, extent: Expr, body: Stmt) -> For:
    zero, one = as_expr(0), as_expr(1)
    return For(var, zero, extent, one, LoopKind.SERIAL, Seq((body,), loc=body.loc), loc=body.loc)


def _fragment_extent(loop: ParallelFor, var: Var) -> int | None:
    """The extent of a fragment's axis that the variable alone indexes: no point lies beyond it."""
    sizes = [
        const_int(n.buffer.shape[axis])
        for n in walk(loop.body)
        if isinstance(n, Load | Store) and n.buffer.scope is Scope.FRAGMENT
        for axis, index in enumerate(n.indices)
        if index is var
    ]
    return min((s for s in sizes if s is not None), default=None)
