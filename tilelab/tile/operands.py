"""What a user may hand to a tile op, turned into regions: a buffer, a slice, a base point."""

from __future__ import annotations

from typing import Any

from tilelab.errors import Loc, TileTypeError, TileValueError, a_kind, shown
from tilelab.ir import Buffer, Expr, Let, Load, Region, Scope, Var, as_expr, const_int, walk
from tilelab.ir.builder import current, is_tracing
from tilelab.tile.base_point import choose_axes

Extent = Expr | int


def here() -> Loc | None:
    """Where the traced program is now."""
    return current().loc() if is_tracing() else None


def whole(buffer: Buffer) -> Region:
    """The region that is all of a buffer."""
    zero = as_expr(0)
    extents = tuple(e if const_int(e) is None else const_int(e) for e in buffer.shape)
    return Region(buffer, (zero,) * buffer.rank, extents, tuple(range(buffer.rank)))  # type: ignore[arg-type]


def is_whole(region: Region) -> bool:
    """Whether a region is all of its buffer, axis by axis."""
    sizes = zip(region.extents, region.buffer.shape, strict=True)
    same = all(as_expr(e).key == as_expr(n).key for e, n in sizes)
    return same and all(const_int(s) == 0 for s in region.starts)


def in_registers(region: Region) -> bool:
    """Whether a region is a whole fragment (others are moved there, or brought back)."""
    return region.buffer.scope is Scope.FRAGMENT and is_whole(region)


def axis_of(dim: int, region: Region, what: str, code: str) -> int:
    """The number, from 0, of an axis of a tile that may count from the end. TileValueError with
    `code` where there is none."""
    rank = len(region.tile_shape)
    if not -rank <= dim < rank:
        raise TileValueError(
            f"dim = {dim}, and {what} has {rank} axes", code=code, loc=here(),
            hint=f"use {-rank} to {rank - 1}",
        )  # fmt: skip
    return dim % rank


def settled(value: Expr) -> Expr:
    """`value` as it is now: one that reads memory is kept under a name."""
    if not any(isinstance(n, Load) for n in walk(value)):
        return value
    kept = Var(current().fresh("value"), value.dtype, *value.bounds)
    current().emit(Let(kept, value, loc=here()), anywhere=True)
    return kept


def as_region(
    value: Any, what: str, tile_shape: tuple[Extent, ...] | None = None, clips: bool = False
) -> Region:
    """`value` as a region. A base point `A[i, j]` covers `tile_shape` on the last axes. `clips`:
    the operation knows what to do past the end of a tensor.

    Raises TileTypeError (TL1501) naming the argument when it is no buffer, slice or element, or
    when a base point stands where no tile gives it a shape; TileIndexError (TL1107) for a slice
    past the end where nothing clips it, and for a base point that no part of a tile can lie at.
    """
    if isinstance(value, Load):
        return _base_point(value, what, tile_shape)
    if isinstance(value, Region | Buffer):
        region = value if isinstance(value, Region) else whole(value)
        if not clips:
            region.check_inside()
        return region
    raise TileTypeError(
        f"{what} is {shown(value)}, {a_kind(value)}",
        code="TL1501",
        loc=here(),
        hint="pass a buffer, a slice such as A[0:64, 0:32], or a base point such as A[i, j]",
    )


def _base_point(load: Load, what: str, tile_shape: tuple[Extent, ...] | None) -> Region:
    if tile_shape is None:
        raise TileTypeError(
            f"{what} is the single element {load.buffer.name}[...], which has no tile shape here",
            code="TL1501",
            loc=here(),
            hint="write the tile as slices: A[i:i + 64, j:j + 32]",
        )
    rank, tile_rank = load.buffer.rank, len(tile_shape)
    shape = tile_shape
    while tile_rank > rank and const_int(shape[0]) == 1:
        shape, tile_rank = shape[1:], tile_rank - 1
    if tile_rank > rank:
        raise TileTypeError(
            f"a tile of {tile_rank} axes cannot start at {load.buffer.name}, which has {rank}",
            code="TL1502",
            loc=here(),
            hint="give the tile and the tensor the same number of axes",
        )
    chosen = choose_axes(load, shape, here())
    axes = chosen.axes
    extents: list[Extent] = [1] * rank
    for axis, extent in zip(axes, shape, strict=True):
        extents[axis] = extent
    region = Region(load.buffer, load.indices, tuple(extents), axes, note=chosen.warning)
    region.check_starts()
    return region


def pair_regions(src: Any, dst: Any) -> tuple[Region, Region]:
    """Regions of a copy: a base point takes the other side's tile shape. A slice of a tensor may
    run past its end: elements there read as 0 and are not written."""
    if isinstance(src, Load) and isinstance(dst, Load):
        one = (1,)
        return as_region(src, "src", one), as_region(dst, "dst", one)
    if isinstance(src, Load):
        target = as_region(dst, "dst", clips=True)
        return as_region(src, "src", target.tile_shape), target
    source = as_region(src, "src", clips=True)
    return source, as_region(dst, "dst", source.tile_shape, clips=True)


def same_extents(a: tuple[Extent, ...], b: tuple[Extent, ...]) -> bool:
    """Whether two tile shapes are equal (symbolic extents by structure), axes of 1 apart."""
    left = [e for e in a if const_int(e) != 1]
    right = [e for e in b if const_int(e) != 1]
    return len(left) == len(right) and all(
        as_expr(x).key == as_expr(y).key for x, y in zip(left, right, strict=True)
    )


def shape_text(shape: tuple[Extent, ...]) -> str:
    """A shape for messages: 128x64."""
    parts = [str(c) if (c := const_int(e)) is not None else getattr(e, "name", "?") for e in shape]
    return "x".join(parts) or "scalar"


def check_same_tile(
    what: str, src: Region, dst: Region, loc: Loc | None, link: str = "into"
) -> None:
    """Raise TileValueError (TL1503) when `src` and `dst` are tiles of different extents; `what`
    names the operation."""
    if not same_extents(src.tile_shape, dst.tile_shape):
        raise TileValueError(
            f"{what} of a {shape_text(src.tile_shape)} tile of {src.buffer.name} {link} a "
            f"{shape_text(dst.tile_shape)} tile of {dst.buffer.name}",
            code="TL1503",
            loc=loc,
            hint="give both sides the same extents, for instance by slicing the larger one",
        )


def check_same_rank(what: str, src: Region, dst: Region, loc: Loc | None) -> None:
    """Raise TileValueError (TL1503) when tiles whose extents are known at run time have other
    numbers of axes (those of 1 apart)."""
    ranks = [sum(const_int(e) != 1 for e in r.tile_shape) for r in (src, dst)]
    if ranks[0] != ranks[1]:
        raise TileValueError(
            f"{what} of a {shape_text(src.tile_shape)} tile of {src.buffer.name} into a "
            f"{shape_text(dst.tile_shape)} tile of {dst.buffer.name}",
            code="TL1503", loc=loc, hint="give both sides the same number of axes",
        )  # fmt: skip
