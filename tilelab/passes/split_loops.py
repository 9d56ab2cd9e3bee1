"""split-loops: iterations in which a mask lets everything through run without it.

A loop over tiles asks in every iteration which elements a causal, windowed or ragged mask admits,
and most tiles lie wholly inside. Conditions are linear in the loop's variable, so the iterations
for which they hold in every element are a range: the loop is split there, and the range runs a
copy of the body in which the conditions are true. Bounds are exact (ir.bounds); a condition that
is not understood stays. Only loops with gemms are split, for the copy has its price in code.
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.ir import (
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
    const_int,
    walk,
)
from tilelab.ir.rewrite import map_statements, rewrite
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.masks import Rows, admitted, masks, most, rows_of, some_denied, within
from tilelab.passes.versions import with_own_variables
from tilelab.tile.ops.gemm import Gemm
from tilelab.tile.structure import SPLIT_LOOPS


@kernel_pass("split-loops", needs=("planned",), switch=SPLIT_LOOPS)
def split_loops(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Run the iterations that need no mask without it."""

    def split(node: Node) -> Node:
        if isinstance(node, Seq):
            return _first_iteration(node, ctx)
        if not isinstance(node, For) or node.kind is not LoopKind.SERIAL:
            return node
        parts = _split(node)
        if parts is None:
            return node
        ctx.note(f"iterations over {node.var.name} whose mask admits every element run without "
                 "it, in a loop of their own", node)  # fmt: skip
        return parts

    return map_statements(kernel, split)


def _split(loop: For) -> Stmt | None:
    """The loop in two or three parts; None where no condition depends on it as wanted."""
    if const_int(loop.step) != 1 or not any(isinstance(n, Gemm) for n in walk(loop.body)):
        return None
    rows = rows_of(loop)
    found = [r for m in masks(loop.body) if (r := admitted(m, loop, rows)) is not None]
    if not found:
        return None
    end = loop.start + loop.extent
    lows = [r.first for r in found if r.first is not None]
    highs = [r.last + 1 for r in found if r.last is not None]
    middle = Var(f"{loop.var.name}_masked")
    inside = Var(f"{loop.var.name}_plain")
    lets: list[Stmt] = []
    first, last = loop.start, end
    if lows:
        first = inside
        wanted = within(most("max", lows), loop.start, end)
        lets.append(Let(inside, wanted, loc=loop.loc))
    if highs:
        last = middle
        lets.append(Let(middle, within(most("min", highs), first, end), loc=loop.loc))
    known = {id(r.condition) for r in found}
    parts = [_part(loop, loop.start, first)] if lows else []
    parts.append(_unmasked(_part(loop, first, last), known))
    parts += [_part(loop, last, end)] if highs else []
    return Seq((*lets, *parts), loc=loop.loc)


def _first_iteration(block: Seq, ctx: PassContext) -> Seq:
    """A block whose loop had its first iteration peeled off, with a mask of that iteration behind
    a branch: most blocks need none there."""
    loops = [n for n in walk(block) if isinstance(n, For) and any(_is_gemm(s) for s in n.body.body)]
    if not loops or not any(_is_gemm(s) for s in block.body):
        return block
    rows = rows_of(loops[0])
    body = tuple(_where_needed(s, rows) for s in block.body)
    if all(a is b for a, b in zip(body, block.body, strict=True)):
        return block
    ctx.note("the first iteration masks only where the mask denies something", block)
    return replace(block, body=body)


def _is_gemm(stmt: Stmt) -> bool:
    return isinstance(stmt, Gemm)


def _where_needed(stmt: Stmt, rows: Rows | None) -> Stmt:
    """An elementwise statement with its mask where that denies an element, else without."""
    found = list(masks(stmt)) if isinstance(stmt, ParallelFor) and len(stmt.vars) > 1 else []
    denies = [some_denied(m, rows) for m in found]
    known = [d for d in denies if d is not None]
    if not found or len(known) != len(found):
        return stmt
    needed = known[0]
    for other in known[1:]:
        needed = binary("or", needed, other)
    if const_int(needed) is not None:
        return stmt
    plain = where_true(Seq((stmt,), loc=stmt.loc), {id(m.condition) for m in found})
    rest = with_own_variables(tuple(s for s in plain.body if not _empty(s)))
    orelse = Seq(rest, loc=stmt.loc) if rest else None
    return If(needed, Seq((stmt,), loc=stmt.loc), orelse, loc=stmt.loc)


def _empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and not stmt.body


def _part(loop: For, start: Expr, end: Expr) -> For:
    """A copy of the loop over start .. end-1. Conditions stay the same objects."""
    return replace(loop, start=start, extent=end - start)


def _unmasked(loop: For, known: set[int]) -> For:
    """The loop with the known conditions true, and what that leaves without effect removed."""
    (fresh,) = with_own_variables((replace(loop, body=where_true(loop.body, known)),))
    assert isinstance(fresh, For)
    return fresh


def where_true(body: Seq, known: set[int]) -> Seq:
    """Statements with conditions (by id) true, and what that leaves without effect removed."""
    true = as_expr(True)

    def visit(n: Node) -> Node | None:
        if id(n) in known:
            return true
        if isinstance(n, If):
            cond = rewrite(n.cond, visit)
            if const_int(cond) == 1:
                return rewrite(n.then, visit)
        return None

    body = rewrite(body, visit)
    return rewrite(body, lambda n: Seq((), loc=n.loc) if _idle(n) else None)  # type: ignore[attr-defined]


def _idle(n: Node) -> bool:
    """Whether an elementwise loop stores nothing but what is there."""
    return isinstance(n, ParallelFor) and all(_keeps(s) for s in n.body.body)


def _keeps(stmt: Stmt) -> bool:
    if not isinstance(stmt, Store) or not isinstance(stmt.value, Load):
        return False
    value = stmt.value
    return value.buffer is stmt.buffer and all(
        a.key == b.key for a, b in zip(value.indices, stmt.indices, strict=True)
    )


__all__ = ["split_loops", "where_true"]
