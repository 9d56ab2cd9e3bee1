"""Matplotlib twins of the pictures, for papers and slides: each function draws into an Axes.

Hides how views become artists. Maps are drawn as one image and one collection of lines, so a
128 x 128 fragment takes milliseconds; nothing is written to disk.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tilelab.calls import answer_all
from tilelab.errors import TileTypeError
from tilelab.kernel import JITKernel
from tilelab.layout import Fragment, TableFragment
from tilelab.target import WARP
from tilelab.views import (
    AccessView,
    FragmentView,
    LadderView,
    MemoryView,
    PipelineView,
    RooflineView,
    ScheduleView,
    SharedView,
    View,
    fragment_view,
    shared_view,
    show,
)
from tilelab.views.palette import BUFFER_ROLES, PAINTS, lane_colours

LABELLED = 256  # cells up to which each carries its name
MARKERS = "os^DvPX"
EDGES = ("compute-edge", "load-edge", "good-edge", "barrier-edge", "bad-edge")


def _axes(ax: Any, width: float, height: float) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt  # lazy: an import of tilelab must not load it

    return plt.subplots(figsize=(width, height), layout="constrained")[1]  # pyright: ignore


def _title(ax: Any, text: str, columns: int = 96) -> None:
    """Above the axes, in lines that fit their width."""
    lines = [textwrap.fill(line, columns) for line in text.split("\n")]
    ax.set_title("\n".join(lines), fontsize=10)


def _legend(ax: Any, items: Sequence[tuple[str, str]]) -> None:
    """Below the axes: (role, words) of each fill."""
    from matplotlib.patches import Patch  # lazy, as above

    patches = [
        Patch(facecolor=PAINTS[role].light, edgecolor=_edge(role), label=words)
        for role, words in items
    ]
    ax.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, -0.24), fontsize=8,
              ncols=len(items), frameon=False)  # fmt: skip


def _edge(role: str) -> str:
    names = {"wait": "load-edge", "gap": "muted"}
    return PAINTS[names.get(role, f"{role}-edge")].light


def _bar(ax: Any, row: float, span: tuple[float, float], role: str, words: Sequence[str],
         inches: float, dashed: bool = False) -> None:  # fmt: skip
    """A bar with the first of `words` that fits; `inches`: of one unit of x."""
    start, length = span[0], span[1] - span[0]
    ax.barh(row, length, left=start, height=0.7, color=PAINTS[role].light, edgecolor=_edge(role),
            linestyle="--" if dashed else "-", linewidth=0.9)  # fmt: skip
    room = length * inches * 72 / 4.4  # characters of 7 points
    word = next((w for w in words if len(w) <= room), "")
    ax.text(start + length / 2, row, word, ha="center", va="center", fontsize=7)


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
    ax.set(xlabel="column", ylabel="row")
    _title(ax, view.summary(), 62)
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
    ax = _axes(ax, 9.0, 1.4 + 0.55 * view.slots)
    columns = list(view.shown_steps())
    at = {step: k for k, step in enumerate(columns) if step is not None}

    def place(step: int) -> float:
        """Steps that repeat are left out: all of them are one column."""
        gap = columns.index(None) + 0.5 if None in columns else len(columns)
        return at.get(step, len(columns) if step >= view.steps else gap)

    inches = 8.2 / max(len(columns), 1)
    for it in view.iterations:
        issue, consume, done = (place(s) for s in (it.issue, it.consume, it.done))
        _bar(ax, it.slot, (issue, consume), "load", (f"load {it.k}", f"{it.k}"), inches)
        _bar(ax, it.slot, (consume, done), "compute", (f"use {it.k}", f"{it.k}"), inches)
    _title(ax, view.headline())
    shown = [k for k in range(len(columns)) if len(columns) <= 12 or k % 2 == 0]
    names = ["…" if columns[k] is None else str(columns[k]) for k in shown]
    ax.set(xlabel="step of the plan", yticks=range(view.slots), xticks=[k + 0.5 for k in shown],
           xticklabels=names, xlim=(0, len(columns)),
           yticklabels=[f"slot {s}" for s in range(view.slots)])  # fmt: skip
    ax.invert_yaxis()
    _legend(ax, (("load", "load in flight"), ("compute", "in use")))
    return ax


def schedule(subject: Any, ax: Any = None) -> Any:
    """The times of each use of each slot. subject: a ScheduleView (modelled or measured), or a
    compiled kernel, which is then simulated on random inputs. Returns the Axes."""
    view = cast("ScheduleView", _view(subject, "schedule", ScheduleView))
    ax = _axes(ax, 9.0, 1.9 + 0.5 * view.slots)
    end = max(view.end, view.axis)
    inches = 8.2 / max(end, 1)
    for use in view.uses:
        there = use.consume if use.arrived is None else min(use.arrived, use.consume)
        _bar(ax, use.slot, (use.issue, there), "wait", (f"{use.k}",), inches, dashed=True)
        _bar(ax, use.slot, (there, use.consume), "good", (), inches)
        _bar(ax, use.slot, (use.consume, use.done), "compute", (f"{use.k}",), inches)
        _bar(ax, view.slots, (use.asked, use.consume), "gap", ("wait",), inches)
        _bar(ax, view.slots, (use.consume, use.busy_until), "compute", (f"use {use.k}",), inches)
    _title(ax, f"{view.headline()}\n{view.caption()}", 120)
    rows = [f"slot {s}" for s in range(view.slots)]
    ax.set(xlabel="cycle", xlim=(0, end), yticks=range(view.slots + 1),
           yticklabels=[*rows, "consumer"])  # fmt: skip
    ax.invert_yaxis()
    _legend(ax, (("wait", "in flight"), ("good", "lies ready"), ("compute", "in use"),
                 ("gap", "the consumer waits")))  # fmt: skip
    return ax


def ladder(subject: LadderView, ax: Any = None) -> Any:
    """What each step of a structure gained, a bar a step. subject: a LadderView, such as
    `tilelab.widgets.compare_panel(kernel).ladder`. Returns the Axes."""
    view = cast("LadderView", _view(subject, "ladder", LadderView))
    ax = _axes(ax, 9.0, 1.2 + 0.42 * len(view.steps))
    most = max(step.time for step in view.steps)
    for number, step in enumerate(view.steps):
        role = "compute" if number else "gap"
        ax.barh(number, step.time, height=0.65, color=PAINTS[role].light, edgecolor=_edge(role))
        gain = f", {view.gain(number):.2f}x" if number else ""
        gain += f" (measured: {view.measured(number)})" if number and step.measured else ""
        ax.text(step.time + most / 80, number, f"{view.shown(number)}{gain}", va="center",
                fontsize=8)  # fmt: skip
    _title(ax, view.headline(), 84)
    ax.set(xlabel=f"{view.unit}, {view.source}", xlim=(0, most * 1.2),
           yticks=range(len(view.steps)),
           yticklabels=[textwrap.shorten(s.name, 44) for s in view.steps])  # fmt: skip
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
        # From top to bottom: the kernel's life, one phase where no tiles share bytes.
        high = 0.6 * (row.last - row.first + 1) / view.phases
        middle = 0.3 - 0.6 * row.first / view.phases - high / 2
        ax.barh(middle, row.num_bytes / 1024, left=start, height=high, color=PAINTS[role].light,
                edgecolor=PAINTS["outline"].light)  # fmt: skip
        if row.num_bytes > view.shared_per_block / 20:
            ax.text(start + row.num_bytes / 2048, middle, f"{row.name}\n{row.num_bytes:,} B",
                    ha="center", va="center", fontsize=8)  # fmt: skip
    limit = view.shared_per_block / 1024
    ax.axvline(limit, color=PAINTS["bad-edge"].light, linestyle="--")
    ax.text(limit, 0.36, f"limit of a block: {limit:g} KiB ", ha="right", va="bottom", fontsize=8,
            color=PAINTS["bad-edge"].light)  # fmt: skip
    _title(ax, f"{view.kernel} on {view.target}: {view.verdict()}")
    ax.set(xlabel="KiB", yticks=[], ylim=(-0.42, 0.52))
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
    made.set_title(f"{view.title}\n{view.verdict()}", fontsize=10)
    made.set(xlabel=across, ylabel=view.unit)
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
    for number, point in enumerate(view.points):
        rate = view.roof(point.intensity) if point.rate is None else point.rate
        shown = "not timed" if point.rate is None else f"{rate / 1e12:.4g} TFLOP/s"
        ax.plot(point.intensity, rate / 1e12, MARKERS[number % len(MARKERS)], markersize=7,
                markerfacecolor="none", color=PAINTS[EDGES[number % len(EDGES)]].light,
                label=f"{point.name} ({point.source}): {shown}")  # fmt: skip
    ax.annotate(f"{view.peak_flops / 1e12:.4g} TFLOP/s", (grid[-1], view.peak_flops / 1e12),
                xytext=(0, 4), textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
    ax.annotate(f"{view.peak_bytes / 1e12:.3g} TB/s", (1, view.roof(1) / 1e12), xytext=(-6, 6),
                textcoords="offset points", ha="right", fontsize=8)  # fmt: skip
    ax.legend(loc="lower right", fontsize=8)
    _title(ax, view.title)
    ax.set(xlabel="operations for each byte", ylabel="TFLOP/s")
    ax.grid(True, which="major", alpha=0.3)
    return ax


_PICTURES = ("layout", "pipeline", "schedule", "ladder", "memory", "access", "roofline")
answer_all(globals(), _PICTURES, "plot")
