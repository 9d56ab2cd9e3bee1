"""Matplotlib twins of the pictures, for papers and slides: each function draws into an Axes.

Hides how views become artists. Maps are drawn as one image and one collection of lines, so a
128 x 128 fragment takes milliseconds; nothing is written to disk.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tilelab.errors import TileTypeError
from tilelab.kernel import JITKernel
from tilelab.layout import Fragment, TableFragment
from tilelab.views import (
    AccessView,
    FragmentView,
    MemoryView,
    PipelineView,
    RooflineView,
    SharedView,
    View,
    fragment_view,
    shared_view,
    show,
)
from tilelab.views.palette import BUFFER_ROLES, PAINTS, lane_colours

LABELLED = 256  # cells up to which each carries its name
WARP = 32


def _axes(ax: Any, width: float, height: float) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # lazy: an import of tilelab must not load it

    return plt.subplots(figsize=(width, height), layout="constrained")[1]  # pyright: ignore


def _view(subject: Any, kind: str, wanted: type[View]) -> Any:
    """The view to draw: given as it is, or made of a compiled kernel."""
    if isinstance(subject, wanted):
        return subject
    if isinstance(subject, JITKernel):
        found = show(subject, kind).views
        if found:
            return found[0]
        raise TileTypeError(
            f"{subject.name} has nothing of the kind {kind!r} to draw",
            code="TL1711",
            hint="tilelab.views.show(kernel) lists what it has",
        )
    raise TileTypeError(
        f"{type(subject).__name__} cannot be drawn here",
        code="TL1711",
        hint=f"give a compiled kernel or a {wanted.__name__}",
    )


def layout(subject: Any, ax: Any = None) -> Any:
    """A fragment's map by lane with warp outlines, or a shared tile's by bank.

    subject: a layout, a FragmentView or SharedView, or a compiled kernel (its accumulator). ax: a
    matplotlib Axes to draw into (a new figure otherwise). Returns the Axes. TileTypeError (TL1711)
    for anything else.
    """
    if isinstance(subject, (Fragment, TableFragment)):
        subject = fragment_view(subject)
    elif hasattr(subject, "offsets") and not isinstance(subject, View):
        subject = shared_view(subject)
    if isinstance(subject, SharedView):
        return _cells(subject, subject.bank_grid(), "bank", _axes(ax, 6.4, 6.0))
    view = cast("FragmentView", _view(subject, "fragment", FragmentView))
    made = _cells(view, view.owner_grid(), "lane", _axes(ax, 6.4, 6.0))
    _warp_lines(made, view.owner_grid() // WARP)
    return made


def _cells(view: Any, owners: Any, what: str, ax: Any) -> Any:
    from matplotlib.colors import ListedColormap  # lazy, as above

    shown = np.ma.masked_where(owners < 0, owners % WARP)
    image = ax.imshow(
        shown, cmap=ListedColormap(list(lane_colours())), vmin=-0.5, vmax=WARP - 0.5,
        aspect="auto", interpolation="nearest",
    )  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label=what, ticks=range(0, WARP, 4))
    ax.set(title=view.summary(), xlabel="column", ylabel="row")
    if owners.size <= LABELLED:
        slots = view.register_grid() if isinstance(view, FragmentView) else None
        for (r, c), owner in np.ndenumerate(owners):
            label = f"{owner}" if slots is None else f"T{owner}\nR{slots[r, c]}"
            ax.text(c, r, label, ha="center", va="center", fontsize=6.5, color="#14171c")
    return ax


def _warp_lines(ax: Any, warps: Any) -> None:
    from matplotlib.collections import LineCollection  # lazy, as above

    down = np.argwhere(warps[:, 1:] != warps[:, :-1])
    across = np.argwhere(warps[1:] != warps[:-1])
    lines = [[(c + 0.5, r - 0.5), (c + 0.5, r + 0.5)] for r, c in down]
    lines += [[(c - 0.5, r + 0.5), (c + 0.5, r + 0.5)] for r, c in across]
    ax.add_collection(LineCollection(lines, colors="#14171c", linewidths=0.8))


def pipeline(subject: Any, ax: Any = None) -> Any:
    """The planned schedule of a pipelined loop: a bar in flight and one in use for each iteration
    of each slot. subject: a compiled kernel or a PipelineView. Returns the Axes."""
    view = cast("PipelineView", _view(subject, "pipeline", PipelineView))
    ax = _axes(ax, 9.0, 1.0 + 0.55 * view.slots)
    for it in view.iterations:
        fly, use = (it.issue, it.consume - it.issue), (it.consume, it.done - it.consume)
        for (start, length), role, word in ((fly, "load", "load"), (use, "compute", "use")):
            ax.barh(it.slot, length, left=start, height=0.7, color=PAINTS[role].light,
                    edgecolor=PAINTS[f"{role}-edge"].light)  # fmt: skip
            ax.text(start + length / 2, it.slot, f"{word} {it.k}", ha="center", va="center",
                    fontsize=7)  # fmt: skip
    ax.set(title=view.headline(), xlabel="step of the plan", yticks=range(view.slots),
           yticklabels=[f"slot {s}" for s in range(view.slots)])  # fmt: skip
    ax.invert_yaxis()
    return ax


def memory(subject: Any, ax: Any = None) -> Any:
    """Shared memory by buffer against the chip's limit. subject: a compiled kernel or a
    MemoryView. Returns the Axes."""
    view = cast("MemoryView", _view(subject, "memory", MemoryView))
    ax = _axes(ax, 9.0, 2.2)
    for number, row in enumerate(view.rows):
        role = "gap" if row.use == "padding" else BUFFER_ROLES[number % len(BUFFER_ROLES)]
        start = row.offset / 1024
        ax.barh(0, row.num_bytes / 1024, left=start, height=0.6, color=PAINTS[role].light,
                edgecolor=PAINTS["outline"].light)  # fmt: skip
        if row.num_bytes > view.shared_per_block / 20:
            ax.text(start + row.num_bytes / 2048, 0, f"{row.name}\n{row.num_bytes:,} B",
                    ha="center", va="center", fontsize=8)  # fmt: skip
    ax.axvline(view.shared_per_block / 1024, color=PAINTS["bad-edge"].light, linestyle="--")
    ax.set(title=f"{view.kernel} on {view.target}: {view.verdict()}", xlabel="KiB", yticks=[])
    return ax


def access(subject: AccessView, ax: Any = None) -> Any:
    """One warp's access: banks (or bytes of a sector) across, wavefronts down. Returns the Axes."""
    view = cast("AccessView", _view(subject, "access", AccessView))
    ax = _axes(ax, 9.0, 1.2 + 0.24 * len(view.waves))
    cells = np.full((len(view.waves), WARP), -1)
    for row, wave in enumerate(view.waves):
        for cell, lanes in view.cells_of(wave).items():
            cells[row, cell] = lanes[0]
    across = "bank" if view.space == "shared" else "byte of the sector"
    made = _cells_of_lanes(cells, ax)
    made.set(title=f"{view.title}\n{view.verdict()}", xlabel=across, ylabel=view.unit)
    return made


