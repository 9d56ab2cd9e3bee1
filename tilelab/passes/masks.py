"""Masks of elementwise loops: iterations of an outer loop that they admit wholly, or not at all.

A mask's conditions are linear in the outer loop's variable, so either set is a range. Hides how
the range is found (exact bounds of linear forms); a condition that is not understood has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from tilelab.ir import (
    Binary,
    Expr,
    For,
    If,
    Let,
    Load,
    Node,
    ParallelFor,
    Select,
    Var,
    as_expr,
    binary,
    call,
    const_int,
    walk,
)
from tilelab.ir.build import conjuncts
from tilelab.ir.printer import TEXTS
from tilelab.ir.simplify import linear

ROWS = "rows of a warpgroup"
"""Attribute of a loop that each warpgroup runs by itself: its `Rows`."""


@dataclass(frozen=True)
class Rows:
    """Which rows of tiles of `extent` rows a warpgroup holds: `each` of them, in order."""

    warpgroup: Var
    extent: int
    each: int

    def within(self, loop: ParallelFor) -> dict[Var, tuple[Expr, Expr]]:
        """The first and last row that an elementwise loop of such a tile reaches here."""
        if const_int(as_expr(loop.extents[0])) != self.extent:
            return {}
        first = self.warpgroup * self.each
        return {loop.vars[0]: (first, first + (self.each - 1))}


def rows_of(loop: For) -> Rows | None:
    """The rows that a warpgroup holds in a loop that it runs by itself."""
    return next((v for key, v in loop.attrs if key == ROWS and isinstance(v, Rows)), None)


@dataclass(frozen=True)
class Mask:
    """A comparison of integers that (part of) a mask is made of, and the elementwise loop."""

    condition: Binary
    loop: ParallelFor


@dataclass(frozen=True)
class Range:
    """The values of a loop's variable for which something is so in every element: up to `last` or
    from `first` on (one of them is None)."""

    condition: Expr
    first: Expr | None
    last: Expr | None


def masks(node: Node) -> Iterator[Mask]:
    """Selections and branches in elementwise loops under `node`, by their conjuncts."""
    for loop in walk(node):
        if not isinstance(loop, ParallelFor):
            continue
        for n in walk(loop):
            if isinstance(n, Select | If):
                yield from (Mask(c, loop) for c in conjuncts(n.cond) if _is_comparison(c))


def _is_comparison(c: Expr) -> TypeGuard[Binary]:
    return isinstance(c, Binary) and c.op in _DIFFERENCES and c.a.dtype.is_int


_DIFFERENCES: dict[str, Callable[[Expr, Expr], Expr]] = {
    ">=": lambda a, b: a - b, ">": lambda a, b: a - b - 1,
    "<=": lambda a, b: b - a, "<": lambda a, b: b - a - 1,
}  # fmt: skip
"""What is not negative when the comparison holds."""


def admitted(mask: Mask, loop: For, rows: Rows | None) -> Range | None:
    """For which values of the loop's variable a condition holds in every element; None where that
    is not a range."""
    found = _slope_and_rest(mask, loop, rows, 1)
    if found is None or found[0] == 0:
        return None
    slope, least = found
    if slope < 0:
        return Range(mask.condition, None, least // -slope)
    return Range(mask.condition, binary("//", as_expr(slope - 1) - least, slope), None)


def denied(mask: Mask, loop: For, rows: Rows | None) -> Range | None:
    """For which values of the loop's variable a condition holds in no element; None where that is
    not a range."""
    found = _slope_and_rest(mask, loop, rows, -1)
    if found is None or found[0] == 0:
        return None
    slope, most = found
    if slope < 0:
        return Range(mask.condition, most // -slope + 1, None)
    return Range(mask.condition, None, binary("//", as_expr(-1) - most, slope))


def some_denied(mask: Mask, rows: Rows | None) -> Expr | None:
    """Whether a condition that no loop's variable is in fails for some element; None where that
    is not known without looking at each."""
    found = _slope_and_rest(mask, None, rows, 1)
    return None if found is None else binary("<", found[1], 0)


def _slope_and_rest(
    mask: Mask, loop: For | None, rows: Rows | None, sign: int
) -> tuple[int, Expr] | None:
    """(slope in the loop's variable, least (`sign` 1) or greatest (-1) value of the other terms)
    of what is not negative when a condition holds."""
    condition = mask.condition
    terms, constant = linear(_DIFFERENCES[condition.op](condition.a, condition.b))
    body = mask.loop if loop is None else loop.body
    own = set(_bound_inside(body))
    ranges = {} if rows is None else rows.within(mask.loop)
    var = None if loop is None else loop.var
    rest, slope = as_expr(constant), 0
    for term, coefficient in terms.values():
        if var is not None and term is var:
            slope = coefficient
            continue
        used = {id(n) for n in walk(term) if isinstance(n, Var)}
        if (var is not None and id(var) in used) or any(isinstance(n, Load) for n in walk(term)):
            return None
        if used & own:
            low, high = ranges.get(term, term.bounds) if isinstance(term, Var) else term.bounds
            end = low if coefficient * sign > 0 else high
            if end is None:
                return None
            term = as_expr(end)
        rest = rest + term * coefficient
    return slope, rest


def _bound_inside(body: Node) -> Iterator[int]:
    """Ids of the variables that statements under `body` bind."""
    for n in walk(body):
        if isinstance(n, ParallelFor):
            yield from (id(v) for v in n.vars)
        elif isinstance(n, For | Let):
            yield id(n.var)


def most(pick: str, values: Sequence[Expr]) -> Expr:
    """The least ("min") or greatest ("max") of some values."""
    out = values[0]
    for value in values[1:]:
        out = call(pick, out, value)
    return out


def within(value: Expr, low: Expr, high: Expr) -> Expr:
    """A value held between two others."""
    return call("max", low, call("min", value, high))


TEXTS[Rows] = lambda rows, p: f"<{rows.each} of {rows.extent} rows>"

__all__ = [
    "ROWS", "Mask", "Range", "Rows", "admitted", "denied", "masks", "most", "rows_of",
    "some_denied", "within",
]  # fmt: skip
