"""Accumulators to global memory through shared memory: stmatrix, then TMA stores.

Each warpgroup owns two staging tiles of 64 x 64 elements, 128-byte swizzled as TMA reads them. For
every such part of its accumulator:

    its first thread waits until the store before last has read its tile; the warpgroup's barrier
    stmatrix; proxy fence; the warpgroup's barrier; its first thread starts the store

so that stores run beside the conversion of the next part, and beside the next tile's products in a
persistent kernel. Before the threads end, the last stores must have read their tiles. Source: PTX
ISA, stmatrix and cp.async.bulk.tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilelab.errors import Loc
from tilelab.ir import Expr, Load, LoopKind, Region, Scope, Seq, Stmt, Store, as_expr, binary, cast
from tilelab.layout import Digit, Fragment
from tilelab.target import WARP, WARPGROUP, Feature
from tilelab.thread.intrinsics.barrier import FENCE_PROXY_ASYNC, NAMED_BARRIER_SYNC
from tilelab.thread.intrinsics.mma import stmatrix
from tilelab.thread.intrinsics.tma import TMA_STORE_COMMIT, tma_store, tma_store_wait_read
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext, whole_registers
from tilelab.tile.elementwise import guarded, loop, tile_extents
from tilelab.tile.operands import is_whole
from tilelab.tile.ops.copy_async import tensor_boxes, tensor_refusal
from tilelab.tile.ops.copy_wide import PartPlan, digits_beside
from tilelab.tile.structure import STAGED_STORES, setting

ROWS, COLS = 64, 64  # of a staging tile: a warpgroup's slab, one 128-byte row of 16-bit elements
TILES = 2  # staging tiles of a warpgroup, where they come out even
BLOCK = 8  # columns of a wgmma accumulator's block
_ROW_DIGITS = (Digit(8, "thread", 4), Digit(2, "register", 2), Digit(4, "thread", WARP))
_COLUMN_DIGITS = (Digit(2, "register", 1), Digit(4, "thread", 1))


@dataclass(frozen=True)
class StagedPlan(PartPlan):
    """The parts are a warpgroup's 64 x 64 elements."""

    @property
    def tiles(self) -> int:
        """Staging tiles of a warpgroup. Parts take them in turn, so their number must be one of
        whole rounds: the next tile of the grid begins with the first again."""
        return TILES if self.parts % TILES == 0 else 1


def staged_plan(src: Region, dst: Region, ctx: LowerContext) -> StagedPlan | None:
    """The plan when `src` is a wgmma accumulator, `dst` can be stored by TMA, and shared memory
    has room for the staging tiles without fewer blocks on a multiprocessor; else None."""
    if not setting(ctx, STAGED_STORES) or not ctx.target.has(Feature.TMA, Feature.STMATRIX):
        return None
    if dst.buffer.scope is not Scope.GLOBAL or dst.dtype.bits != 16 or not dst.dtype.is_float:
        return None
    staging, groups = ctx.shared.staging, ctx.num_threads // WARPGROUP
    if staging is None or not staging.written_once(dst.buffer) or ctx.num_threads % WARPGROUP:
        return None
    found = _parts_of(src)
    if found is None or len(tile_extents(dst)) != 2 or tensor_refusal(dst, ctx):
        return None
    shape = (groups * found.tiles, ROWS, COLS)
    known = _key(ctx, found, dst) in staging.tiles
    if not known and not staging.has_room(prod(shape) * dst.dtype.bytes):
        return None
    return found if staging.named_barriers(ctx.first_thread, groups) is not None else None


def _key(ctx: LowerContext, plan: StagedPlan, dst: Region) -> tuple[object, ...]:
    return (ctx.first_thread, plan.tiles, dst.dtype)


