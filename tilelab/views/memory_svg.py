"""Draws a MemoryView: bytes against the block's limit, a table, and blocks by resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.measure import SHRINK, width_of, wrapped
from tilelab.views.palette import BUFFER_ROLES
from tilelab.views.svg import Svg
from tilelab.views.table import bytes_text, kib, plural

if TYPE_CHECKING:
    from tilelab.thread.occupancy import Bound
    from tilelab.views.memory import MemoryRow, MemoryView, StageFit

WIDTH, LEFT, BAR = 880, 24, 832
BAR_TOP, BAR_HEIGHT, MOST_BARS = 112, 46, 4
LEAST_ROW = 30  # pixels that a box of several phases needs for its name and size
ROW = 22
LEAST_BOX = 5  # pixels; narrower boxes are drawn as one


def draw(view: MemoryView) -> str:
    """The picture of a budget as SVG text."""
    table_top = BAR_TOP + _bar_height(view) + 66
    below = table_top + ROW * (max(len(view.rows), 1) + 1) + 26
    fits = [line for fit in view.fits for line in wrapped(_fit_text(fit), BAR, 12)]
    height = below + 4 * 30 + 66 + 20 * len(fits)
    used = f"{bytes_text(view.total_bytes)} of {bytes_text(view.shared_per_block)}"
    desc = f"{used}; {view.verdict()}"
    svg = Svg(f"memory-{view.kernel}", WIDTH, height, view.title, desc)
    static = f" + {view.static_bytes:,} B static" if view.static_bytes else ""
    headline = f"Shared memory: {bytes_text(view.dynamic_bytes)} dynamic{static}"
    svg.heading(headline)
    svg.sub(_sub(view))
    if view.phases > 1:
        svg.sub("From top to bottom: the kernel's life. Tiles below each other take turns.")
    _bar(svg, view)
    _table(svg, view, table_top)
    _bounds(svg, view, below)
    for k, line in enumerate(fits):
        svg.text(LEFT, below + 4 * 30 + 56 + 20 * k, line, size=12)
    return svg.render()


def _sub(view: MemoryView) -> str:
    share = 100 * view.total_bytes / view.shared_per_block
    regs = "" if view.registers is None else f", {view.registers} registers a thread"
    spill = f", {view.spill_bytes} B of registers spilled" if view.spill_bytes else ""
    return (
        f"{view.kernel} on {view.target}: {share:.1f} % of what one block may have; "
        f"{view.threads} threads{regs}{spill}"
    )


def _fit_text(fit: StageFit) -> str:
    beside = f" (beside {fit.other_bytes:,} B of other data)" if fit.other_bytes else ""
    return (
        f"Stages of loop {fit.loop}: {bytes_text(fit.bytes_per_stage)} each; "
        f"{fit.stages} now, at most {fit.largest} fit{beside}."
    )


def _roles(view: MemoryView) -> dict[str, str]:
    """A fill for each buffer name, in the order of the rows."""
    roles = {"padding": "gap"}
    tiles = [r.name for r in view.rows if r.use == "tile"]
    for k, name in enumerate(dict.fromkeys(tiles)):
        roles[name] = BUFFER_ROLES[k % (len(BUFFER_ROLES) - 1)]
    return roles


def _role(row: MemoryRow, roles: dict[str, str]) -> str:
    return "barrier" if row.use == "barrier" else roles[row.name]


def _bar_height(view: MemoryView) -> int:
    return BAR_HEIGHT * min(view.phases, MOST_BARS)


def _bar(svg: Svg, view: MemoryView) -> None:
    """Dynamic bytes by address on a scale that ends at the limit (or at what is asked for); where
    tiles share bytes, each from the first phase of its life to the last."""
    top = max(view.total_bytes, view.shared_per_block)
    scale, height = BAR / top, _bar_height(view)
    svg.rect(LEFT, BAR_TOP, BAR, height, "panel", "grid", radius=4)
    roles = _roles(view)
    for row in view.rows:
        start = row.offset if row.dynamic else view.dynamic_bytes
        fill = _role(row, roles)
        edge = "grid" if fill == "gap" else f"{fill}-edge"
        y, h = BAR_TOP + height * row.first / view.phases, _high(row, view)
        for stage in range(row.stages):
            x = LEFT + scale * (start + stage * row.num_bytes / row.stages)
            w = scale * row.num_bytes / row.stages
            tip = f"{row.name}: stage {stage}, {row.bytes_per_stage:,} B"
            svg.rect(x, y, max(w, 1), h, fill, edge, title=tip)
            labels = (f"stage {stage}", str(stage)) if row.stages > 1 else (row.use,)
            if view.phases == 1:
                _first_that_fits(svg, x + w / 2, y + 20, labels, w - 4)
                _first_that_fits(svg, x + w / 2, y + 36, (kib(row.bytes_per_stage),), w - 4)
        _name(svg, view, row, LEFT + scale * start, y)
    _scale(svg, view, scale)


def _high(row: MemoryRow, view: MemoryView) -> float:
    return _bar_height(view) * (row.last - row.first + 1) / view.phases


def _name(svg: Svg, view: MemoryView, row: MemoryRow, x: float, y: float) -> None:
    """Above its boxes where all lie in one row, else inside them."""
    whole = BAR * row.num_bytes / max(view.total_bytes, view.shared_per_block)
    if view.phases == 1:
        svg.label(x + whole / 2, BAR_TOP - 7, row.name, size=11.5, width=whole)
    elif (high := _high(row, view)) >= LEAST_ROW:
        _first_that_fits(svg, x + whole / 2, y + high / 2 - 3, (row.name,), whole - 4)
        _first_that_fits(svg, x + whole / 2, y + high / 2 + 12, (kib(row.num_bytes),), whole - 4)


def _first_that_fits(
    svg: Svg, x: float, y: float, labels: tuple[str, ...], width: float
) -> None:  # fmt: skip
    """The first label with room, whole; none where all are too wide: the table says it too."""
    size = 11
    for label in labels:
        if width_of(label, size * SHRINK) <= width:
            svg.label(x, y, label, size=size, width=width)
            return


def _scale(svg: Svg, view: MemoryView, scale: float) -> None:
    y = BAR_TOP + _bar_height(view)
    limit = LEFT + scale * view.shared_per_block
    svg.line([(limit, BAR_TOP - 22), (limit, y + 8)], "bad-edge", width=2)
    words = f"limit of a block: {bytes_text(view.shared_per_block)}"
    svg.text(limit - 6, BAR_TOP - 22, words, "bad-edge", size=11.5, anchor="end", bold=True)
    step = 32 << 10
    while view.shared_per_block / step > 9:
        step *= 2
    for mark in range(0, int(BAR / scale) + 1, step):
        x = LEFT + scale * mark
        svg.line([(x, y), (x, y + 5)], "muted")
        label = "0" if mark == 0 else kib(mark)
        svg.text(x, y + 18, label, "muted", size=10.5, anchor="start" if mark == 0 else "middle")


COLUMNS = (
    (30, "start", 212), (250, "start", 164), (478, "end", 60), (540, "end", 50),
    (660, "end", 110), (770, "end", 100),
)  # fmt: skip
"""Place, anchor and width of each column of the table."""


def _table(svg: Svg, view: MemoryView, top: float) -> None:
    roles = _roles(view)
    heads = ("buffer", "what", "at byte", "stages", "bytes a stage", "bytes")
    for (x, anchor, width), head in zip(COLUMNS, heads, strict=True):
        svg.label(LEFT + x, top, head, "muted", size=11.5, anchor=anchor, bold=True, width=width)
    svg.line([(LEFT, top + 7), (LEFT + BAR, top + 7)], "grid")
    if not view.rows:
        svg.text(LEFT + 30, top + ROW + 2, "This kernel uses no shared memory.")
    for k, row in enumerate(view.rows):
        y = top + ROW * (k + 1) + 2
        fill = _role(row, roles)
        svg.rect(LEFT + 2, y - 11, 18, 14, fill, "grid" if fill == "gap" else f"{fill}-edge")
        shared = f", shares {row.shares_with[0]}" if row.shares_with else ""
        cells = (
            row.name, row.detail + shared, f"{row.offset:,}" if row.dynamic else "static",
            str(row.stages), f"{row.bytes_per_stage:,}", f"{row.num_bytes:,}",
        )  # fmt: skip
        for (x, anchor, width), cell in zip(COLUMNS, cells, strict=True):
            svg.label(LEFT + x, y, cell, "ink", size=12, anchor=anchor, width=width)


def _bounds(svg: Svg, view: MemoryView, top: float) -> None:
    """One bar for each resource: the blocks it allows, as boxes; the limiter is named."""
    found = view.occupancy
    svg.text(LEFT, top, "Blocks that share one multiprocessor", size=12.5, bold=True)
    for k, bound in enumerate(found.bounds):
        y = top + 14 + 30 * k
        limiting = bound.resource in found.limiters
        svg.text(LEFT + 4, y + 16, bound.resource, "ink", size=12, bold=limiting)
        _boxes(svg, bound, limiting, LEFT + 118, y)
    verdict = view.verdict()
    svg.text(LEFT, top + 4 * 30 + 34, verdict[0].upper() + verdict[1:] + ".", size=12, bold=True)


def _boxes(svg: Svg, bound: Bound, limiting: bool, x: float, y: float) -> None:
    blocks, room = bound.blocks, 360.0
    if blocks is None:
        svg.text(x, y + 16, "known once the kernel is compiled to machine code", "muted", size=11.5)
        return
    fill, edge = ("compute", "compute-edge") if limiting else ("load", "load-edge")
    if bound.per_block is not None:
        w = room * bound.per_block / bound.per_sm
        svg.rect(x, y + 3, room, 18, "panel", "grid")
        if w < LEAST_BOX:
            svg.rect(x, y + 3, w * blocks, 18, fill, edge)
        else:
            numbered = width_of(str(blocks), 10.5) <= w - 2
            for k in range(blocks):
                svg.rect(x + k * w, y + 3, w, 18, fill, edge)
                if numbered:
                    svg.label(x + (k + 0.5) * w, y + 16, str(k + 1), size=10.5, width=w - 2)
    mark = "  ← the limit" if limiting else ""
    taken = f"{bound.per_block:,} of {bound.per_sm:,}" if bound.per_block is not None else ""
    svg.text(x + room + 12, y + 16, f"{plural(blocks, 'block')}{mark}", size=12, bold=limiting)
    svg.text(LEFT + BAR, y + 16, taken, "muted", size=11, anchor="end")
