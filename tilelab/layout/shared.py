"""Layouts of tiles in shared memory: strides, with an XOR swizzle or padding.

A swizzled tile is cut into panels as wide as the swizzle's row. That is what TMA writes when each
panel is one box with CU_TENSOR_MAP_SWIZZLE_*, and what wgmma matrix descriptors read (PTX ISA,
"Asynchronous Warpgroup Level Matrix Shared Memory Layout").
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .digits import Index, malformed, unravel, weighted_sum
from .swizzle import TMA_SWIZZLES, Swizzle

PLAIN_ALIGNMENT = 16
"""Bytes: what 16-byte vector accesses and cp.async want."""
BOX_ALIGNMENT = 128
"""Bytes: where a TMA box may begin in shared memory (PTX ISA, cp.async.bulk.tensor)."""


class Stored(ABC):
    """A tile in memory: the element offset of every element, and the way back."""

    shape: tuple[int, ...]
    element_bits: int

    @property
    @abstractmethod
    def num_bytes(self) -> int:
        """Bytes of storage, padding included."""

    @abstractmethod
    def offset_of(self, indices: Sequence[Index]) -> Index:
        """Element offset of an element."""

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The element offset of every element, an array of the tile's shape."""
        offsets = self.offset_of(tuple(np.indices(self.shape)))
        return np.array(np.broadcast_to(offsets, self.shape), np.int64)

    @cached_property
    def _flat_at(self) -> NDArray[np.int64]:
        flat = np.full(self.num_bytes * 8 // self.element_bits, -1, np.int64)
        flat[self.offsets.ravel()] = np.arange(self.offsets.size)
        return flat

    def element_at(self, offset: Any) -> tuple[Any, ...] | None:
        """The indices of the element at an element offset: the inverse of ``offset_of``.

        For an int: a tuple of ints, or None where padding lies. For an array: a tuple of arrays
        with -1 where padding lies. IndexError outside the storage.
        """
        flat = self._flat_at[offset]
        if isinstance(offset, np.ndarray):
            return tuple(np.where(flat < 0, -1, index) for index in unravel(flat, self.shape))
        return None if flat < 0 else unravel(int(flat), self.shape)


@dataclass(frozen=True)
class SharedLayout(Stored):
    """Where each element of a tile lies, in elements from the tile's base.

    The last two axes are rows and columns; earlier axes (stages, say) have plain strides.
    panel: columns per panel (None: one panel as wide as the tile); pitch: elements from a row to
    the next inside a panel (None: the panel's width); swizzle: on byte offsets, or None.
    The base of the tile must be aligned to ``alignment`` bytes.

    Raises TileValueError (TL1301) for extents below 1, a panel that does not divide the columns,
    a pitch narrower than the panel, or a swizzle whose row is not the panel's.
    """

    shape: tuple[int, ...]
    element_bits: int
    swizzle: Swizzle | None = None
    panel: int | None = None
    pitch: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        if any(extent < 1 for extent in self.shape) or self.element_bits < 1:
            raise malformed(f"a shared tile {self.shape} of {self.element_bits} bits is empty")
        if self.cols % self.panel_cols:
            raise malformed(f"panels of {self.panel_cols} columns do not divide {self.cols}")
        if self.row_pitch < self.panel_cols:
            raise malformed(f"a pitch of {self.row_pitch} overlaps rows of {self.panel_cols}")
        if self.swizzle is None:
            return
        row_bits = self.swizzle.row * 8
        if self.panel_cols * self.element_bits != row_bits or self.row_pitch != self.panel_cols:
            raise malformed(
                f"a {self.swizzle.row}-byte swizzle needs unpadded panels of "
                f"{row_bits // self.element_bits} columns, not {self.panel_cols}"
            )

    @property
    def rows(self) -> int:
        """Extent of the last axis but one (1 for a vector)."""
        return self.shape[-2] if len(self.shape) > 1 else 1

    @property
    def cols(self) -> int:
        """Extent of the last axis (1 for a scalar)."""
        return self.shape[-1] if self.shape else 1

    @property
    def panel_cols(self) -> int:
        """Columns in one panel."""
        return self.cols if self.panel is None else self.panel

    @property
    def row_pitch(self) -> int:
        """Elements from a row to the next inside a panel."""
        return self.panel_cols if self.pitch is None else self.pitch

    @property
    def num_panels(self) -> int:
        """How many panels hold the columns."""
        return self.cols // self.panel_cols

    @property
    def panel_stride(self) -> int:
        """Elements from a panel to the next.

        A swizzled panel is rounded up to the swizzle's period, so that each starts in phase.
        """
        size = self.rows * self.row_pitch
        if self.swizzle is None:
            return size
        period = self.swizzle.span * 8 // self.element_bits
        return -(-size // period) * period

    @property
    def matrix_stride(self) -> int:
        """Elements that one rows x columns matrix takes."""
        return self.num_panels * self.panel_stride

    @property
    def leading_strides(self) -> tuple[int, ...]:
        """Elements from one index to the next on each axis but the last, its swizzle apart."""
        strides, matrix = [self.row_pitch], self.matrix_stride
        for extent in reversed(self.shape[:-2]):
            strides.insert(0, matrix)
            matrix *= extent
        return tuple(strides) if len(self.shape) > 1 else ()

    @property
    def num_elements(self) -> int:
        """Elements of storage, padding included."""
        return prod(self.shape[:-2]) * self.matrix_stride

    @property
    def num_bytes(self) -> int:
        """Bytes of storage, padding included (rounded up for sub-byte elements)."""
        return -(-self.num_elements * self.element_bits // 8)

    @property
    def alignment(self) -> int:
        """Bytes to which the tile's base must be aligned: the period of a swizzle that TMA knows
        (it works on addresses), else 128."""
        known = self.swizzle in TMA_SWIZZLES.values()
        return self.swizzle.span if self.swizzle is not None and known else BOX_ALIGNMENT

    def staged(self, stages: int) -> SharedLayout:
        """The same with a leading axis of `stages` slots."""
        return replace(self, shape=(stages, *self.shape))

    def offset_of(self, indices: Sequence[Index]) -> Index:
        """Element offset of an element; ints, numpy arrays or IR expressions inside the shape."""
        if len(indices) != len(self.shape):
            raise malformed(f"{len(indices)} indices for a shared tile of rank {len(self.shape)}")
        parts: list[tuple[Index, int]] = []
        stride = self.matrix_stride
        for index, extent in zip(reversed(indices[:-2]), reversed(self.shape[:-2]), strict=True):
            parts.insert(0, (index, stride))
            stride *= extent
        if len(indices) > 1:
            parts.append((indices[-2], self.row_pitch))
        if self.shape:
            parts += self._column_parts(indices)
        return weighted_sum(parts)

    def _column_parts(self, indices: Sequence[Index]) -> list[tuple[Index, int]]:
        col = indices[-1]
        parts: list[tuple[Index, int]] = []
        if self.num_panels > 1:
            parts.append((col // self.panel_cols, self.panel_stride))
            col = col % self.panel_cols
        if self.swizzle is None:
            return [*parts, (col, 1)]
        # The row's part of the XOR instead of the whole address: it is what lanes share, and
        # loops over columns leave it alone.
        chunk_cols = (8 << self.swizzle.base) // self.element_bits
        rows_per_step = (1 << self.swizzle.shift) >> self.swizzle.bits
        row = indices[-2] if rows_per_step == 1 else indices[-2] // rows_per_step
        chunk = (col // chunk_cols) ^ (row % (1 << self.swizzle.bits))
        return [*parts, (chunk, chunk_cols), (col % chunk_cols, 1)]

    def byte_offset_of(self, indices: Sequence[Index]) -> Index:
        """Byte offset of an element (of the byte that holds it, for sub-byte elements)."""
        offset = self.offset_of(indices)
        if self.element_bits == 8:
            return offset
        if self.element_bits % 8 == 0:
            return offset * (self.element_bits // 8)
        return offset * self.element_bits // 8

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape)) or "scalar"
        kind = "row-major"
        if self.swizzle is not None:
            kind = f"{self.swizzle.row}B swizzle"
        elif self.row_pitch != self.panel_cols:
            kind = f"pitch {self.row_pitch}"
        return f"SharedLayout({size} of {self.element_bits} bits, {kind}, {self.num_bytes} bytes)"


def row_major(shape: Sequence[int], bits: int) -> SharedLayout:
    """The plain layout, last axis contiguous."""
    return SharedLayout(tuple(shape), bits)


def padded(shape: Sequence[int], bits: int, pad: int) -> SharedLayout:
    """Row-major with ``pad`` unused elements after each row (a scalar has no rows to pad)."""
    return SharedLayout(tuple(shape), bits, pitch=shape[-1] + pad if shape else None)


def swizzled(shape: Sequence[int], bits: int, bytes: int = 128) -> SharedLayout:
    """Panels of ``bytes`` = 128, 64 or 32 bytes a row, 16-byte chunks XORed with the row.

    Chunk c of row r lies at ``c ^ (r % 8)`` (128), ``c ^ (r // 2 % 4)`` (64) or
    ``c ^ (r // 4 % 2)`` (32). Raises TileValueError if the columns do not fill whole panels.
    """
    if bytes not in TMA_SWIZZLES:
        raise malformed(f"no swizzle of {bytes} bytes", hint="128, 64 or 32")
    if len(shape) < 2 or bits not in (4, 8, 16, 32, 64):
        raise malformed(f"cannot swizzle a tile {tuple(shape)} of {bits}-bit elements")
    return SharedLayout(tuple(shape), bits, TMA_SWIZZLES[bytes], panel=bytes * 8 // bits)


def best_swizzle(cols: int, bits: int) -> int | None:
    """The widest swizzle (128, 64 or 32 bytes) whose panels divide a row of ``cols`` elements."""
    return next((b for b in TMA_SWIZZLES if cols * bits % (b * 8) == 0), None)
