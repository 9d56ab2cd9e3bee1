"""The same storage seen under another shape or element size.

A view keeps row-major positions: element n of the view is element n of the tile (or, for another
element size, lies at the same byte). Where the tile's elements lie is the tile's own business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from .digits import Index, malformed, unravel
from .shared import SharedLayout, Stored
from .user import MapLayout, aligned_run


@dataclass(frozen=True)
class ViewLayout(Stored):
    """The layout of a view of shape ``shape`` and ``element_bits`` of a tile laid out as ``base``.

    Offsets count the view's elements. Answers the questions of a SharedLayout without a swizzle
    of its own. Raises TileValueError (TL1301) where the sizes differ, or where one of the view's
    elements would be torn apart.
    """

    base: SharedLayout | MapLayout
    shape: tuple[int, ...]
    element_bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        mine, its = self.element_bits, self.base.element_bits
        if prod(self.shape) * mine != prod(self.base.shape) * its:
            raise malformed(f"{self.shape} of {mine} bits is no view of {self.base}")
        if max(mine, its) % min(mine, its) or not self._keeps_elements_whole():
            raise malformed(f"elements of {mine} bits are torn apart in {self.base}")

    @property
    def pitch(self) -> None:
        """A view has no padding of its own."""
        return None

    @property
    def swizzle(self) -> None:
        """Nor a swizzle that TMA or a descriptor could be told."""
        return None

    @property
    def num_bytes(self) -> int:
        """Bytes of the storage."""
        return self.base.num_bytes

    @property
    def alignment(self) -> int:
        """Bytes to which the storage must be aligned."""
        return self.base.alignment

    def _keeps_elements_whole(self) -> bool:
        parts = self.element_bits // self.base.element_bits
        if parts <= 1:
            return True
        runs = self.base.offsets.reshape(-1, parts)
        steps = runs == runs[:, :1] + np.arange(parts)
        return bool(steps.all() and (runs[:, 0] % parts == 0).all())

    def offset_of(self, indices: Sequence[Index]) -> Index:
        """Element offset of an element; ints, numpy arrays or IR expressions inside the shape."""
        if len(indices) != len(self.shape):
            raise malformed(f"{len(indices)} indices for a view of rank {len(self.shape)}")
        number: Index = 0
        for index, extent in zip(indices, self.shape, strict=True):
            number = number * extent + index
        mine, its = self.element_bits, self.base.element_bits
        if mine >= its:
            parts = mine // its
            offset = self.base.offset_of(unravel(number * parts, self.base.shape))
            return offset if parts == 1 else offset // parts
        parts = its // mine
        offset = self.base.offset_of(unravel(number // parts, self.base.shape))
        return offset * parts + number % parts

    @cached_property
    def panel_cols(self) -> int:
        """The widest run (a power of two) of neighbours along the last axis that lie side by
        side and start at a multiple of their number."""
        return aligned_run(self.offsets)

    def __str__(self) -> str:
        size = "x".join(map(str, self.shape)) or "scalar"
        return f"ViewLayout({size} of {self.element_bits} bits, of {self.base})"
