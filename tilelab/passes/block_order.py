"""The order in which blocks take tiles: plain, or in panels that keep operands in L2.

T.use_swizzle(panel) is a rasterisation hint: it changes which block computes which tile and
nothing else, so results never depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilelab.ir import Expr, Kernel, Let, Stmt, Var, as_expr, call, const_int


def block_order(kernel: Kernel, names: Callable[[str], str]) -> tuple[list[Stmt], tuple[Var, ...]]:
    """Statements that compute the kernel's block variables, and the hardware's block indices.

    Without a hint the block variables are the hardware's. With panels of `p` rows, blocks walk
    down p rows of tiles column by column before they go to the next p rows (order "row"; order
    "column" exchanges the axes).
    """
    hint: Any = next((v for k, v in kernel.attrs if k == "swizzle"), None)
    if hint is None or len(kernel.block_vars) < 2:
        return [], kernel.block_vars
    panel, order = int(hint[0]), str(hint[1])
    bx, by = kernel.block_vars[:2]
    height = const_int(kernel.grid[1] if order == "row" else kernel.grid[0])
    if height is not None and height <= panel:
        return [], kernel.block_vars  # one panel holds every tile: the plain order is as good
    raw_x, raw_y = (_raw(v, names) for v in (bx, by))
    columns, rows = (bx, by) if order == "row" else (by, bx)
    extents = {id(bx): kernel.grid[0], id(by): kernel.grid[1]}
    count_rows, count_columns = extents[id(rows)], extents[id(columns)]
    linear = Var(names("block"), lo=0, hi=_last(kernel.grid[0] * kernel.grid[1]))
    group = Var(names("panel"), lo=0)
    tall = Var(names("panel_rows"), lo=1, hi=panel)
    per_panel = count_columns * panel
    inside = linear % per_panel
    left = as_expr(count_rows) - group * panel
    loc = kernel.loc
    lets: list[Stmt] = [
        Let(linear, raw_x + raw_y * kernel.grid[0], loc=loc),
        Let(group, linear // per_panel, loc=loc),
        Let(tall, call("min", as_expr(panel), left), loc=loc),
        Let(rows, group * panel + inside % tall, loc=loc),
        Let(columns, inside // tall, loc=loc),
    ]
    return lets, (raw_x, raw_y, *kernel.block_vars[2:])


def _raw(var: Var, names: Callable[[str], str]) -> Var:
    return replace(var, name=names(f"raw_{var.name}"))


def _last(count: Expr) -> int | None:
    total = const_int(count)
    return None if total is None else total - 1
