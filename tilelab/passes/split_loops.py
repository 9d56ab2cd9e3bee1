"""split-loops: iterations in which a mask lets everything through run without it.

A loop over tiles asks in every iteration which elements a causal, windowed or ragged mask admits,
and most tiles lie wholly inside. Conditions are linear in the loop's variable, so the iterations
for which they hold in every element are a range: the loop is split there, and the range runs a
copy of the body in which the conditions are true. Bounds are exact (ir.bounds); a condition that
is not understood stays. Only loops with gemms are split, for the copy has its price in code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tilelab.ir import (
    Binary,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Node,
    ParallelFor,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
    call,
    const_int,
    walk,
)
from tilelab.ir.rewrite import map_statements, rewrite
from tilelab.ir.simplify import linear
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.versions import with_own_variables
from tilelab.tile.ops.gemm import Gemm
from tilelab.tile.structure import SPLIT_LOOPS


@kernel_pass("split-loops", needs=("planned",), switch=SPLIT_LOOPS)
def split_loops(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Run the iterations that need no mask without it."""

    def split(node: Node) -> Node:
        if not isinstance(node, For) or node.kind is not LoopKind.SERIAL:
            return node
        parts = _split(node)
        if parts is None:
            return node
        ctx.note(f"iterations over {node.var.name} whose mask admits every element run without "
                 "it, in a loop of their own", node)  # fmt: skip
        return parts

    return map_statements(kernel, split)


@dataclass(frozen=True)
class Range:
    """The values of a loop's variable for which a condition holds in every element: up to `last`
    or from `first` on (one of them is None)."""

    condition: Expr
    first: Expr | None
    last: Expr | None


def _split(loop: For) -> Stmt | None:
    """The loop in two or three parts; None where no condition depends on it as wanted."""
    if const_int(loop.step) != 1 or not any(isinstance(n, Gemm) for n in walk(loop.body)):
        return None
    found = [r for c in _conditions(loop.body) if (r := _holds(c, loop)) is not None]
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
        wanted = _within(_most("max", lows), loop.start, end)
        lets.append(Let(inside, wanted, loc=loop.loc))
    if highs:
        last = middle
        lets.append(Let(middle, _within(_most("min", highs), first, end), loc=loop.loc))
    known = {id(r.condition) for r in found}
    parts = [_part(loop, loop.start, first)] if lows else []
    parts.append(_unmasked(_part(loop, first, last), known))
    parts += [_part(loop, last, end)] if highs else []
    return Seq((*lets, *parts), loc=loop.loc)


def _most(pick: str, values: list[Expr]) -> Expr:
    out = values[0]
    for value in values[1:]:
        out = call(pick, out, value)
    return out


def _within(value: Expr, low: Expr, high: Expr) -> Expr:
    return call("max", low, call("min", value, high))


def _part(loop: For, start: Expr, end: Expr) -> For:
    """A copy of the loop over start .. end-1. Conditions stay the same objects."""
    return replace(loop, start=start, extent=end - start)


def _unmasked(loop: For, known: set[int]) -> For:
    """The loop with the known conditions true, and what that leaves without effect removed."""
    true = as_expr(True)

    def visit(n: Node) -> Node | None:
        if id(n) in known:
            return true
        if isinstance(n, If):
            cond = rewrite(n.cond, visit)
            if const_int(cond) == 1:
                return rewrite(n.then, visit)
        return None

    body = rewrite(loop.body, visit)
    body = rewrite(body, lambda n: Seq((), loc=n.loc) if _idle(n) else None)  # type: ignore[attr-defined]
    (fresh,) = with_own_variables((replace(loop, body=body),))
    assert isinstance(fresh, For)
    return fresh


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


def _conditions(node: Node) -> Iterator[Binary]:
    """The comparisons of integers that masks are made of: selections and branches in elementwise
    loops under `node`."""
    for loop in walk(node):
        if not isinstance(loop, ParallelFor):
            continue
        for n in walk(loop):
            if isinstance(n, Select | If):
                yield from _conjuncts(n.cond)


def _conjuncts(condition: Expr) -> Iterator[Binary]:
    if not isinstance(condition, Binary):
        return
    if condition.op == "and":
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    elif condition.op in _DIFFERENCES and condition.a.dtype.is_int:
        yield condition


_DIFFERENCES: dict[str, Callable[[Expr, Expr], Expr]] = {
    ">=": lambda a, b: a - b, ">": lambda a, b: a - b - 1,
    "<=": lambda a, b: b - a, "<": lambda a, b: b - a - 1,
}  # fmt: skip
"""What is not negative when the comparison holds."""


def _holds(condition: Binary, loop: For) -> Range | None:
    """For which values of the loop's variable a condition holds whatever the body's own variables
    are; None where that is not a range."""
    difference = _DIFFERENCES[condition.op](condition.a, condition.b)
    terms, constant = linear(difference)
    own = set(_bound_inside(loop.body))
    rest: Expr = as_expr(constant)
    slope = 0
    for term, coefficient in terms.values():
        if term is loop.var:
            slope = coefficient
            continue
        used = {id(n) for n in walk(term) if isinstance(n, Var)}
        if id(loop.var) in used or any(isinstance(n, Load) for n in walk(term)):
            return None
        if not used & own:
            rest = rest + term * coefficient
            continue
        least = term.bounds[0] if coefficient > 0 else term.bounds[1]
        if least is None:
            return None
        rest = rest + least * coefficient
    if slope == 0:
        return None
    if slope < 0:
        return Range(condition, None, rest // -slope)
    return Range(condition, binary("//", as_expr(slope - 1) - rest, slope), None)


def _bound_inside(body: Node) -> Iterable[int]:
    """Ids of the variables that statements under `body` bind."""
    for n in walk(body):
        if isinstance(n, ParallelFor):
            yield from (id(v) for v in n.vars)
        elif isinstance(n, For | Let):
            yield id(n.var)


__all__ = ["split_loops"]
