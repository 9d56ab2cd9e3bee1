"""Loads before a pipelined loop that the producer role can issue: a tile of Q, a row of scales.

Such a copy becomes a TMA load with a barrier of its own. It starts with the first loads of the
loop, and in a persistent kernel, with two slots where they fit, during the tile before. A tile in
slots never shares bytes, so these copies stay in their place where tiles are to share.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.ir import Alloc, Expr, For, Kernel, Stmt, as_expr, walk
from tilelab.passes.base import PassContext
from tilelab.passes.hoist import unavailable
from tilelab.passes.lowering_context import planning_context
from tilelab.passes.ring import Ring, make_ring
from tilelab.passes.shared_extent import MERGE, extent_of
from tilelab.passes.shared_room import room
from tilelab.passes.touch import touches, uses
from tilelab.passes.versions import slot_refusal
from tilelab.target import WARPGROUP
from tilelab.thread.occupancy import round_up
from tilelab.tile.operands import is_whole
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.copy_async import why_not_tma
from tilelab.tile.ops.gemm import Gemm, plan_of
from tilelab.tile.structure import EARLY_LOADS, setting


def early_rings(
    kernel: Kernel, rest: Sequence[Stmt], rings: Sequence[Ring], tiles: For | None, ctx: PassContext
) -> dict[int, Ring]:
    """By the copy's id, the rings of the copies among `rest` that the producer issues."""
    if not setting(ctx, EARLY_LOADS) or ctx.option(MERGE, False):
        return {}
    found: dict[int, Ring] = {}
    slots_of = {i: ring.plan.num_stages for ring in rings for i in ring.slots}
    left = room(kernel, ctx, slots_of)
    must_share = left < 0
    first = rings[0]
    for place, copy in enumerate(rest):
        if not isinstance(copy, Copy) or not _may_move(copy, place, kernel, rest, ctx):
            continue
        if must_share:
            why = "tiles fit into shared memory only where they share bytes"
            ctx.note(f"{copy.label()}: not loaded by the producer, {why}", copy)
            continue
        size = round_up(*extent_of(copy.dst.buffer))
        apart = not slot_refusal(copy.dst.buffer, 2)
        slots = 2 if tiles is not None and size <= left and apart else 1
        left -= size * (slots - 1)
        arrivals = _arrivals(copy, rest, kernel, ctx)
        name = f"mbarrier_{copy.dst.buffer.name}"
        around = first.loop if tiles is None else tiles
        ring = make_ring(
            around, first.plan, (copy,), name, first.thread, slots, arrivals, once=tiles is None
        )
        found[id(copy)] = ring
        ctx.note(f"{copy.label()}: loaded by the producer, in {slots} slot(s)", copy)
    return found


def use_of(tiles: For | None) -> Expr:
    """The number of an early ring's use: one for each tile of the block."""
    return as_expr(0) if tiles is None else tiles.var


def _may_move(
    copy: Copy, place: int, kernel: Kernel, rest: Sequence[Stmt], ctx: PassContext
) -> bool:
    """Whether a copy can be issued before the statements that precede it, by another role."""
    tile, tensor = copy.dst.buffer, copy.src.buffer
    lower = planning_context(kernel, ctx, kernel.num_threads)
    if copy.best != "tma" or why_not_tma(copy.src, copy.dst, lower):
        return False
    if not is_whole(copy.dst) or unavailable(copy.src.starts, rest):
        return False
    views = (n.buffer for n in walk(kernel) if isinstance(n, Alloc))
    if any(v.storage is tile.storage and v is not tile for v in views):
        return False
    for touch in touches(kernel):
        if touch.stmt is copy:
            continue
        if touch.is_write and any(touch.buffer.storage is b.storage for b in (tile, tensor)):
            return False
    return not any(uses(s, tile) for s in rest[:place])


def _arrivals(copy: Copy, rest: Sequence[Stmt], kernel: Kernel, ctx: PassContext) -> int:
    """How many arrivals free a slot: one a warpgroup where only wgmma reads it."""
    lower = planning_context(kernel, ctx, kernel.num_threads)
    readers = [
        t.stmt for s in rest for t in touches(s)
        if t.buffer is copy.dst.buffer and t.stmt is not copy
    ]  # fmt: skip
    only = all(isinstance(s, Gemm) and plan_of(s, lower).kind == "wgmma" for s in readers)
    return kernel.num_threads // WARPGROUP if only and readers else kernel.num_threads


__all__ = ["early_rings", "use_of"]
