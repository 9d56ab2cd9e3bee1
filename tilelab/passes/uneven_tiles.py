"""Tiles that take different times: which, and the order in which blocks had better take them.

The length of a pipelined loop may depend on the block (a causal mask: later rows see more). Long
tiles then go first, so that the last blocks to run are short ones; and tiles that read the same
operands in their loop (the heads of attention) stay together in groups whose operands fit L2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from tilelab.ir import Expr, For, Kernel, Let, Stmt, Var, as_expr, call, const_int, walk
from tilelab.ir.rewrite import substitute
from tilelab.passes.plan import PipelinePlan
from tilelab.passes.plan_pipeline import plan_of_loop

LONGEST_FIRST = "longest_first"
"""Attribute of a kernel: (axis of the grid, whether tiles grow along it, tiles of other axes that
are worked on together)."""
L2_SHARE = 16 << 20  # bytes of shared operands worked on at a time (measured on an H200)


@dataclass(frozen=True)
class Uneven:
    """The axis of the grid along which tiles' loops get longer (`rising`) or shorter."""

    axis: int
    rising: bool


def loops_of(kernel: Kernel) -> Iterator[tuple[For, PipelinePlan, Expr]]:
    """The pipelined loops of a kernel's body with their lengths as functions of the block."""
    names: dict[Var, Expr] = {}
    for stmt in kernel.body.body:
        if isinstance(stmt, Let):
            names[stmt.var] = substitute(stmt.value, names)
        plan = plan_of_loop(stmt) if isinstance(stmt, For) else None
        if plan is not None:
            assert isinstance(stmt, For)
            yield stmt, plan, substitute(stmt.extent, names)


def is_uneven(kernel: Kernel) -> bool:
    """Whether the length of some pipelined loop depends on the block."""
    mine = {id(v) for v in kernel.block_vars}
    return any(id(n) in mine for _, _, length in loops_of(kernel) for n in walk(length))


def uneven_axis(kernel: Kernel) -> Uneven | None:
    """Along which one axis of the grid the loops' lengths change, and how; None where that is not
    plain."""
    found: set[tuple[int, bool]] = set()
    for _, _, length in loops_of(kernel):
        used = {id(n) for n in walk(length)}
        axes = [a for a, v in enumerate(kernel.block_vars) if id(v) in used]
        if not axes:
            continue
        last = const_int(kernel.grid[axes[0]])
        if len(axes) > 1 or last is None:
            return None
        var = kernel.block_vars[axes[0]]
        ends = [const_int(substitute(length, {var: as_expr(at)})) for at in (0, last - 1)]
        if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
            return None
        found.add((axes[0], ends[1] > ends[0]))
    return Uneven(*found.pop()) if len(found) == 1 else None


def together(kernel: Kernel, uneven: Uneven) -> int:
    """How many tiles of the other axes have operands that fit their share of L2 together, in
    groups of one size: a small last group would leave long tiles to the end."""
    var = kernel.block_vars[uneven.axis]
    last = const_int(kernel.grid[uneven.axis]) or 1
    total = 0
    for _, plan, length in loops_of(kernel):
        most = const_int(substitute(length, {var: as_expr(last - 1 if uneven.rising else 0)}))
        total += (most or 1) * sum(p.bytes for p in plan.producers)
    fitting = max(L2_SHARE // max(total, 1), 1)
    others = prod(const_int(n) or 1 for a, n in enumerate(kernel.grid) if a != uneven.axis)
    return -(-others // max(round(others / fitting), 1))


def longest_first(
    kernel: Kernel, number: Expr, names: Callable[[str], str], *, grouped: bool
) -> list[Stmt]:
    """Statements that compute the kernel's block variables from the number of a tile, longest
    tiles first in each group, or of all (without `grouped`)."""
    hint: Any = next(v for k, v in kernel.attrs if k == LONGEST_FIRST)
    axis, rising, group = int(hint[0]), bool(hint[1]), int(hint[2])
    others, length = as_expr(1), as_expr(kernel.grid[axis])
    left = [a for a in range(len(kernel.grid)) if a != axis]
    for a in left:
        others = others * kernel.grid[a]
    tile = Var(names("in_order"), lo=0, hi=last_of(others * length))
    other = Var(names("other"), lo=0, hi=last_of(others))
    values: list[tuple[Var, Expr]] = [(tile, number)]
    if grouped:
        which, some = Var(names("group"), lo=0), Var(names("in_group"), lo=1, hi=group)
        inside = tile % (length * group)
        values += [
            (which, tile // (length * group)),
            (some, call("min", as_expr(group), others - which * group)),
            (other, which * group + inside % some),
        ]
        place = inside // some
    else:
        values.append((other, tile % others))
        place = tile // others
    values.append((kernel.block_vars[axis], length - 1 - place if rising else place))
    rest: Expr = other
    for a in left:
        values.append((kernel.block_vars[a], rest if a == left[-1] else rest % kernel.grid[a]))
        rest = rest // kernel.grid[a]
    return [Let(var, value, loc=kernel.loc) for var, value in values]


def is_longest_first(kernel: Kernel) -> bool:
    """Whether the kernel asks for its longest tiles first."""
    return any(key == LONGEST_FIRST for key, _ in kernel.attrs)


def last_of(count: Expr) -> int | None:
    """The last of so many; None where the number is known only at run time."""
    total = const_int(count)
    return None if total is None else total - 1


__all__ = [
    "LONGEST_FIRST", "Uneven", "is_longest_first", "is_uneven", "longest_first", "together",
    "uneven_axis",
]  # fmt: skip
