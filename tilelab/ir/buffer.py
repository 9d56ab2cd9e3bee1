"""Buffers: named arrays with a scope, and regions of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn

from tilelab.dtypes import DType
from tilelab.errors import Loc, TileIndexError, TileTypeError, a_kind
from tilelab.ir.build import as_expr
from tilelab.ir.core import Node
from tilelab.ir.expr import Expr, Load, const_int
from tilelab.ir.operators import Operators


class Scope(enum.Enum):
    """Where a buffer lives. FRAGMENT exists in tile IR only; lowering turns it into LOCAL."""

    GLOBAL = "global"
    SHARED = "shared"
    FRAGMENT = "fragment"
    LOCAL = "local"  # registers (or local memory) of each thread
    BARRIER = "barrier"  # mbarriers: 8 bytes of shared memory each

    @property
    def is_memory(self) -> bool:
        """Whether elements lie where several threads reach them."""
        return self in (Scope.GLOBAL, Scope.SHARED)


@dataclass(frozen=True, eq=False)
class Buffer(Node):
    """A named array; identity is the object. Shapes of on-chip buffers are Python ints.

    `strides` (elements) are given for global tensors that are not row-major. `layout` is set by
    layout inference: a `layout.SharedLayout` for SHARED (logical indices -> element offset),
    a `layout.Fragment` for FRAGMENT; None means row-major. `origin` is the user's buffer that a
    pass derived this one from (a versioned copy, the registers of a fragment). `alias_of` is the
    buffer whose bytes this one names under another shape or element type (T.reshape, T.view).
    `copy_of` is the user's name of the tile that a pass made this one a copy of ("": it is none).
    """

    is_leaf: ClassVar[bool] = True
    __array_ufunc__ = None  # numpy's functions do not work on it

    name: str
    shape: tuple[Expr | int, ...]
    dtype: DType
    scope: Scope
    strides: tuple[Expr | int, ...] | None = None
    layout: Any = None
    loc: Loc | None = None
    origin: Buffer | None = None
    alias_of: Buffer | None = None
    copy_of: str = ""

    def __getitem__(self, index: Any) -> Load | Region:
        """`A[i, j]`: one element; with a slice anywhere, a region (no steps)."""
        parts = _as_tuple(index)
        if len(parts) != self.rank:
            raise TileIndexError(
                f"{self.name} has {self.rank} {'axis' if self.rank == 1 else 'axes'}, "
                f"{len(parts)} {'index was' if len(parts) == 1 else 'indices were'} given",
                code="TL1105",
                hint=f"write one index or slice for each axis of shape {_shape_text(self.shape)}",
            )
        if any(isinstance(p, slice) for p in parts):
            return region_of(self, parts)
        return Load(self, tuple(_wrap(p, s) for p, s in zip(parts, self.shape, strict=True)))

    def __iter__(self) -> NoReturn:
        """TileTypeError (TL1442): Python would ask for elements without end."""
        raise TileTypeError(
            f"Python cannot run over the elements of {self.name}", code="TL1442",
            hint="loop over an axis: `for i in T.serial(n): ... A[i]`",
        )  # fmt: skip

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def data(self) -> Buffer:
        """Where its elements begin: the buffer itself, which stands for its address in calls."""
        return self

    @cached_property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as ints; only for on-chip buffers and static tensors."""
        sizes = tuple(const_int(s) for s in self.shape)
        if any(s is None for s in sizes):
            raise ValueError(f"buffer {self.name} has a dynamic shape")
        return sizes  # type: ignore[return-value]

    @property
    def is_static(self) -> bool:
        return all(const_int(s) is not None for s in self.shape)

    @property
    def root(self) -> Buffer:
        """The user's buffer that this one stands for."""
        return self.origin.root if self.origin is not None else self

    @property
    def said(self) -> str:
        """What the user calls it, for messages."""
        return self.root.copy_of or self.root.name

    @property
    def storage(self) -> Buffer:
        """The buffer whose bytes these are: itself, unless it is a view of another one."""
        return self if self.alias_of is None else self.alias_of.storage

    def effective_strides(self) -> tuple[Expr | int, ...]:
        """Strides in elements, row-major unless given."""
        if self.strides is not None:
            return self.strides
        strides: list[Expr | int] = []
        step: Expr | int = 1
        for size in reversed(self.shape):
            strides.insert(0, step)
            step = step * size
        return tuple(strides)


@dataclass(frozen=True, eq=False)
class ScalarBuffer(Operators, Buffer):
    """T.alloc_var: one mutable scalar of each thread, used like a number in expressions."""

    def __expr__(self) -> Expr:
        return Load(self, (as_expr(0),))


@dataclass(frozen=True, eq=False)
class ReducerBuffer(Buffer):
    """T.alloc_reducer: a fragment whose copies gather partial results of `op` until they are
    combined."""

    op: str = "sum"


@dataclass(frozen=True, eq=False)
class Pool(Buffer):
    """Tensors of one shape that lie anywhere: `table` holds the address of each. The first axes
    are the table's; along them `strides` are 0, for an offset counts from the address found."""

    table: Buffer = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class WorkCounter(Buffer):
    """A workspace that is zero when the launch of its kernel begins, and that launch's alone."""


