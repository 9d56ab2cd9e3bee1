"""Loops that each consumer warpgroup runs by itself: as many iterations as its own rows need.

A block's loop runs as far as its last row needs. Where each warpgroup holds rows of its own, and
nothing in the loop makes them meet, one whose rows a mask denies the last iterations to (a causal
mask does, for the upper rows of a block) leaves them out. It still waits for their tiles and
frees them, since a slot is free when every warpgroup has let it go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilelab.ir import (
    Expr,
    For,
    Let,
    ParallelFor,
    Scope,
    Seq,
    Stmt,
    Var,
    binary,
    call,
    const_int,
    walk,
)
from tilelab.passes.base import PassContext
from tilelab.passes.masks import ROWS, Rows, denied, masks, most
from tilelab.passes.touch import touches
from tilelab.passes.unchanged import leaves_unchanged
from tilelab.passes.versions import with_own_variables
from tilelab.target import WARPGROUP
from tilelab.thread.nodes import Invoke
from tilelab.tile.context import LowerContext
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.fill import Fill
from tilelab.tile.ops.gemm import Gemm, plan_of
from tilelab.tile.ops.reduce import Reduce
from tilelab.tile.structure import OWN_TRIPS, PRECISE_MATH, setting


def _always(stmt: Any) -> bool:
    return True


def _along_rows(stmt: Reduce) -> bool:
    return stmt.axis == len(stmt.src.tile_shape) - 1 > 0


def _of_registers(stmt: Copy) -> bool:
    return stmt.src.buffer.scope is Scope.FRAGMENT


_BY_ITSELF: dict[type[Stmt], Callable[[Any], bool]] = {
    Let: _always, Seq: _always, Invoke: _always, Fill: _always, ParallelFor: _always,
    Gemm: _always, Copy: _of_registers, Reduce: _along_rows,
}  # fmt: skip
"""Statements that warpgroups can run at different times, and what that depends on."""


@dataclass(frozen=True)
class Consumers:
    """The role that runs a loop: its warpgroup's name, and the role's other statements."""

    warpgroup: Var
    others: Sequence[Stmt]
    lower: LowerContext
    ctx: PassContext


def own_trips(
    loop: For, work: Sequence[Stmt], skipped: Sequence[Stmt], of: Consumers
) -> list[Stmt]:
    """The loop as each warpgroup runs it. `work` is what its iterations compute, `skipped` what
    remains of one that is left out."""
    rows = _rows(work, of)
    if rows is None:
        return [loop]
    loop = replace(loop, attrs=(*loop.attrs, (ROWS, rows)))
    end = _own_end(loop, work, rows, of)
    if end is None:
        return [loop]
    own = Var(f"{loop.var.name}_own", lo=_at_least(loop), hi=(loop.start + loop.extent).bounds[1])
    rest = replace(
        loop, start=own, extent=loop.start + loop.extent - own, attrs=(),
        body=Seq(tuple(skipped), loc=loop.loc),
    )  # fmt: skip
    of.ctx.note(
        f"each warpgroup leaves the loop over {loop.var.name} when the mask lets nothing more "
        f"through for its {rows.each} rows",
        loop,
    )
    return [
        Let(own, end, loc=loop.loc),
        replace(loop, extent=own - loop.start),
        *with_own_variables((rest,)),
    ]


def _at_least(loop: For) -> int:
    """The least end of a warpgroup's share: one iteration where the block has one."""
    low = loop.start.bounds[0] or 0
    return low + 1 if const_int(binary(">", loop.extent, 0)) == 1 else low


def _rows(work: Sequence[Stmt], of: Consumers) -> Rows | None:
    """Which rows a warpgroup holds of every tile that the loop computes, where warpgroups never
    meet in it; None otherwise."""
    groups = of.lower.num_threads // WARPGROUP
    if groups < 2 or not setting(of.ctx, OWN_TRIPS):
        return None
    gemms = [s for s in work if isinstance(s, Gemm)]
    plans = [plan_of(g, of.lower) for g in gemms]
    alone = all(p.kind == "wgmma" and p.warps_m == groups and p.copies == 1 for p in plans)
    extents = {g.extents[0] for g in gemms}
    if not gemms or not alone or len(extents) != 1 or not all(_by_itself(s) for s in work):
        return None
    extent = extents.pop()
    return Rows(of.warpgroup, extent, extent // groups)


def _by_itself(stmt: Stmt) -> bool:
    """Whether warpgroups can run a statement at different times: it writes nothing that others
    read, and reduces along rows, which one warpgroup holds wholly."""
    rule = _BY_ITSELF.get(type(stmt))
    if rule is None or not rule(stmt):
        return False
    written = (t.buffer.scope for t in touches(stmt) if t.is_write)
    return all(scope in (Scope.FRAGMENT, Scope.BARRIER) for scope in written)


def _own_end(loop: For, work: Sequence[Stmt], rows: Rows, of: Consumers) -> Expr | None:
    """Where a warpgroup may leave the loop: behind it every iteration would change nothing."""
    if const_int(loop.step) != 1 or setting(of.ctx, PRECISE_MATH):
        return None
    used = {id(t.buffer.storage) for s in of.others for t in touches(s) if not t.is_write}
    body = Seq(tuple(work))
    ends: list[Expr] = []
    for mask in masks(body):
        found = denied(mask, loop, rows)
        if found is None or found.first is None or not _of_warpgroup(found.first, rows):
            continue
        if leaves_unchanged(work, {id(mask.condition)}, used):
            ends.append(found.first)
    if not ends:
        return None
    whole = loop.start + loop.extent
    return call("min", whole, call("max", loop.start + 1, most("min", ends)))


def _of_warpgroup(end: Expr, rows: Rows) -> bool:
    """Whether an end differs between warpgroups: the block's own loop ends where its rows do."""
    return any(n is rows.warpgroup for n in walk(end))


__all__ = ["Consumers", "own_trips"]
