"""Asynchronous copies from global to shared memory: TMA boxes and cp.async runs."""

from __future__ import annotations

from tilelab.errors import Loc
from tilelab.ir import Expr, LoopKind, Region, Scope, Stmt, as_expr, const_int
from tilelab.layout import Fragment, SharedLayout
from tilelab.thread.intrinsics.cp_async import cp_async, cp_async_zfill
from tilelab.thread.intrinsics.tma import tma_load
from tilelab.thread.nodes import Invoke, Ref, TensorMap
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import expand, guard_of, guarded, tile_extents, walk_tile

TMA_MAX_BOX = 256  # elements on one axis of a box (CUDA driver API, cuTensorMapEncodeTiled)
TMA_MAX_RANK = 5
TMA_ALIGNMENT = 16  # bytes: strides, and the innermost extent of a box


def why_not_tma(src: Region, dst: Region, ctx: LowerContext) -> str:
    """Why a copy cannot be a TMA load; empty when it can.

    TMA moves whole boxes of a tensor whose rows are 16-byte aligned into whole shared tiles.
    """
    tensor, tile = src.buffer, dst.buffer
    if tensor.scope is not Scope.GLOBAL or tile.scope is not Scope.SHARED:
        return "it is not a copy from global to shared memory"
    if src.dtype != dst.dtype:
        return f"it converts {src.dtype} to {dst.dtype}"
    if tensor.alias_of is not None:
        return f"{tensor.name} is a view of a tensor"
    if tensor.rank > TMA_MAX_RANK:
        return f"{tensor.name} has {tensor.rank} axes, TMA takes {TMA_MAX_RANK}"
    extents = tile_extents(dst)
    if not extents or any(e > TMA_MAX_BOX for e in extents[:-1]):
        return f"a box axis holds at most {TMA_MAX_BOX} elements"
    if not src.tile_axes or src.tile_axes[-1] != tensor.rank - 1:
        return f"the tile does not run along the last axis of {tensor.name}"
    strides = tensor.effective_strides()
    if const_int(strides[-1]) != 1:
        return f"the last axis of {tensor.name} is not contiguous"
    size = tensor.dtype.bytes
    for axis, stride in enumerate(strides[:-1]):
        if ctx.divides(stride) * size < TMA_ALIGNMENT:
            return f"the stride of axis {axis} of {tensor.name} is no multiple of 16 bytes"
    if panel_width(dst) * size % TMA_ALIGNMENT:
        return f"a row of {tile.name} is no multiple of 16 bytes"
    return ""


def panel_width(dst: Region) -> int:
    """Columns of one box: a swizzle panel, or the whole row (at most 256 elements)."""
    layout: SharedLayout | None = dst.buffer.layout
    cols = int(dst.buffer.static_shape[-1])
    return layout.panel_cols if layout is not None else cols


def tma_load_tile(
    ctx: LowerContext, src: Region, dst: Region, barrier: Ref, loc: Loc | None
) -> list[Stmt]:
    """One TMA box for each panel of the shared tile, completing on `barrier`."""
    tensor, width = src.buffer, panel_width(dst)
    layout: SharedLayout | None = dst.buffer.layout
    swizzle = layout.swizzle.row if layout is not None and layout.swizzle is not None else 0
    box = [1] * tensor.rank
    for axis in src.tile_axes:
        box[axis] = int(const_int(src.extents[axis]) or 1)
    box[-1] = min(width, TMA_MAX_BOX)
    descriptor = _tensor_map(ctx, src, tuple(reversed(box)), swizzle)
    ctx.need_alignment(tensor, TMA_ALIGNMENT)
    tile = ctx.placed(dst.buffer)
    out: list[Stmt] = []
    for first in range(0, int(dst.buffer.static_shape[-1]), box[-1]):
        place = Ref(tile, (*dst.starts[:-1], dst.starts[-1] + first))
        coordinates = (src.starts[-1] + first, *reversed(src.starts[:-1]))
        operands = (descriptor, barrier, place, *coordinates)
        out.append(Invoke(tma_load(tensor.rank), operands, loc=loc))
    return out


def _tensor_map(ctx: LowerContext, src: Region, box: tuple[int, ...], swizzle: int) -> TensorMap:
    """The descriptor of a tensor with this box; one for all copies that share it."""
    tensor = src.buffer
    for known in ctx.shared.maps:
        if known.tensor is tensor and known.box == box and known.swizzle == swizzle:
            return known
    axes = tuple(reversed(range(tensor.rank)))
    made = TensorMap(ctx.shared.names(f"{tensor.name}_desc"), tensor, axes, box, swizzle)
    ctx.shared.maps.append(made)
    return made


def async_width(src: Region, dst: Region, ctx: LowerContext) -> int | None:
    """Elements of one cp.async (4, 8 or 16 bytes), or None when it cannot be used."""
    if src.buffer.scope is not Scope.GLOBAL or dst.buffer.scope is not Scope.SHARED:
        return None
    if src.dtype != dst.dtype:
        return None
    last = (tile_extents(dst) or (1,))[-1]
    limit = TMA_ALIGNMENT // src.dtype.bytes
    width = min(ctx.vector_width(src, last, limit), ctx.vector_width(dst, last, limit))
    return width if width * src.dtype.bytes >= 4 else None


def cp_async_tile(ctx: LowerContext, src: Region, dst: Region, loc: Loc | None) -> list[Stmt]:
    """Every thread starts its share of the tile; chunks outside the tensor become zeros."""
    width = async_width(src, dst, ctx)
    assert width is not None
    spread = Fragment.blocked(tile_extents(dst), ctx.num_threads, width)
    walk = walk_tile(ctx, spread, width)
    source = Ref(src.buffer, src.index(expand(src, walk.index)), width)
    target = Ref(ctx.placed(dst.buffer), dst.index(expand(dst, walk.index)), width)
    exists: Expr | None = guard_of(ctx, src, walk.index)
    nbytes = width * src.dtype.bytes
    if exists is None:
        copy: Stmt = Invoke(cp_async(nbytes), (target, source), loc=loc)
    else:
        copy = Invoke(cp_async_zfill(nbytes), (target, source, as_expr(exists)), loc=loc)
    body = [guarded(walk.inside, [copy], loc)]
    return [walk.over(LoopKind.UNROLL, body, loc)]
