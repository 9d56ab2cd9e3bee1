"""Which thread holds which element of a tile, in which register: the data and its text twin.

`fragment_view` reads a layout of any rank; leading axes are stacked as blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilelab.layout import AnyFragment, tables
from tilelab.passes.plan import LayoutDecision
from tilelab.target import WARP
from tilelab.views.base import View, register
from tilelab.views.fragment_svg import draw
from tilelab.views.table import plural, table, wrapped

ZOOM_ROWS, ZOOM_COLS = 16, 8
WRAP = 32  # columns of a one-dimensional tile


@register
@dataclass(frozen=True)
class FragmentView(View):
    """The ownership map of one tile.

    `threads` lists the owners in C order over `shape + (replication,)`, `registers` the element
    slots in C order over `shape`. `description` is the layout in its own words.
    """

    kind: ClassVar[str] = "fragment"
    buffer: str
    dtype: str
    shape: tuple[int, ...]
    num_threads: int
    num_registers: int
    replication: int
    threads: tuple[int, ...]
    registers: tuple[int, ...]
    reason: str
    description: str
    line: int | None

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the drawing: the last axis across, the others stacked."""
        if len(self.shape) < 2:
            size = prod(self.shape)
            return (-(-size // WRAP), min(size, WRAP))
        return (prod(self.shape[:-1]), self.shape[-1])

    def owner_grid(self) -> NDArray[np.int64]:
        """First owner of each drawn cell; -1 where the drawing has no element."""
        owners = np.array(self.threads, np.int64).reshape(-1, self.replication)[:, 0]
        return self._gridded(owners)

    def register_grid(self) -> NDArray[np.int64]:
        """Register of each drawn cell; -1 where the drawing has no element."""
        return self._gridded(np.array(self.registers, np.int64))

    def _gridded(self, flat: NDArray[np.int64]) -> NDArray[np.int64]:
        rows, cols = self.grid
        cells = np.full(rows * cols, -1, np.int64)
        cells[: flat.size] = flat
        return cells.reshape(rows, cols)

    def where(self, *indices: int) -> tuple[tuple[int, ...], int]:
        """(threads, register) of an element."""
        flat = int(np.ravel_multi_index(indices, self.shape)) if self.shape else 0
        start = flat * self.replication
        return self.threads[start : start + self.replication], self.registers[flat]

    def held_by(self, thread: int) -> tuple[tuple[int, ...], ...]:
        """The elements a thread holds, by rising register."""
        owners = np.array(self.threads, np.int64).reshape(-1, self.replication)
        flat = np.nonzero((owners == thread).any(axis=1))[0]
        flat = flat[np.argsort(np.array(self.registers, np.int64)[flat], kind="stable")]
        places = np.array(np.unravel_index(flat, self.shape)).T.tolist()
        return tuple(map(tuple, places))

    def summary(self) -> str:
        """One line: sizes and sharing."""
        size = "x".join(map(str, self.shape)) or "scalar"
        text = (
            f"{self.buffer}: {size} {self.dtype} in the registers of "
            f"{plural(self.num_threads, 'thread')}, {plural(self.num_registers, 'register')} each"
        )
        return text + (f", every element in {self.replication} threads" if self.shared else "")

    @property
    def shared(self) -> bool:
        """Whether an element lives in more than one thread."""
        return self.replication > 1

    def to_text(self) -> str:
        """Summary, reason, a labelled corner, and what each warp holds."""
        rows, cols = min(self.grid[0], ZOOM_ROWS), min(self.grid[1], ZOOM_COLS)
        owners, registers = self.owner_grid(), self.register_grid()
        corner = [
            [r, *(_cell(owners[r, c], registers[r, c]) for c in range(cols))] for r in range(rows)
        ]
        head = ["row", *(f"col {c}" for c in range(cols))]
        parts = [f"FRAGMENT  {self.summary()}"]
        if self.reason:
            parts.append(wrapped("why: " + self.reason))
        cut = "" if (rows, cols) == self.grid else f" (first {rows} rows, {cols} columns)"
        parts += [f"\n  T = thread, R = register{cut}", table(head, corner)]
        warps = [[w, _span(r), _span(c)] for w, r, c in warp_boxes(owners)]
        parts += ["\n  rows and columns of the whole map by warp", table(WARP_HEAD, warps)]
        parts.append("\n" + "\n".join("  " + line for line in self.description.splitlines()))
        return "\n".join(parts) + "\n"

    def to_svg(self) -> str:
        """The whole map coloured by lane with warp outlines, and a labelled corner beside it."""
        return draw(self)


WARP_HEAD = ("warp", "rows", "columns")


def _cell(thread: int, slot: int) -> str:
    return "" if thread < 0 else f"T{thread}:R{slot}"


def _span(numbers: NDArray[np.int64]) -> str:
    """Sorted numbers as runs: 0-15, 64-79."""
    breaks = np.nonzero(np.diff(numbers) != 1)[0] + 1
    runs = np.split(numbers, breaks)
    texts = [f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in runs]
    return ", ".join(texts[:6]) + (f", ... ({len(runs)} runs)" if len(runs) > 6 else "")


def warp_boxes(owners: NDArray[np.int64]) -> list[tuple[int, Any, Any]]:
    """(warp, its rows, its columns) of an owner grid, by warp."""
    warps = np.where(owners < 0, -1, owners // WARP)
    found: list[tuple[int, Any, Any]] = []
    for warp in np.unique(warps[warps >= 0]):
        mask = warps == warp
        found.append((int(warp), np.nonzero(mask.any(axis=1))[0], np.nonzero(mask.any(axis=0))[0]))
    return found


def fragment_view(
    layout: AnyFragment, *, buffer: str = "tile", dtype: str = "float32", reason: str = "",
    line: int | None = None,
) -> FragmentView:  # fmt: skip
    """The ownership map of a layout, of any rank, replicated or padded."""
    threads, registers = tables(layout)
    return FragmentView(
        title=f"Fragment map of {buffer}",
        buffer=buffer,
        dtype=dtype,
        shape=tuple(layout.shape),
        num_threads=layout.num_threads,
        num_registers=layout.num_registers,
        replication=layout.replication,
        threads=tuple(threads.ravel().tolist()),
        registers=tuple(registers.ravel().tolist()),
        reason=reason,
        description=layout.describe(),
        line=line,
    )


def decision_view(decision: LayoutDecision) -> FragmentView:
    """The map of a buffer whose fragment the compiler chose."""
    root = decision.buffer.root
    return fragment_view(
        decision.layout,
        buffer=root.name,
        dtype=str(root.dtype),
        reason=decision.reason,
        line=root.loc.line if root.loc else None,
    )