def _cells_of_lanes(cells: Any, ax: Any) -> Any:
    from matplotlib.colors import ListedColormap  # lazy, as above

    ax.imshow(np.ma.masked_less(cells, 0), cmap=ListedColormap(list(lane_colours())), vmin=-0.5,
              vmax=WARP - 0.5, aspect="auto", interpolation="nearest")  # fmt: skip
    for (r, c), lane in np.ndenumerate(cells):
        if lane >= 0 and cells.size <= 64 * WARP:
            ax.text(c, r, str(lane), ha="center", va="center", fontsize=6.5, color="#14171c")
    return ax


def roofline(subject: Any, ax: Any = None) -> Any:
    """The roof of a chip with points. subject: a RooflineView, or a compiled kernel (which is then
    simulated on random inputs). Returns the Axes."""
    view = cast("RooflineView", _view(subject, "roofline", RooflineView))
    ax = _axes(ax, 6.4, 4.4)
    grid = np.logspace(-1, 4, 200)
    ax.loglog(grid, [view.roof(i) / 1e12 for i in grid], color=PAINTS["load-edge"].light)
    for point in view.points:
        rate = view.roof(point.intensity) if point.rate is None else point.rate
        ax.plot(point.intensity, rate / 1e12, "o" if point.rate else "x", markersize=8,
                color=PAINTS["compute-edge"].light)  # fmt: skip
        ax.annotate(f"{point.name} ({point.source})", (point.intensity, rate / 1e12),
                    xytext=(8, -4), textcoords="offset points", fontsize=8)  # fmt: skip
    ax.set(title=view.title, xlabel="operations for each byte", ylabel="TFLOP/s")
    ax.grid(True, which="major", alpha=0.3)
    return ax