def _shape_text(shape: tuple[Any, ...]) -> str:
    return (
        "("
        + ", ".join(
            str(const_int(s) if const_int(s) is not None else getattr(s, "name", "?"))
            for s in shape
        )
        + (",)" if len(shape) == 1 else ")")
    )


def _wrap(index: Any, size: Expr | int) -> Expr:
    """An index that is always negative counts from the end."""
    if not as_expr(index).dtype.is_int:
        raise TileIndexError(
            f"an index is {_index_text(index)}: indices are integers",
            code="TL1110",
            hint='use an integer, or convert: T.cast(x, "int32")',
        )
    index = as_expr(index)
    high = index.bounds[1]
    return as_expr(size) + index if high is not None and high < 0 else index


def _index_text(index: Any) -> str:
    if isinstance(index, Expr):
        return f"a value of type {index.dtype}"
    return f"{index!r}, {a_kind(index)}"


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)  # pyright: ignore[reportUnknownVariableType]


def _slice_parts(part: Any) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def region_of(buffer: Buffer, parts: tuple[Any, ...]) -> Region:
    """The region of `buffer[parts]`, where each part is an index or a slice without a step."""
    starts: list[Expr] = []
    extents: list[Expr | int] = []
    tile_axes: list[int] = []
    for axis, (part, size) in enumerate(zip(parts, buffer.shape, strict=True)):
        if not isinstance(part, slice):
            starts.append(_wrap(part, size))
            extents.append(1)
            continue
        first, last, step = _slice_parts(part)  # pyright: ignore[reportUnknownArgumentType]
        if step not in (None, 1):
            raise TileIndexError(
                f"a slice of {buffer.name} has the step {step}: steps are not supported",
                code="TL1106",
                hint="copy element by element in a T.Parallel loop instead",
            )
        start = as_expr(0) if first is None else _wrap(first, size)
        stop = as_expr(size) if last is None else _wrap(last, size)
        starts.append(start)
        extent = stop - start
        known = const_int(extent)
        extents.append(extent if known is None else known)
        tile_axes.append(axis)
        # A copy clips what lies past the end of a tensor; who cannot asks `check_inside`.
        clips = buffer.scope is Scope.GLOBAL and _starts_inside(start, size)
        if not clips:
            check_bounds(buffer, axis, start, stop, size)
    return Region(buffer, tuple(starts), tuple(extents), tuple(tile_axes))


def _starts_inside(start: Expr, size: Expr | int) -> bool:
    low, limit = const_int(start), const_int(size)
    return low is not None and limit is not None and 0 <= low < limit


def check_bounds(
    buffer: Buffer, axis: int, start: Expr, stop: Expr | int, size: Expr | int
) -> None:
    """Raise TileIndexError (TL1107) when a slice with constant bounds leaves its axis."""
    low, high, limit = const_int(start), const_int(stop), const_int(size)
    bad_low = low is not None and low < 0
    bad_high = high is not None and limit is not None and high > limit
    if bad_low or bad_high:
        raise TileIndexError(
            f"the slice {low}:{high} exceeds axis {axis} of {buffer.name}, whose extent is {limit}",
            code="TL1107",
            hint=f"keep the region within 0:{limit}",
        )


@dataclass(frozen=True, eq=False)
class Region(Node):
    """A box of a buffer: a start and an extent on every axis.

    An axis with extent 1 given by a plain index is squeezed: `tile_axes` lists the others, so
    the region of `K[b, i*64:(i+1)*64, h, :]` is a 64 x D tile.
    """

    __array_ufunc__ = None

    buffer: Buffer
    starts: tuple[Expr, ...]
    extents: tuple[Expr | int, ...]
    tile_axes: tuple[int, ...]
    note: str = field(default="", compare=False)  # how it was read, where that may surprise

    def check_inside(self) -> None:
        """Raise TileIndexError (TL1107) where constant bounds run past the end of an axis."""
        sides = zip(self.starts, self.extents, self.buffer.shape, strict=True)
        for axis, (start, extent, size) in enumerate(sides):
            if axis in self.tile_axes:
                check_bounds(self.buffer, axis, start, start + extent, size)

    def check_starts(self) -> None:
        """Raise TileIndexError (TL1107) where a constant start lies past the end of its axis."""
        sides = zip(self.starts, self.extents, self.buffer.shape, strict=True)
        for axis, (start, extent, size) in enumerate(sides):
            if const_int(start) != 0 and not _starts_inside(start, size):
                check_bounds(self.buffer, axis, start, start + extent, size)

    @property
    def tile_shape(self) -> tuple[Expr | int, ...]:
        return tuple(self.extents[a] for a in self.tile_axes)

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    def index(self, tile_index: tuple[Any, ...]) -> tuple[Expr, ...]:
        """Buffer indices of one element of the tile (tile indices in the order of tile_axes)."""
        full: list[Any] = list(self.starts)
        for axis, i in zip(self.tile_axes, tile_index, strict=True):
            full[axis] = full[axis] + i
        return tuple(full)
