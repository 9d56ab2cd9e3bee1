"""Asynchronous copies from global to shared memory: TMA boxes and cp.async runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Expr, LoopKind, Pool, Region, Scope, Stmt, as_expr, const_int
from tilelab.layout import Fragment, SharedLayout
from tilelab.layout.shared import BOX_ALIGNMENT, row_major
from tilelab.thread.intrinsics.cp_async import cp_async, cp_async_zfill
from tilelab.thread.intrinsics.tma import tma_load
from tilelab.thread.nodes import LONGEST_AXIS, Invoke, Ref, TensorMap
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
    return tensor_refusal(src, ctx) or _tile_refusal(dst, ctx)


def tensor_refusal(src: Region, ctx: LowerContext) -> str:
    """What about the tensor keeps TMA away."""
    tensor = src.buffer
    if tensor.alias_of is not None:
        return f"{tensor.name} is a view of a tensor"
    if isinstance(tensor, Pool):
        return f"the address of {tensor.name} stands in a table, and a descriptor holds one"
    if not ctx.zero_outside(tensor):
        return f"reads past the end of {tensor.name} are to give another number than 0"
    if tensor.rank > TMA_MAX_RANK:
        return f"{tensor.name} has {tensor.rank} axes, TMA takes {TMA_MAX_RANK}"
    if not src.tile_axes or src.tile_axes[-1] != tensor.rank - 1:
        return f"the tile does not run along the last axis of {tensor.name}"
    strides = tensor.effective_strides()
    if const_int(strides[-1]) != 1:
        return f"the last axis of {tensor.name} is not contiguous"
    return _axes_refusal(src, ctx)


def _axes_refusal(src: Region, ctx: LowerContext) -> str:
    """What about the lengths and strides of a tensor's axes keeps TMA away."""
    tensor, size = src.buffer, src.buffer.dtype.bytes
    if ctx.divides(src.starts[-1]) * size < TMA_ALIGNMENT:
        # Measured on an H200: such a box stops the kernel with an illegal instruction.
        return f"the tile may start off a 16-byte boundary of the rows of {tensor.name}"
    for axis, extent in enumerate(tensor.shape):
        if _beyond_coordinates(extent, ctx):
            return f"axis {axis} of {tensor.name} may be too long for TMA's 32-bit coordinates"
    for axis, stride in enumerate(tensor.effective_strides()[:-1]):
        if ctx.divides(stride) * size < TMA_ALIGNMENT:
            return f"the stride of axis {axis} of {tensor.name} is no multiple of 16 bytes"
    return ""


def _beyond_coordinates(extent: Expr | int, ctx: LowerContext) -> bool:
    """Whether coordinates along an axis may need more than 32 bits. A dynamic size of 64 bits is
    taken to be small where the launcher looks at the tensors of each call."""
    known = const_int(extent)
    if known is None:
        return as_expr(extent).dtype.bits > 32 and not ctx.shared.assume_aligned
    return known > LONGEST_AXIS


def _tile_refusal(dst: Region, ctx: LowerContext) -> str:
    """What about the shared tile keeps TMA away."""
    tile, extents = dst.buffer, tile_extents(dst)
    if not extents or any(e > TMA_MAX_BOX for e in extents[:-1]):
        return f"a box axis holds at most {TMA_MAX_BOX} elements"
    layout = tile.layout
    if layout is not None and (not isinstance(layout, SharedLayout) or layout.pitch is not None):
        return f"rows of {tile.name} do not lie as TMA writes them"
    if panel_width(dst) * tile.dtype.bytes % TMA_ALIGNMENT:
        return f"a row of {tile.name} is no multiple of 16 bytes"
    if not box_width(dst):
        return f"a row of {tile.name} does not divide into whole boxes"
    strides = (layout or row_major(tile.static_shape, tile.dtype.bits)).leading_strides
    for start, stride in zip(dst.starts[:-1], strides, strict=True):
        if ctx.divides(start) * stride * tile.dtype.bits % (BOX_ALIGNMENT * 8):
            return f"the box may start off a {BOX_ALIGNMENT}-byte boundary of {tile.name}"
    return ""


