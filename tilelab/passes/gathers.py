"""A pipeline's loads in the form in which other iterations may ask for them: their places spelled
out, and T.Parallel loops that fill a tile from looked-up rows as copies.

Hides which loops those are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilelab.ir import (
    Const,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    Scope,
    Select,
    Stmt,
    Store,
    Var,
    const_int,
    walk,
)
from tilelab.ir.rewrite import map_statements, substitute
from tilelab.passes.guards import let_values
from tilelab.target import Feature
from tilelab.thread.intrinsics.cp_async import CP_ASYNC_COMMIT, cp_async_wait
from tilelab.thread.nodes import Invoke
from tilelab.tile.context import VECTOR_BYTES, LowerContext
from tilelab.tile.op import pick_strategy
from tilelab.tile.operands import whole
from tilelab.tile.ops.async_ops import AsyncCopy
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.gather import Gather, gather_width
from tilelab.tile.ops.im2col import Im2col


def with_plain_places(kernel: Kernel, lower: LowerContext) -> tuple[Kernel, dict[int, Stmt]]:
    """The kernel with pipelined copies whose places stand for themselves, names of the loop's body
    (`row = table[b, k]`) put into them, so that other iterations may ask for them; loops that
    gather rows are such copies too. And what those statements were, by id."""
    before: dict[int, Stmt] = {}
    gathers = lower.target.has(Feature.CP_ASYNC)

    def visit(n: Node) -> Node:
        if not isinstance(n, For) or n.kind is not LoopKind.PIPELINED:
            return n
        values = let_values(n.body)
        body: list[Stmt] = []
        for s in n.body.body:
            made = s
            if isinstance(s, Copy):
                made = replace(s, src=substitute(s.src, values))
            elif gathers and (n.num_stages or 0) > 1:
                made = gather_of(s, values, lower) or s
            before[id(made)] = s
            body.append(made)
        return replace(n, body=replace(n.body, body=tuple(body)))

    return map_statements(kernel, visit), before


def without_unused(body: Sequence[Stmt]) -> list[Stmt]:
    """Statements without the names that only copies needed, which have their places in them."""
    kept: list[Stmt] = []
    used: set[int] = set()
    for s in reversed(body):
        if not isinstance(s, Let) or id(s.var) in used:
            kept.insert(0, s)
            used.update(id(n) for n in walk(s))
    return kept


def gather_of(
    s: Stmt, names: Mapping[Var, Expr], ctx: LowerContext, least: int = 4
) -> Gather | None:
    """A statement as a Gather of `least` bytes or more at once; None for others. `names`: what
    names of the enclosing loop's body stand for."""
    rule = _FORMS.get(type(s))
    made = None if rule is None else rule(s, names)
    width = None if made is None else gather_width(made, ctx.trial())
    return made if made is not None and (width or 0) * made.src.dtype.bytes >= least else None


def _of_im2col(op: Im2col, names: Mapping[Var, Expr]) -> Gather:
    return substitute(op, names).as_gather()


def _of_loop(loop: ParallelFor, names: Mapping[Var, Expr]) -> Gather | None:
    """The loop as a Gather where it stores one element of a tensor (or zero) to each element of a
    whole shared tile."""
    *lets, store = loop.body.body or (None,)
    if not isinstance(store, Store) or not all(isinstance(s, Let) for s in lets):
        return None
    tile = store.buffer
    extents = tuple(const_int(e) for e in loop.extents)
    filled = extents == tuple(const_int(n) for n in tile.shape) and None not in extents
    own = [i is v for i, v in zip(store.indices, loop.vars, strict=False)]
    if tile.scope is not Scope.SHARED or not filled or not all(own) or len(own) != tile.rank:
        return None
    value = substitute(store.value, {**names, **let_values(loop.body)})
    when: Expr | None = None
    if isinstance(value, Select) and isinstance(value.b, Const) and value.b.value == 0:
        when, value = value.cond, value.a
    if not isinstance(value, Load) or value.buffer.scope is not Scope.GLOBAL:
        return None
    asked = value.indices if when is None else (*value.indices, when)
    named = (n for e in asked for n in walk(e) if isinstance(n, Load))
    if any(n.buffer.scope is Scope.FRAGMENT for n in named):
        return None  # each thread knows a part of it
    src, dst = whole(value.buffer), whole(tile)
    return Gather(src, dst, loop.vars, value.indices, when, loc=store.loc)


_FORMS: dict[type[Stmt], Callable[[Any, Mapping[Var, Expr]], Gather | None]] = {
    ParallelFor: _of_loop, Im2col: _of_im2col,
}  # fmt: skip


def at_once(s: Stmt, kernel: Kernel, ctx: LowerContext) -> list[Stmt] | None:
    """What a thread does for a gather that is needed where it stands: all its copies of 16 bytes
    are under way together, and hold no registers. None for others, and in a kernel that has groups
    of its own, for which the wait would wait too."""
    op = gather_of(s, {}, ctx, VECTOR_BYTES) if ctx.target.has(Feature.CP_ASYNC) else None
    if op is None or _has_own_groups(kernel):
        return None
    copies = pick_strategy(op, ctx).lower(op, ctx)
    wait = Invoke(cp_async_wait(0), (), "the rows have arrived", loc=op.loc)
    return [*copies, Invoke(CP_ASYNC_COMMIT, (), loc=op.loc), wait]


def _has_own_groups(kernel: Kernel) -> bool:
    """Whether a kernel's pipelines, or the program itself, wait for groups of cp.async."""
    instructions = (n.intrinsic for n in walk(kernel) if isinstance(n, Invoke))
    if any(i.needs is Feature.CP_ASYNC for i in instructions):
        return True
    return any(isinstance(n, AsyncCopy) for n in walk(kernel))
