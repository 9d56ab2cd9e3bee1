"""Where each element of a tile lies in shared memory, and in which bank: the data and its text.

`shared_view` reads any shared layout; `access_of` makes the access of one warp to it by one of
the patterns that kernels use. Hides byte arithmetic of sub-byte elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tilelab.errors import TileValueError
from tilelab.views.access import AccessView, access_view
from tilelab.views.base import View, register
from tilelab.views.shared_svg import draw
from tilelab.views.table import bytes_text, table, wrapped

BANKS, BANK_BYTES, WARP = 32, 4, 32
CORNER_ROWS, CORNER_COLS = 16, 16


class Placed(Protocol):
    """What is read of a shared layout: `SharedLayout`, `MapLayout` or a view of one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def element_bits(self) -> int: ...
    @property
    def num_bytes(self) -> int: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...


@register
@dataclass(frozen=True)
class SharedView(View):
    """The map of one tile: `offsets` in elements, C order over `shape`."""

    kind: ClassVar[str] = "shared"
    buffer: str
    dtype: str
    element_bits: int
    shape: tuple[int, ...]
    num_bytes: int
    offsets: tuple[int, ...]
    reason: str
    description: str
    line: int | None

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the drawing: the last axis across, the others stacked."""
        return (prod(self.shape[:-1]), self.shape[-1] if self.shape else 1)

    def byte_grid(self) -> NDArray[np.int64]:
        """The byte address of each drawn cell, from the tile's base."""
        offsets = np.array(self.offsets, np.int64) * self.element_bits // 8
        return offsets.reshape(self.grid)

    def bank_grid(self) -> NDArray[np.int64]:
        """The bank of each drawn cell."""
        return self.byte_grid() // BANK_BYTES % BANKS

    def summary(self) -> str:
        """One line: size, type, layout."""
        size = "x".join(map(str, self.shape)) or "scalar"
        return f"{self.buffer}: {size} {self.dtype}, {bytes_text(self.num_bytes)}"

    def to_text(self) -> str:
        """Summary, reason, and the banks of a corner."""
        banks = self.bank_grid()[:CORNER_ROWS, :CORNER_COLS]
        rows = [[r, *map(int, row)] for r, row in enumerate(banks)]
        head = ["row", *(f"c{c}" for c in range(banks.shape[1]))]
        parts = [f"SHARED  {self.summary()}", wrapped(self.description)]
        if self.reason:
            parts.append(wrapped("why: " + self.reason))
        return "\n".join([*parts, "\n  bank of each element", table(head, rows), ""])

    def to_svg(self) -> str:
        """The whole map coloured by bank, and a labelled corner beside it."""
        return draw(self)


def shared_view(
    layout: Placed, *, buffer: str = "tile", dtype: str = "", reason: str = "",
    line: int | None = None,
) -> SharedView:  # fmt: skip
    """The map of a shared layout of any rank."""
    return SharedView(
        title=f"Shared-memory map of {buffer}",
        buffer=buffer,
        dtype=dtype or f"{layout.element_bits}-bit elements",
        element_bits=layout.element_bits,
        shape=tuple(layout.shape),
        num_bytes=layout.num_bytes,
        offsets=tuple(np.asarray(layout.offsets).ravel().tolist()),
        reason=reason,
        description=str(layout),
        line=line,
    )


def _along_rows(lane: NDArray[Any], shape: tuple[int, int], run: int) -> tuple[Any, Any]:
    flat = lane * run
    return flat // shape[1] % shape[0], flat % shape[1]


def _down_a_column(lane: NDArray[Any], shape: tuple[int, int], run: int) -> tuple[Any, Any]:
    return lane % shape[0], lane // shape[0] * run % shape[1]


def _matrix_rows(lane: NDArray[Any], shape: tuple[int, int], run: int) -> tuple[Any, Any]:
    return lane % 8 + lane // 8 % 2 * 8, lane // 16 * run % shape[1]


def _accumulator(lane: NDArray[Any], shape: tuple[int, int], run: int) -> tuple[Any, Any]:
    return lane // 4 % shape[0], lane % 4 * run % shape[1]


Pattern = Callable[[Any, tuple[int, int], int], tuple[Any, Any]]
PATTERNS: dict[str, tuple[str, Pattern]] = {
    "rows": ("consecutive lanes along a row", _along_rows),
    "column": ("one lane a row, down a column", _down_a_column),
    "ldmatrix": ("ldmatrix.x4: 16 rows, two 16-byte chunks", _matrix_rows),
    "accumulator": ("mma accumulator: 4 lanes a row", _accumulator),
}
"""Access patterns by name: how they are described, and lane -> (row, column)."""


def access_of(view: SharedView, pattern: str, vector: int) -> AccessView:
    """One warp's access to a tile: `vector` elements a lane, placed by a pattern of `PATTERNS`.

    TileValueError (TL1711) for an unknown pattern, or when a lane's elements do not lie side by
    side in one aligned piece of 1, 2, 4, 8 or 16 bytes.
    """
    if pattern not in PATTERNS:
        raise TileValueError(
            f"pattern={pattern!r} is none", code="TL1711", hint="one of " + ", ".join(PATTERNS)
        )
    words, place = PATTERNS[pattern]
    rows, cols = place(np.arange(WARP), view.grid, vector)
    grid = view.byte_grid()
    width = vector * view.element_bits // 8
    starts = grid[rows % view.grid[0], cols]
    runs = (np.array(view.offsets).reshape(view.grid)[
        (rows % view.grid[0])[:, None], (cols[:, None] + np.arange(vector)) % view.grid[1]
    ])  # fmt: skip
    if vector > view.grid[1] or (np.diff(runs, axis=1) != 1).any():
        raise TileValueError(
            f"vector={vector}: a lane's elements do not lie side by side in {view.buffer}",
            code="TL1711",
            hint="take a narrower vector, or a layout that keeps 16-byte chunks together",
        )
    elements = [f"{view.buffer}[{r}, {c}]" for r, c in zip(rows % view.grid[0], cols, strict=True)]
    return access_view(
        starts.tolist(), width, buffer=view.buffer, what=f"{words}:", elements=elements
    )