def panel_width(dst: Region) -> int:
    """Columns of one box: a swizzle panel, or the whole row (at most 256 elements)."""
    layout: SharedLayout | None = dst.buffer.layout
    cols = int(dst.buffer.static_shape[-1])
    return layout.panel_cols if layout is not None else cols


def box_width(dst: Region) -> int:
    """Columns of one box: a panel, or the largest part of it that a box holds and whose end is a
    place for the next; 0 where there is none."""
    panel, size = panel_width(dst), dst.dtype.bytes
    if panel <= TMA_MAX_BOX:
        return panel
    parts = range(TMA_MAX_BOX, 0, -1)
    return next((w for w in parts if panel % w == 0 and w * size % BOX_ALIGNMENT == 0), 0)


def part_of_panels(inner: Region, ctx: LowerContext) -> bool:
    """Whether a tile takes only a part of a panel of its buffer's rows, or may: boxes cover whole
    panels."""
    width = box_width(inner)
    return not all(_multiple(v, width, ctx) for v in (inner.extents[-1], inner.starts[-1]))


def _multiple(value: Expr | int, of: int, ctx: LowerContext) -> bool:
    known = const_int(value)
    return (ctx.divides(value) if known is None else known) % of == 0


def tma_load_tile(
    ctx: LowerContext, src: Region, dst: Region, barrier: Ref, loc: Loc | None
) -> list[Stmt]:
    """One TMA box for each panel of the shared tile, completing on `barrier`."""
    record = tma_load(src.buffer.rank)
    return [
        Invoke(record, (descriptor, barrier, place, *coordinates), loc=loc)
        for descriptor, place, coordinates in tensor_boxes(ctx, src, dst)
    ]


def tensor_boxes(
    ctx: LowerContext, outer: Region, inner: Region
) -> Iterator[tuple[TensorMap, Ref, tuple[Expr, ...]]]:
    """The boxes between a region of a tensor and a shared tile of whole panels, one for each panel,
    or for each part of each row where a panel is wider than a box: descriptor, place in shared
    memory, coordinates (innermost axis first)."""
    tensor, width = outer.buffer, box_width(inner)
    layout: SharedLayout | None = inner.buffer.layout
    swizzle = layout.swizzle.row if layout is not None and layout.swizzle is not None else 0
    box = [1] * tensor.rank
    for axis in outer.tile_axes:
        box[axis] = 1 if width < panel_width(inner) else int(const_int(outer.extents[axis]) or 1)
    box[-1] = width
    descriptor = _tensor_map(ctx, outer, tuple(reversed(box)), swizzle)
    short = any(const_int(e) is None and as_expr(e).dtype.bits > 32 for e in tensor.shape)
    ctx.need_alignment(tensor, TMA_ALIGNMENT, short=short)
    tile = ctx.placed(inner.buffer)
    for row in np.ndindex(*_rows(outer, box)):
        there, here = _shifted(outer, row), _shifted(inner, row)
        for first in range(0, int(const_int(inner.extents[-1]) or 0), width):
            place = Ref(tile, (*here, inner.starts[-1] + first))
            yield descriptor, place, (outer.starts[-1] + first, *reversed(there))


def _long_axes(region: Region) -> list[int]:
    """The tile's axes of more than one element but the last, in its buffer."""
    return [a for a in region.tile_axes[:-1] if const_int(region.extents[a]) != 1]


def _rows(outer: Region, box: Sequence[int]) -> list[int]:
    """How often the box is repeated along each long axis."""
    return [int(const_int(outer.extents[a]) or 1) // box[a] for a in _long_axes(outer)]


def _shifted(region: Region, row: Sequence[int]) -> tuple[Expr, ...]:
    """Where a row of the region begins: all indices but the last."""
    starts = list(region.starts[:-1])
    for axis, offset in zip(_long_axes(region), row, strict=True):
        starts[axis] = starts[axis] + offset
    return tuple(starts)


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
    if src.dtype != dst.dtype or not ctx.zero_outside(src.buffer):
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
