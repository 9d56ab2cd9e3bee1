"""Layouts that a program writes itself: index maps as functions, and makers by name.

A map that equals a layout of the algebra becomes that layout, so that TMA and matrix instructions
know it; any other one is kept as its formula and a table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .digits import Index, malformed, unravel
from .fragment import Fragment
from .probe import from_function
from .shared import PLAIN_ALIGNMENT, SharedLayout, Stored, best_swizzle, padded, row_major, swizzled
from .swizzle import TMA_SWIZZLES
from .table import AnyFragment

IndexMap = Callable[..., Any]
"""(i, j, ...) -> an index, or a tuple of indices."""


class Layout:
    """An index map: `Layout((64, 32), lambda i, j: i * 32 + (j ^ (i % 8)))`.

    `fn` gets one index per axis (numbers, arrays or expressions of a kernel) and returns where the
    element lies: one index, or several that are taken as row-major.
    """

    def __init__(self, shape: Sequence[int], forward_fn: IndexMap) -> None:
        self.shape = tuple(int(extent) for extent in shape)
        self.forward_fn = forward_fn
        if any(extent < 1 for extent in self.shape):
            raise malformed(f"a layout of shape {self.shape} is empty")

    def get_input_shape(self) -> list[int]:
        """The extents of the map's indices."""
        return list(self.shape)

    def get_output_shape(self) -> list[int]:
        """The extents of what the map gives."""
        return [int(part.max()) + 1 for part in self._outputs]

    def map_forward_index(self, indices: Sequence[Index]) -> list[Index]:
        """Where an element goes."""
        return as_list(self.forward_fn(*indices))

    def __call__(self, *indices: Index) -> list[Index]:
        return self.map_forward_index(indices)

    def linear(self, indices: Sequence[Index]) -> Index:
        """Where an element goes, as one number."""
        total: Index = 0
        parts = self.map_forward_index(indices)
        for part, extent in zip(parts, self.get_output_shape(), strict=True):
            total = total * extent + part
        return total

    def is_equal(self, other: Layout) -> bool:
        """Whether both maps put every element in the same place."""
        return self.shape == other.shape and np.array_equal(self.table, other.table)

    def __repr__(self) -> str:
        return f"Layout({self.shape} -> {tuple(self.get_output_shape())})"

    def get_linearized_forward_index(self, indices: Sequence[Index]) -> Index:
        """Where an element goes, as one number."""
        return self.linear(indices)

    def repeat(self, dim: int, factor: int) -> Layout:
        """`factor` copies along an axis; the copy's number comes first in what the map gives.
        TileValueError (TL1301) for another axis or factor."""
        axis, shape = _axis(dim, self.shape), list(self.shape)
        once = shape[axis]
        shape[axis] *= positive(factor, "factor")

        def forward(*indices: Any) -> list[Any]:
            inner = [i % once if n == axis else i for n, i in enumerate(indices)]
            return [indices[axis] // once, *self.map_forward_index(inner)]

        return Layout(shape, forward)

    def expand(self, leading_shape: Sequence[int]) -> Layout:
        """New axes before the others, whose indices come first in what the map gives."""
        count = len(leading_shape)

        def forward(*indices: Any) -> list[Any]:
            return [*indices[:count], *self.map_forward_index(indices[count:])]

        return Layout([*leading_shape, *self.shape], forward)

    def reshape(self, shape: Sequence[int], rescale_num: int = 1, rescale_den: int = 1) -> Layout:
        """The same places under another shape, row-major. TileValueError (TL1301) for another
        number of elements, or other elements (`rescale_num` / `rescale_den` other than 1)."""
        if prod(shape) != prod(self.shape) or rescale_num != rescale_den:
            raise malformed(f"a layout of {self.shape} is no layout of {tuple(shape)}")

        def forward(*indices: Any) -> list[Any]:
            flat: Any = 0
            for index, extent in zip(indices, shape, strict=True):
                flat = flat * extent + index
            return self.map_forward_index(unravel(flat, self.shape))

        return Layout(shape, forward)

    def inverse(self) -> Layout:
        """From places to indices. TileValueError (TL1301) where places are left out."""
        places = np.full(prod(self.get_output_shape()), -1, np.int64)
        if self.table.max() + 1 != self.table.size or places.size != self.table.size:
            raise malformed(f"a layout of {self.shape} leaves out places, so it has no inverse")
        places[self.table.ravel()] = np.arange(self.table.size)
        back = [np.reshape(part, self.get_output_shape())
                for part in np.unravel_index(places, self.shape)]  # fmt: skip
        return Layout(self.get_output_shape(), lambda *at: [part[at] for part in back])

    @cached_property
    def _outputs(self) -> list[NDArray[np.int64]]:
        grid = np.indices(self.shape)
        try:
            parts = as_list(self.forward_fn(*grid))
        except (TypeError, ValueError):  # written for single numbers
            points = (unravel(n, self.shape) for n in range(prod(self.shape)))
            columns = zip(*(as_list(self.forward_fn(*p)) for p in points), strict=True)
            parts = [np.reshape(column, self.shape) for column in columns]
        return [np.array(np.broadcast_to(p, self.shape), np.int64) for p in parts]

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """The linear place of every element. TileValueError (TL1301) when two share one."""
        grid = self._outputs
        table = np.zeros(self.shape, np.int64)
        for part in grid:
            table = table * (int(part.max()) + 1) + part
        if table.min() < 0 or len(np.unique(table)) != table.size:
            raise malformed(f"a layout of {self.shape} gives two elements one place")
        return table

    def check_places(self, most: int) -> None:
        """TileValueError (TL1301) when two of (at most `most`, evenly drawn) elements share a
        place: for tensors, which may be too large for a table."""
        size = prod(self.shape)
        numbers = np.arange(size) if size <= most else np.unique(
            np.random.default_rng(0).integers(size, size=most)
        )  # fmt: skip
        parts = as_list(self.forward_fn(*np.unravel_index(numbers, self.shape)))
        places = np.stack([np.broadcast_to(p, numbers.shape) for p in parts], axis=1)
        if len(np.unique(places, axis=0)) != len(numbers):
            raise malformed(f"a layout of {self.shape} gives two elements one place")

    def shared(self, bits: int) -> SharedLayout | MapLayout:
        """The layout of a shared tile of `bits`-bit elements."""
        table = self.table
        for candidate in _candidates(self.shape, bits, table):
            if np.array_equal(candidate.offsets, table):
                return candidate
        return MapLayout(self, bits)


def as_list(value: Any) -> list[Any]:
    """The parts that a map gave: one index stands for itself."""
    return list(value) if isinstance(value, tuple | list) else [value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _axis(dim: int, shape: Sequence[int]) -> int:
    if not -len(shape) <= dim < len(shape):
        raise malformed(f"dim = {dim}, and the layout has {len(shape)} axes")
    return dim % len(shape)


def positive(value: int, what: str) -> int:
    """`value`, or TileValueError (TL1301) when it is no positive int."""
    if not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise malformed(f"{what} = {value!r} is no positive int")
    return value


def _candidates(shape: tuple[int, ...], bits: int, table: NDArray[np.int64]) -> list[SharedLayout]:
    found = [row_major(shape, bits)]
    if len(shape) < 2:
        return found
    cols = shape[-1]
    found += [swizzled(shape, bits, n) for n in TMA_SWIZZLES if cols * bits % (n * 8) == 0]
    pitch = int(table.reshape(-1, cols)[1, 0]) if table.size > cols else 0
    return [*found, padded(shape, bits, pitch - cols)] if pitch > cols else found


class MapLayout(Stored):
    """The layout of a shared tile by a formula of the program; answers as a SharedLayout without
    a swizzle does. `stages` slots of a pipeline lie one after another."""

    swizzle = None
    pitch = None
    alignment = 128

    def __init__(self, layout: Layout, element_bits: int, stages: int = 0) -> None:
        self.layout, self.element_bits, self.stages = layout, element_bits, stages
        self.shape = (stages, *layout.shape) if stages else layout.shape

    def staged(self, stages: int) -> MapLayout:
        """The same with a leading axis of slots."""
        return MapLayout(self.layout, self.element_bits, stages)

    @cached_property
    def _slot(self) -> int:
        """Elements of one slot, rounded up so that every slot is aligned alike."""
        step = self.alignment * 8 // self.element_bits
        return -(-(int(self.layout.table.max()) + 1) // step) * step

    @property
    def num_bytes(self) -> int:
        """Bytes of storage, holes included."""
        return self._slot * max(self.stages, 1) * self.element_bits // 8

    def offset_of(self, indices: Sequence[Index]) -> Index:
        """Element offset of an element; ints, numpy arrays or IR expressions inside the shape."""
        if len(indices) != len(self.shape):
            raise malformed(f"{len(indices)} indices for a shared tile of rank {len(self.shape)}")
        if not self.stages:
            return self.layout.linear(indices)
        return indices[0] * self._slot + self.layout.linear(indices[1:])

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The element offset of every element, an array of the tile's shape."""
        slots = np.arange(max(self.stages, 1)) * self._slot
        table = slots.reshape(-1, *(1,) * self.layout.table.ndim) + self.layout.table
        return table.reshape(self.shape)

    @cached_property
    def panel_cols(self) -> int:
        """The widest run of neighbours that lie side by side, aligned to their number."""
        return aligned_run(self.offsets)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MapLayout) or self.element_bits != other.element_bits:
            return False
        return np.array_equal(self.offsets, other.offsets)

    def __hash__(self) -> int:
        return hash((self.element_bits, self.offsets.tobytes()))

    def __repr__(self) -> str:
        return f"{self} {hashlib.sha256(self.offsets.tobytes()).hexdigest()[:16]}"

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape)) or "scalar"
        return f"MapLayout({size} of {self.element_bits} bits, {self.num_bytes} bytes)"


