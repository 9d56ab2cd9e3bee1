"""plot_layout: a picture of a layout in a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilelab.errors import TileValueError
from tilelab.tools.layout_grid import MOST_LABELS, Grid, grid_of
from tilelab.views.palette import lane_colours


def plot_layout(
    layout: Any,
    save_directory: str | Path = "./tmp",
    name: str = "layout",
    colormap: Any = None,
    verbose: bool = False,
    formats: str | Sequence[str] = "pdf",
    view: str = "input",
    grid_shape: tuple[int, int] | None = None,
) -> Grid:
    """Draw a layout (T.Layout, T.Fragment, or one that tilelang.layout makes) into
    `save_directory/name.<format>` for each of `formats`: "svg", "png", "pdf", or "all".

    view "input" shows every element with its place (thread:register of a fragment), "output"
    every place with its element. `colormap` names one of matplotlib's. Returns the cells.
    TileValueError (TL1657) for other formats or views.
    """
    words = formats.replace(",", " ").split() if isinstance(formats, str) else list(formats)
    wanted = list(_WRITERS) if words == ["all"] else words
    for word in wanted:
        if word not in _WRITERS:
            raise TileValueError(
                f"plot_layout: there is no format {word!r}", code="TL1657",
                hint="use " + ", ".join(_WRITERS) + ' or "all"',
            )  # fmt: skip
    grid = grid_of(layout, name, view, grid_shape)
    colours = lane_colours() if colormap is None else _colours(colormap)
    folder = Path(save_directory)
    folder.mkdir(parents=True, exist_ok=True)
    for word in wanted:
        path = folder / f"{name}.{word}"
        _WRITERS[word](grid, colours, path)
        if verbose:
            sys.stdout.write(f"{path}\n")
    return grid


def _colours(colormap: Any) -> tuple[str, ...]:
    """32 colours of a map of matplotlib's."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    found: Any = colormaps[colormap] if isinstance(colormap, str) else colormap
    return tuple(to_hex(found(i / 31)) for i in range(32))


def _write_svg(grid: Grid, colours: tuple[str, ...], path: Path) -> None:
    path.write_text(grid.to_svg(colours), encoding="utf-8")


def _write_figure(grid: Grid, colours: tuple[str, ...], path: Path) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(grid.cols * 0.45 + 1, grid.rows * 0.25 + 1))
    axes: Any = figure.add_subplot()
    cells: Any = (grid.colours % len(colours)).reshape(grid.rows, grid.cols)
    axes.pcolormesh(cells, cmap=ListedColormap(list(colours)), vmin=-0.5,
                    vmax=len(colours) - 0.5, edgecolors="white", linewidth=0.5)  # fmt: skip
    axes.invert_yaxis()
    axes.set_title(grid.title, fontsize=9)
    if len(grid.labels) <= MOST_LABELS:
        for at, label in enumerate(grid.labels):
            row, col = divmod(at, grid.cols)
            axes.text(col + 0.5, row + 0.5, label, ha="center", va="center", fontsize=5)
    figure.savefig(path, bbox_inches="tight")


_WRITERS: dict[str, Callable[[Grid, tuple[str, ...], Path], None]] = {
    "svg": _write_svg, "png": _write_figure, "pdf": _write_figure,
}  # fmt: skip