def _parts_of(src: Region) -> StagedPlan | None:
    """The 64 x 64 parts of a fragment laid out as wgmma's accumulators are."""
    layout = src.buffer.layout
    if src.buffer.scope is not Scope.FRAGMENT or not isinstance(layout, Fragment):
        return None
    if not is_whole(src) or src.buffer.rank != 2 or layout.is_padded or layout.replication != 1:
        return None
    rows, cols = layout.axes
    if rows[:3] != _ROW_DIGITS or cols[:2] != _COLUMN_DIGITS or len(cols) < 3:
        return None
    blocks = cols[2]
    if blocks.owner != "register" or blocks.extent % (COLS // BLOCK):
        return None
    rest = (*rows[3:], *cols[3:])
    if any(d.owner == "thread" and d.stride < WARPGROUP for d in rest):
        return None
    each = COLS // BLOCK
    bases = [(blocks.extent // each, blocks.stride * each)]
    bases += [(d.extent, d.stride) for d in rest if d.owner == "register"]
    return StagedPlan(layout, blocks.stride, digits_beside(bases))


def staged_store(
    ctx: LowerContext, src: Region, dst: Region, plan: StagedPlan, loc: Loc | None
) -> list[Stmt]:
    """All parts of the accumulator, one after another."""
    groups, staging = ctx.num_threads // WARPGROUP, ctx.shared.staging
    assert staging is not None
    shape = (groups * plan.tiles, ROWS, COLS)
    key = _key(ctx, plan, dst)
    used_before = staging.used_before(key)
    tiles = staging.buffer(key, shape, dst.dtype)
    barrier = staging.named_barriers(ctx.first_thread, groups)
    assert barrier is not None
    group = ctx.tid // WARPGROUP
    leader = binary("==", ctx.tid % WARPGROUP, 0)
    part = ctx.fresh("part", plan.parts)
    slot = group * plan.tiles + part % plan.tiles
    base = plan.base(part)
    why = "the last store of this tile has read it"
    free = [
        guarded(leader, [Invoke(tma_store_wait_read(plan.tiles - 1), (), why, loc=loc)], loc),
        _meet(group + barrier, "the tile may be overwritten", loc),
    ]
    if not used_before:  # the first parts meet fresh tiles
        free = [] if plan.parts <= plan.tiles else [guarded(part >= plan.tiles, free, loc)]
    body = [
        *free,
        *_fill(ctx, src, plan, base, Ref(tiles, (slot,)), loc),
        Invoke(FENCE_PROXY_ASYNC, (), "TMA reads what stmatrix wrote", loc=loc),
        _meet(group + barrier, "the tile is complete", loc),
        guarded(leader, _send(ctx, dst, plan, base, Ref(tiles, (slot,)), loc), loc),
    ]
    why = "shared memory must outlive the stores' reads"
    last = Invoke(tma_store_wait_read(0), (), why, loc=loc)
    staging.at_exit[ctx.first_thread] = guarded(leader, [last], loc)
    return [Seq((loop(part, plan.parts, LoopKind.UNROLL, body, loc),), loc=loc)]


def _meet(number: Expr, why: str, loc: Loc | None) -> Stmt:
    return Invoke(NAMED_BARRIER_SYNC, (number, as_expr(WARPGROUP)), why, loc=loc)


def _fill(
    ctx: LowerContext, src: Region, plan: StagedPlan, base: Expr, slot: Ref, loc: Loc | None
) -> list[Stmt]:
    """One part into its staging tile: four stmatrix of 16 columns each per warp, 16 rows high.

    Lane l addresses row l % 16, columns 8 (l / 16) onwards; the matrices are rows 0-7 and 8-15 of
    the first 8 columns, then of the second.
    """
    registers = whole_registers(src.buffer, ctx)
    q, h, e = ctx.fresh("q", COLS // 16), ctx.fresh("h", 2), ctx.fresh("e", 4)
    packed = ctx.temp("packed", 8, slot.buffer.dtype)
    value = Load(registers, (base + (q * 2 + h) * plan.block_stride + e,))
    pack = Store(packed, (h * 4 + e,), cast(value, packed.dtype), loc=loc)
    lanes = loop(h, 2, LoopKind.LANES, [loop(e, 4, LoopKind.LANES, [pack], loc)], loc)
    lane = ctx.tid % WARP
    row = ctx.tid // WARP % (WARPGROUP // WARP) * 16 + lane % 16
    place = Ref(slot.buffer, (*slot.indices, row, q * 16 + lane // 16 * 8))
    write = Invoke(stmatrix(4, False), (place, Ref(packed, (as_expr(0),), 8)), loc=loc)
    return [loop(q, COLS // 16, LoopKind.UNROLL, [lanes, write], loc)]


def _send(
    ctx: LowerContext, dst: Region, plan: StagedPlan, base: Expr, slot: Ref, loc: Loc | None
) -> list[Stmt]:
    """The TMA store of one part, as a group of its own."""
    first = ctx.tid // WARPGROUP * WARPGROUP  # the warpgroup's first thread holds the corner
    corner = plan.layout.element_of(first, base)
    starts, extents = list(dst.starts), [1] * len(dst.starts)
    axes = [a for a in dst.tile_axes if not _is_one(dst.extents[a])]
    for axis, offset, extent in zip(axes, corner, (ROWS, COLS), strict=True):
        starts[axis], extents[axis] = starts[axis] + offset, extent
    outer = Region(dst.buffer, tuple(starts), tuple(extents), tuple(axes))
    zero = as_expr(0)
    inner = Region(slot.buffer, (*slot.indices, zero, zero), (1, ROWS, COLS), (1, 2))
    out: list[Stmt] = [
        Invoke(tma_store(dst.buffer.rank), (descriptor, place, *coordinates), loc=loc)
        for descriptor, place, coordinates in tensor_boxes(ctx, outer, inner)
    ]
    return [*out, Invoke(TMA_STORE_COMMIT, (), loc=loc)]


def _is_one(extent: Expr | int) -> bool:
    return getattr(extent, "value", extent) == 1
