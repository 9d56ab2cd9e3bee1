"""The order in which blocks take tiles: plain, or in panels that keep operands in L2.

A rasterisation hint, T.use_swizzle(panel) or that of `choose-order`, changes which block computes
which tile and nothing else, so results never depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilelab.ir import Expr, Kernel, Let, Stmt, Var, as_expr, call, const_int
from tilelab.passes.uneven_tiles import is_longest_first, last_of, longest_first

ORDER = "swizzle"
"""Attribute of a kernel: (rows of a panel, "row" or "column")."""


@dataclass(frozen=True)
class Panels:
    """Tiles in panels of `height` rows. `rows` and `columns` are the block variables of the two
    axes, `count_rows` and `count_columns` their extents."""

    height: int
    rows: Var
    columns: Var
    count_rows: Expr
    count_columns: Expr

    def lets(self, linear: Expr, kernel: Kernel, names: Callable[[str], str]) -> list[Stmt]:
        """The tile's row and column from its number within a plane of tiles."""
        per_panel = self.count_columns * self.height
        group = Var(names("panel"), lo=0)
        tall = Var(names("panel_rows"), lo=1, hi=self.height)
        inside = linear % per_panel
        left = self.count_rows - group * self.height
        values: list[tuple[Var, Expr]] = [
            (group, linear // per_panel),
            (tall, call("min", as_expr(self.height), left)),
            (self.rows, group * self.height + inside % tall),
            (self.columns, inside // tall),
        ]
        return [Let(var, value, loc=kernel.loc) for var, value in values]


def panels_of(kernel: Kernel) -> Panels | None:
    """The panels that a kernel's hint asks for; None for the plain order.

    Panels of `p` rows: blocks walk down p rows of tiles column by column before they go to the
    next p rows (order "row"; order "column" exchanges the axes).
    """
    hint: Any = next((v for k, v in kernel.attrs if k == ORDER), None)
    if hint is None or len(kernel.block_vars) < 2:
        return None
    height, order = int(hint[0]), str(hint[1])
    bx, by = kernel.block_vars[:2]
    across, down = kernel.grid[:2]
    if order != "row":
        bx, by, across, down = by, bx, down, across
    known = const_int(down)
    if known is not None and known <= height:
        return None  # one panel holds every tile: the plain order is as good
    return Panels(height, by, bx, as_expr(down), as_expr(across))


def block_order(kernel: Kernel, names: Callable[[str], str]) -> tuple[list[Stmt], tuple[Var, ...]]:
    """Statements that compute the kernel's block variables, and the hardware's block indices."""
    if is_longest_first(kernel):
        raw = tuple(_raw(v, names) for v in kernel.block_vars)
        number = as_expr(0)
        for var, extent in zip(reversed(raw), reversed(kernel.grid), strict=True):
            number = number * extent + var
        return longest_first(kernel, number, names, grouped=True), raw
    panels = panels_of(kernel)
    if panels is None:
        return [], kernel.block_vars
    raw_x, raw_y = (_raw(v, names) for v in kernel.block_vars[:2])
    linear = Var(names("block"), lo=0, hi=last_of(kernel.grid[0] * kernel.grid[1]))
    first = Let(linear, raw_x + raw_y * kernel.grid[0], loc=kernel.loc)
    return [first, *panels.lets(linear, kernel, names)], (raw_x, raw_y, *kernel.block_vars[2:])


def tile_of(
    kernel: Kernel, number: Expr, names: Callable[[str], str], *, grouped: bool = False
) -> list[Stmt]:
    """Statements that compute the kernel's block variables from the number of a tile, counted
    along x, then y, then z (in panels where the kernel asks for them). Of the longest first:
    `grouped`, those first whose operands L2 holds."""
    if is_longest_first(kernel):
        return longest_first(kernel, number, names, grouped=grouped)
    panels = panels_of(kernel)
    if panels is None:
        return _row_major(kernel, number)
    if len(kernel.grid) == 2:
        return panels.lets(number, kernel, names)
    plane = kernel.grid[0] * kernel.grid[1]
    within = Var(names("plane_tile"), lo=0, hi=last_of(plane))
    outer = kernel.block_vars[2]
    return [
        Let(outer, number // plane, loc=kernel.loc),
        Let(within, number % plane, loc=kernel.loc),
        *panels.lets(within, kernel, names),
    ]


def _row_major(kernel: Kernel, number: Expr) -> list[Stmt]:
    out: list[Stmt] = []
    rest = number
    for axis, (var, extent) in enumerate(zip(kernel.block_vars, kernel.grid, strict=True)):
        last = axis == len(kernel.grid) - 1
        out.append(Let(var, rest if last else rest % extent, loc=kernel.loc))
        rest = rest // extent
    return out


def _raw(var: Var, names: Callable[[str], str]) -> Var:
    return replace(var, name=names(f"raw_{var.name}"))
