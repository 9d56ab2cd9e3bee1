"""Which axes of a tensor a tile at a base point covers: `T.copy(Q[b, i * 64, h, 0], tile)`.

The last axes, as in TileLang, unless neighbouring blocks would then overlap (an offset on a
covered axis is no multiple of the tile's extent) while exactly one other choice of axes has every
offset a multiple of its extent and every axis at least as long as the tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from tilelab.errors import Loc, TileValueError
from tilelab.ir import Expr, Load, const_int
from tilelab.ir.printer import to_text
from tilelab.ir.simplify import linear

Extent = Expr | int


@dataclass(frozen=True)
class Axes:
    """The axes chosen; `warning` says so when they are not the last ones."""

    axes: tuple[int, ...]
    warning: str = ""


def choose_axes(load: Load, shape: tuple[Extent, ...], loc: Loc | None) -> Axes:
    """The axes that a tile of `shape` covers from the point `load` on.

    Raises TileValueError (TL1505), with both spellings, when the last axes cannot hold the tile
    and no other choice is clear.
    """
    rank, count = load.buffer.rank, len(shape)
    last = tuple(range(rank - count, rank))
    if count == rank or _aligned(load, shape, last):
        return Axes(last)
    others = [a for a in combinations(range(rank), count) if a != last]
    fitting = [a for a in others if _aligned(load, shape, a) and _fits(load, shape, a)]
    if len(fitting) == 1:
        return Axes(fitting[0], _warning(load, shape, fitting[0], last))
    if not _fits(load, shape, last):
        name = load.buffer.name
        spellings = " or ".join(f"`{_slices(load, shape, a)}`" for a in (last, *others[:3]))
        raise TileValueError(
            f"the tile at {name}[...] runs past the last axes of {name}, and which axes it should "
            "cover is not clear",
            code="TL1505",
            loc=loc,
            hint=f"write the slices out: {spellings}",
        )
    return Axes(last)


def _aligned(load: Load, shape: tuple[Extent, ...], axes: tuple[int, ...]) -> bool:
    return all(_multiple(load.indices[a], e) for a, e in zip(axes, shape, strict=True))


def _multiple(offset: Expr, extent: Extent) -> bool:
    """Whether an offset is known to be a multiple of a tile extent."""
    size = const_int(extent)
    if size is None:
        return const_int(offset) == 0
    terms, constant = linear(offset)
    return constant % size == 0 and all(c % size == 0 for _, c in terms.values())


def _fits(load: Load, shape: tuple[Extent, ...], axes: tuple[int, ...]) -> bool:
    for axis, extent in zip(axes, shape, strict=True):
        length, size = const_int(load.buffer.shape[axis]), const_int(extent)
        if length is not None and size is not None and length < size:
            return False
    return True


def _slices(load: Load, shape: tuple[Extent, ...], axes: tuple[int, ...]) -> str:
    """The access with its slices written out."""
    extents = dict(zip(axes, shape, strict=True))
    parts: list[str] = []
    for axis, index in enumerate(load.indices):
        start = to_text(index)
        if axis not in extents:
            parts.append(start)
        elif const_int(index) == 0 and const_int(extents[axis]) == const_int(
            load.buffer.shape[axis]
        ):
            parts.append(":")
        else:
            parts.append(f"{start}:{to_text(index + extents[axis])}")
    return f"{load.buffer.name}[{', '.join(parts)}]"


def _warning(
    load: Load, shape: tuple[Extent, ...], axes: tuple[int, ...], last: tuple[int, ...]
) -> str:
    return (
        f"the tile is read as {_slices(load, shape, axes)}; TileLang would read "
        f"{_slices(load, shape, last)}, where neighbouring blocks overlap: write the slices out"
    )
