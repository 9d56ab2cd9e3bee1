"""A layout as a table of cells, and the table as a picture.

Hides how maps of any rank, of registers and of shared memory, become rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.errors import TileTypeError, TileValueError
from tilelab.layout import (
    AnyFragment,
    Fragment,
    FragmentMap,
    Layout,
    MapLayout,
    SharedLayout,
    TableFragment,
    tables,
)
from tilelab.views.palette import lane_colours
from tilelab.views.svg import Svg

Ints = NDArray[np.int64]
Shape2 = tuple[int, int] | None
_MOST_THREADS = 1024
CELL_W, CELL_H, LEFT, TOP = 44, 22, 46, 64
MOST_LABELS, MOST_CELLS = 4096, 65_536


@dataclass(frozen=True)
class Grid:
    """Cells with a label and a colour each: `colours` numbers them, `labels` is their text."""

    title: str
    rows: int
    cols: int
    colours: Ints
    labels: tuple[str, ...]

    def to_svg(self, palette: tuple[str, ...] | None = None) -> str:
        """The picture; cells are labelled while there are not too many of them."""
        paints = palette or lane_colours()
        width, height = LEFT + self.cols * CELL_W + 16, TOP + self.rows * CELL_H + 16
        svg = Svg(self.title, width, height, self.title, f"{self.rows} rows, {self.cols} columns")
        svg.text(16, 28, self.title, size=15, bold=True)
        for col in range(self.cols):
            svg.text(LEFT + (col + 0.5) * CELL_W, TOP - 8, str(col), "muted", size=10,
                     anchor="middle")  # fmt: skip
        for row in range(self.rows):
            middle = TOP + (row + 0.5) * CELL_H + 4
            svg.text(LEFT - 8, middle, str(row), "muted", size=10, anchor="end")
            for col in range(self.cols):
                self._cell(svg, paints, row, col)
        return svg.render()

    def _cell(self, svg: Svg, paints: tuple[str, ...], row: int, col: int) -> None:
        x, y = LEFT + col * CELL_W, TOP + row * CELL_H
        at = row * self.cols + col
        colour = int(self.colours[at])
        fill = paints[colour % len(paints)] if colour >= 0 else "none"
        svg.raw(f'<rect x="{x}" y="{y}" width="{CELL_W}" height="{CELL_H}" fill="{fill}" '
                'stroke="#ffffff" stroke-opacity="0.6"/>')  # fmt: skip
        if self.labels[at] and len(self.labels) <= MOST_LABELS:
            svg.label(x + CELL_W / 2, y + CELL_H / 2 + 4, self.labels[at], "cell-ink", size=10,
                      width=CELL_W - 4, mono=True)  # fmt: skip


def grid_of(layout: Any, name: str, view: str, grid_shape: Shape2) -> Grid:
    """The cells of a layout. view "input": one for each element, with where it lies; "output":
    one for each place, with the element it holds, in rows of `grid_shape`.

    Raises TileTypeError (TL1657) for what is no layout, TileValueError (TL1657) for another view
    or a layout too large to draw.
    """
    if view not in ("input", "output"):
        raise _cannot(f"there is no view {view!r}", 'use "input" or "output"')
    draw = _MAKERS.get(type(layout))  # pyright: ignore[reportUnknownArgumentType]
    if draw is None:
        raise TileTypeError(
            f"{layout!r} is no layout", code="TL1657",
            hint="pass a T.Layout, a T.Fragment, or what tilelang.layout makes",
        )  # fmt: skip
    made = draw(layout, name, view, grid_shape)
    if made.rows * made.cols > MOST_CELLS:
        raise _cannot(f"{name} has {made.rows * made.cols} cells", "draw a smaller layout")
    return made


def _cannot(what: str, hint: str) -> TileValueError:
    return TileValueError(f"plot_layout: {what}", code="TL1657", hint=hint)


def _shape2(shape: tuple[int, ...]) -> tuple[int, int]:
    return (prod(shape[:-1]), shape[-1]) if shape else (1, 1)


def _fragment_map(layout: FragmentMap, name: str, view: str, shape: Shape2) -> Grid:
    return _fragment(layout.fragment(_MOST_THREADS), name, view, shape)


def _fragment(layout: AnyFragment, name: str, view: str, _: Shape2) -> Grid:
    threads, registers = tables(layout)
    owners = threads.reshape(-1, layout.replication)[:, 0]
    slots = registers.ravel()
    size = "x".join(map(str, layout.shape))
    if view == "input":
        rows, cols = _shape2(tuple(layout.shape))
        labels = [f"T{t}:{r}" for t, r in zip(owners, slots, strict=True)]
        return Grid(f"{name}: {size}, thread:register", rows, cols, owners % 32, tuple(labels))
    rows, cols = layout.num_threads, layout.num_registers
    labels, colours = [""] * (rows * cols), np.full(rows * cols, -1, np.int64)
    for copies, slot, index in zip(
        threads.reshape(-1, layout.replication), slots, np.ndindex(*layout.shape), strict=True
    ):
        for thread in copies:
            labels[thread * cols + slot] = ",".join(map(str, index))
            colours[thread * cols + slot] = thread % 32
    return Grid(f"{name}: element by thread and register", rows, cols, colours, tuple(labels))


def _memory(
    layout: Layout | MapLayout | SharedLayout, name: str, view: str, grid_shape: Shape2
) -> Grid:
    table = layout.table if isinstance(layout, Layout) else layout.offsets
    rows, cols = _shape2(tuple(table.shape))
    flat, size = table.ravel(), "x".join(map(str, table.shape))
    if view == "input":
        labels = tuple(str(place) for place in flat)
        return Grid(f"{name}: {size}, place of each element", rows, cols, flat % cols, labels)
    places = int(flat.max()) + 1
    rows, cols = grid_shape or (-(-places // cols), cols)
    if rows * cols < places:
        raise _cannot(f"grid_shape {rows}x{cols} has no room for {places} places", "enlarge it")
    texts, colours = [""] * (rows * cols), np.full(rows * cols, -1, np.int64)
    for number, (place, index) in enumerate(zip(flat, np.ndindex(*table.shape), strict=True)):
        texts[place], colours[place] = ",".join(map(str, index)), number % table.shape[-1]
    return Grid(f"{name}: element at each place", rows, cols, colours, tuple(texts))


_MAKERS: dict[type, Callable[[Any, str, str, Shape2], Grid]] = {
    Fragment: _fragment, TableFragment: _fragment, FragmentMap: _fragment_map, Layout: _memory,
    MapLayout: _memory, SharedLayout: _memory,
}  # fmt: skip