def aligned_run(offsets: NDArray[np.int64]) -> int:
    """The largest power of two so that so many neighbours of the last axis lie side by side, at
    a multiple of their number."""
    cols, width = (offsets.shape[-1] if offsets.ndim else 1), 1
    while cols % (2 * width) == 0:
        runs = offsets.reshape(-1, 2 * width)
        steps = runs == runs[:, :1] + np.arange(2 * width)
        if not (steps.all() and (runs[:, 0] % (2 * width) == 0).all()):
            break
        width *= 2
    return width


def _tile(buffer: Any, *rest: int) -> tuple[tuple[int, ...], int]:
    """Shape and element bits of a buffer, or of (rows, columns, bits)."""
    if rest:
        columns, bits = rest
        return (int(buffer), columns), bits
    return tuple(int(extent) for extent in buffer.static_shape), int(buffer.dtype.bits)


def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> SharedLayout:
    """The widest swizzle that fits a row of the buffer, else rows with 16 bytes of padding (plain
    rows without `allow_pad`): what matrix instructions read without bank conflicts."""
    del k_major  # both ways are read through the same swizzle
    shape, bits = _tile(buffer)
    width = best_swizzle(shape[-1], bits) if len(shape) > 1 else None
    if width is not None:
        return swizzled(shape, bits, width)
    pad = PLAIN_ALIGNMENT * 8 // bits
    return padded(shape, bits, pad) if allow_pad and len(shape) > 1 else row_major(shape, bits)


