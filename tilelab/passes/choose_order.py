"""choose-order: panels of tiles for kernels that leave the order of blocks open.

Blocks that run at the same time read one operand by tile row and the other by tile column. A wave
of W blocks that covers r rows of tiles reads r row operands and W / r column operands, which is
least when r * r = W * column bytes / row bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from tilelab.ir import For, Kernel, Let, Node, Var, const_int, walk
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.block_order import ORDER
from tilelab.passes.plan import PlannedOp
from tilelab.passes.plan_pipeline import plan_of_loop
from tilelab.passes.uneven_tiles import LONGEST_FIRST, together, uneven_axis
from tilelab.tile.ops.copy import Copy
from tilelab.tile.structure import GROUP_ORDER, setting


@kernel_pass("choose-order", needs=("planned",))
def choose_order(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Let neighbouring blocks share operands in L2, where the program names no order."""
    wanted = int(setting(ctx, GROUP_ORDER))
    written = any(key == ORDER for key, _ in kernel.attrs)
    if written or wanted == 0 or len(kernel.grid) < 2:
        return kernel
    uneven = uneven_axis(kernel)
    if uneven is not None:
        count = together(kernel, uneven)
        ctx.note(
            f"tiles along {kernel.block_vars[uneven.axis].name} take different times: the longest "
            f"first, in groups of {count} tiles of the other axes, whose operands fit L2",
            kernel,
        )
        order = (uneven.axis, uneven.rising, count)
        return replace(kernel, attrs=(*kernel.attrs, (LONGEST_FIRST, order)))
    row, column = _shared_operands(kernel)
    if row is None or column is None:
        return kernel
    wave = ctx.target.limits.sms
    rows = wanted if wanted > 0 else _power_of_two(math.sqrt(wave * column.bytes / row.bytes))
    height = const_int(kernel.grid[1])
    if height is not None and height <= rows:
        return kernel
    ctx.note(
        f"blocks take tiles in panels of {rows} tile rows: of the {wave} blocks that run at once, "
        f"those of one row share {row.label} and those of one column share {column.label}",
        kernel,
    )
    return replace(kernel, attrs=(*kernel.attrs, (ORDER, (rows, "row"))))


def _power_of_two(value: float) -> int:
    """The power of two nearest to a value, by ratio."""
    return 1 << max(round(math.log2(value)), 0)


def _shared_operands(kernel: Kernel) -> tuple[PlannedOp | None, PlannedOp | None]:
    """The largest loads of pipelined loops that depend on the tile row alone, and on the tile
    column alone."""
    bx, by = kernel.block_vars[:2]
    sources = _dependence(kernel)
    row: PlannedOp | None = None
    column: PlannedOp | None = None
    for planned in _loads(kernel):
        if not isinstance(planned.op, Copy):
            continue  # rows that are looked up depend on what the table says
        used = {v for start in planned.op.src.starts for v in _variables(start, sources)}
        if by in used and bx not in used and (row is None or planned.bytes > row.bytes):
            row = planned
        if bx in used and by not in used and (column is None or planned.bytes > column.bytes):
            column = planned
    return row, column


def _loads(kernel: Kernel) -> Iterator[PlannedOp]:
    for n in walk(kernel):
        plan = plan_of_loop(n) if isinstance(n, For) else None
        if plan is not None:
            yield from plan.producers


def _dependence(kernel: Kernel) -> dict[Var, frozenset[Var]]:
    """Variable that a Let binds -> the variables its value comes from in the end."""
    found: dict[Var, frozenset[Var]] = {}
    for n in walk(kernel):
        if isinstance(n, Let):
            found[n.var] = frozenset(_variables(n.value, found))
    return found


def _variables(node: Node, sources: dict[Var, frozenset[Var]]) -> Iterator[Var]:
    for n in walk(node):
        if isinstance(n, Var):
            yield from sources.get(n, frozenset({n}))
