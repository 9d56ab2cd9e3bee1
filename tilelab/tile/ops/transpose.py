"""transpose(src, dst): exchange the last two axes of a tile."""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileValueError
from tilelab.ir import Expr, Load, ParallelFor, Region, Seq, Store, Var, cast, const_int
from tilelab.ir.builder import current
from tilelab.tile.operands import as_region, here, shape_text


def transpose(src: Any, dst: Any, annotations: Any = None) -> ParallelFor:
    """`dst[..., j, i] = src[..., i, j]`, any two scopes and element types.

    It is the elementwise loop that one would write, so it takes the layouts that one would get.
    Raises TileValueError (TL1526) when the extents do not fit, or both sides are one buffer.
    """
    del annotations  # hints of the peer change no result
    source, target = as_region(src, "src"), as_region(dst, "dst")
    _check(source, target)
    vars = tuple(
        Var(current().fresh(name), lo=0, hi=int(const_int(extent) or 1) - 1)
        for name, extent in zip(_names(target), target.tile_shape, strict=True)
    )
    swapped: tuple[Expr, ...] = (*vars[:-2], vars[-1], vars[-2])
    value = cast(Load(source.buffer, source.index(swapped)), target.dtype)
    loc = here()
    store = Store(target.buffer, target.index(vars), value, loc=loc)
    op = ParallelFor(vars, target.tile_shape, Seq((store,), loc=loc), loc=loc)
    current().emit(op)
    return op


def _names(target: Region) -> list[str]:
    lead = len(target.tile_shape) - 2
    return [*(f"b{n}" for n in range(lead)), "i", "j"]


def _check(source: Region, target: Region) -> None:
    shapes = [[const_int(e) for e in r.tile_shape] for r in (source, target)]
    mine, its = shapes
    fits = len(mine) >= 2 and None not in mine and its == [*mine[:-2], mine[-1], mine[-2]]
    if not fits or source.buffer.storage is target.buffer.storage:
        what = "into itself" if fits else f"into {target.buffer.name} "
        what += "" if fits else f"({shape_text(target.tile_shape)})"
        raise TileValueError(
            f"transpose of {source.buffer.name} ({shape_text(source.tile_shape)}) {what}",
            code="TL1526",
            loc=here(),
            hint="give dst a buffer of its own, with the last two of src's extents exchanged",
        )