def make_wgmma_swizzled_layout(
    buffer: Any, continuity: int | None = None, k_major: bool = True
) -> SharedLayout:
    """The widest swizzle that fits a row of the buffer."""
    del continuity
    return make_swizzled_layout(buffer, k_major, allow_pad=False)


def make_full_bank_swizzled_layout(buffer: Any, *rest: int) -> SharedLayout:
    """The 128-byte swizzle of a buffer, or of (rows, columns, bits of an element)."""
    return swizzled(*_tile(buffer, *rest), 128)


def make_half_bank_swizzled_layout(buffer: Any, *rest: int) -> SharedLayout:
    """The 64-byte swizzle of a buffer, or of (rows, columns, bits of an element)."""
    return swizzled(*_tile(buffer, *rest), 64)


def make_quarter_bank_swizzled_layout(buffer: Any, *rest: int) -> SharedLayout:
    """The 32-byte swizzle of a buffer, or of (rows, columns, bits of an element)."""
    return swizzled(*_tile(buffer, *rest), 32)


def make_linear_layout(buffer: Any) -> SharedLayout:
    """Plain rows."""
    return row_major(*_tile(buffer))


def make_fully_replicated_layout_fragment(buffer: Any, threads: int) -> Fragment:
    """Every thread holds the whole tile."""
    shape, _ = _tile(buffer)
    return Fragment.blocked(shape, 1).replicate(threads)


def make_gemm_fragment_8x8() -> AnyFragment:
    """An 8 x 8 matrix of 16-bit elements as ldmatrix gives it to a warp."""

    def slot(i: Any, j: Any) -> tuple[Any, Any]:
        return i * 4 + j // 2, j % 2

    return from_function((8, 8), slot)


def make_gemm_fragment_8x8_transposed() -> AnyFragment:
    """The same of the transposed matrix."""

    def slot(i: Any, j: Any) -> tuple[Any, Any]:
        return j * 4 + i // 2, i % 2

    return from_function((8, 8), slot)
