"""Draws a FragmentView: the whole map by lane colour, warp outlines, a labelled corner, a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tilelab.target import WARP
from tilelab.views.measure import wrapped
from tilelab.views.palette import lane_colours
from tilelab.views.raster import png_uri
from tilelab.views.svg import Svg, number
from tilelab.views.table import plural

if TYPE_CHECKING:
    from tilelab.views.fragment import FragmentView

Ints = NDArray[np.int64]

MAP = 448  # pixels of the longer side of the whole map
CELL_W, CELL_H = 38, 27  # a labelled cell
LABELLED = 16  # rows and columns up to which every cell is labelled
ZOOM_ROWS, ZOOM_COLS = 16, 8
WIDE_GAP = 116  # room for the indices of the leading axes
LEFT, TOP, GAP, KEY = 52, 112, 64, 36
MAX_RUNS = 36_000  # beyond it a raster is smaller than paths
MAX_OUTLINE = 6_000
MAX_LABELS = 64
EDGE = ' stroke="#ffffff" stroke-opacity="0.55" stroke-width="0.75"'


@dataclass(frozen=True)
class Frame:
    """Where a map stands: its origin, the size of a cell, and the rows and columns it shows."""

    x: float
    y: float
    cell_w: float
    cell_h: float
    rows: int
    cols: int

    @property
    def right(self) -> float:
        return self.x + self.cols * self.cell_w

    @property
    def bottom(self) -> float:
        return self.y + self.rows * self.cell_h


def draw(view: FragmentView) -> str:
    """The picture of a fragment as SVG text."""
    owners, registers = view.owner_grid(), view.register_grid()
    rows, cols = owners.shape
    small = rows <= LABELLED and cols <= LABELLED
    frames = [Frame(LEFT, TOP, CELL_W, CELL_H, rows, cols)]
    if not small:
        frames = _frames(rows, cols, GAP if len(view.shape) < 3 else WIDE_GAP)
    right = max(max(f.right for f in frames) + 24, LEFT + 704)
    notes = wrapped("Why: " + view.reason, right - 48, 12) if view.reason else []
    height = max(f.bottom for f in frames) + 34 + KEY + 17 * len(notes)
    svg = Svg(f"fragment-{view.buffer}", right, height, view.title, _description(view, owners))
    svg.heading(view.summary())
    svg.sub(_how_to_read(view, small))
    if not small:
        _whole(svg, view, owners, frames[0])
    _corner(svg, owners, registers, frames[-1])
    _key(svg, height - 24 - 17 * len(notes))
    for k, line in enumerate(notes):
        svg.text(24, height - 14 - 17 * (len(notes) - 1 - k), line, "muted", size=12)
    return svg.render()


def _frames(rows: int, cols: int, gap: int) -> list[Frame]:
    whole = Frame(LEFT, TOP, min(MAP / cols, 20), min(MAP / rows, 20), rows, cols)
    zoom_rows, zoom_cols = min(rows, ZOOM_ROWS), min(cols, ZOOM_COLS)
    return [whole, Frame(whole.right + gap, TOP, CELL_W, CELL_H, zoom_rows, zoom_cols)]


def _how_to_read(view: FragmentView, small: bool) -> str:
    held = len(view.held_by(0))
    first = f"{'Bold' if small else 'Dark'} cells: the {plural(held, 'element')} of thread 0"
    copies = " (the first of its owners is shown)" if view.shared else ""
    return f"Colour: the lane in its warp{copies}. Outlines: warps. {first}."


def _description(view: FragmentView, owners: Ints) -> str:
    rows, cols = owners.shape
    first = f"thread {owners[0, 0]} holds the first element"
    return f"{view.summary()}. Drawn as {rows} rows and {cols} columns; {first}. {view.reason}"


def _runs(owners: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """(row, column, length, lane) of the runs of equal lanes, row by row."""
    lanes = np.where(owners < 0, -1, owners % WARP)
    change = np.ones(lanes.shape, bool)
    change[:, 1:] = lanes[:, 1:] != lanes[:, :-1]
    starts = np.nonzero(change.ravel())[0]
    lengths = np.diff(np.append(starts, lanes.size))
    lane = lanes.ravel()[starts]
    keep = lane >= 0
    rows, cols = np.divmod(starts[keep], lanes.shape[1])
    return rows, cols, lengths[keep], lane[keep]


def _strokes(rows: Ints, cols: Ints, lengths: Ints) -> str:
    """Runs as one path of horizontal strokes, each one unit high, relative from end to start."""
    parts: list[str] = []
    row = col = 0
    for r, c, n in zip(rows.tolist(), cols.tolist(), lengths.tolist(), strict=True):
        parts.append(f"m{c - col} {r - row}h{n}")
        row, col = r, c + n
    return "M0 0" + "".join(parts)


def _whole(svg: Svg, view: FragmentView, owners: Ints, frame: Frame) -> None:
    svg.text(frame.x, frame.y - 26, "whole tile", "muted", size=12, bold=True)
    svg.rect(frame.x, frame.y, frame.right - frame.x, frame.bottom - frame.y, "panel")
    rows, cols, lengths, lanes = _runs(owners)
    if len(rows) > MAX_RUNS:
        _raster(svg, owners, frame)
    else:
        place = f"translate({number(frame.x)} {number(frame.y + frame.cell_h / 2)})"
        scale = f"scale({frame.cell_w:.6g} {frame.cell_h:.6g})"
        with svg.group(f'transform="{place} {scale}" fill="none" shape-rendering="crispEdges"'):
            for lane in np.unique(lanes):
                pick = lanes == lane
                path = _strokes(rows[pick], cols[pick], lengths[pick])
                svg.raw(f'<path stroke="{lane_colours()[lane]}" d="{path}"/>')
            mine = _thread_runs(owners, 0)
            svg.raw(f'<path{svg.paint(stroke="cell-ink")} d="{_strokes(*mine)}"/>')
    _outlines(svg, owners, frame)
    _ticks(svg, frame, view)
    _warp_labels(svg, owners, frame)
    zoom_w = min(ZOOM_COLS, frame.cols) * frame.cell_w
    zoom_h = min(ZOOM_ROWS, frame.rows) * frame.cell_h
    svg.rect(frame.x, frame.y, zoom_w, zoom_h, "", "cell-ink", width=2, dash="3 2")


def _thread_runs(owners: Ints, thread: int) -> tuple[Ints, Ints, Ints]:
    mask = np.where(owners == thread, 0, -1)
    rows, cols, lengths, _ = _runs(mask)
    return rows, cols, lengths


def _raster(svg: Svg, owners: Ints, frame: Frame) -> None:
    lanes = np.where(owners < 0, 33, owners % WARP)
    lanes[owners == 0] = 32
    uri = png_uri(lanes, [*lane_colours(), "#14171c", "#f4f6f8"])
    svg.raw(
        f'<image x="{number(frame.x)}" y="{number(frame.y)}" '
        f'width="{number(frame.right - frame.x)}" height="{number(frame.bottom - frame.y)}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" href="{uri}"/>'
    )


def _segments(mask: NDArray[np.bool_]) -> Iterator[tuple[int, int, int]]:
    """(line, from, to) of the runs of true cells in each row of `mask`."""
    edge = np.diff(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    starts, stops = np.argwhere(edge == 1), np.argwhere(edge == -1)
    for (line, start), (_, stop) in zip(starts.tolist(), stops.tolist(), strict=True):
        yield line, start, stop


def _outlines(svg: Svg, owners: Ints, frame: Frame) -> None:
    """Borders between cells of different warps, and around the map."""
    warps = np.pad(np.where(owners < 0, -1, owners // WARP), 1, constant_values=-1)
    across = list(_segments(warps[1:, 1:-1] != warps[:-1, 1:-1]))
    down = list(_segments((warps[1:-1, 1:] != warps[1:-1, :-1]).T))
    if len(across) + len(down) > MAX_OUTLINE:
        return  # warps alternate from cell to cell: outlines would cover the colours
    x, y, w, h = frame.x, frame.y, frame.cell_w, frame.cell_h
    parts = [f"M{number(x + a * w)} {number(y + r * h)}H{number(x + b * w)}" for r, a, b in across]
    parts += [f"M{number(x + c * w)} {number(y + a * h)}V{number(y + b * h)}" for c, a, b in down]
    svg.path("".join(parts), stroke="cell-ink", width=1.5)


def _numbers(total: int, cell: float, room: float) -> list[int]:
    """Which of `total` indices get a tick label, so that labels are `room` pixels apart."""
    step = 1
    while step * cell < room:
        step *= 2
    return list(range(0, total, step))


def _ticks(svg: Svg, frame: Frame, view: FragmentView | None) -> None:
    rows_each = view.shape[-2] if view is not None and len(view.shape) > 2 else frame.rows
    for c in _numbers(frame.cols, frame.cell_w, 26):
        x = frame.x + (c + 0.5) * frame.cell_w
        svg.text(x, frame.y - 7, str(c), "muted", size=10.5, anchor="middle")
    for r in _numbers(frame.rows, frame.cell_h, 22):
        y = frame.y + (r + 0.5) * frame.cell_h + 3.5
        svg.text(frame.x - 7, y, str(r % rows_each), "muted", size=10.5, anchor="end")
    if view is None or rows_each == frame.rows:
        return
    for block in range(frame.rows // rows_each):
        y = frame.y + block * rows_each * frame.cell_h
        lead = np.unravel_index(block, view.shape[:-2])
        label = "[" + ", ".join(str(int(i)) for i in lead) + ", :, :]"
        svg.line([(frame.x - 30, y), (frame.right + 6, y)], "outline", width=1.5)
        svg.text(frame.right + 6, y + 12, label, "muted", size=10)


def _spans(numbers: Ints) -> list[tuple[int, int]]:
    runs = np.split(numbers, np.nonzero(np.diff(numbers) != 1)[0] + 1)
    return [(int(r[0]), int(r[-1]) + 1) for r in runs]


def _warp_labels(svg: Svg, owners: Ints, frame: Frame) -> None:
    """A tag in every box that one warp holds alone, where there is room for it."""
    warps = np.where(owners < 0, -1, owners // WARP)
    room = MAX_LABELS
    for warp in np.unique(warps[warps >= 0]).tolist():
        mask = warps == warp
        bands = _spans(np.nonzero(mask.any(axis=1))[0])
        for top, bottom in bands:
            for left, right in _spans(np.nonzero(mask[top])[0]):
                w, h = (right - left) * frame.cell_w, (bottom - top) * frame.cell_h
                alone = mask[top:bottom, left:right].all()
                if room and alone and w > 56 and h > 20:
                    room -= 1
                    x = frame.x + (left + right) / 2 * frame.cell_w
                    y = frame.y + (top + bottom) / 2 * frame.cell_h
                    svg.rect(x - 27, y - 9, 54, 18, "card", "cell-ink", radius=9)
                    svg.text(x, y + 4, f"warp {warp}", size=11, anchor="middle")


def _corner(svg: Svg, owners: Ints, registers: Ints, frame: Frame) -> None:
    part = owners[: frame.rows, : frame.cols]
    room = max(svg.width - 24 - frame.x, 0)
    svg.label(frame.x, frame.y - 26, "corner (T thread, R register)", "muted", size=12, bold=True,
              width=room, anchor="start")  # fmt: skip
    with svg.group('text-anchor="middle"'):
        for (r, c), thread in np.ndenumerate(part):
            if thread >= 0:
                _cell(svg, frame, (r, c), int(thread), int(registers[r, c]))
    _outlines(svg, part, frame)
    _ticks(svg, frame, None)


def _cell(svg: Svg, frame: Frame, at: tuple[int, int], thread: int, slot: int) -> None:
    x, y = frame.x + at[1] * frame.cell_w, frame.y + at[0] * frame.cell_h
    weight = ' font-weight="700"' if thread == 0 else ""
    svg.raw(
        f'<rect x="{number(x)}" y="{number(y)}" width="{frame.cell_w}" height="{frame.cell_h}" '
        f'fill="{lane_colours()[thread % WARP]}"{EDGE}/>'
    )
    middle = x + frame.cell_w / 2
    ink = svg.paint("cell-ink")
    for label, dy, size in ((f"T{thread}", 12, 11), (f"R{slot}", 23, 9.5)):
        svg.raw(
            f'<text x="{number(middle)}" y="{number(y + dy)}" font-size="{size}"{weight}{ink}>'
            f"{label}</text>"
        )


def _key(svg: Svg, y: float) -> None:
    """The 32 lane colours with their numbers."""
    svg.text(24, y, "lane", "muted", size=11)
    for lane, colour in enumerate(lane_colours()):
        x = LEFT + 4 + lane * 20
        svg.raw(f'<rect x="{x}" y="{number(y - 13)}" width="20" height="18" fill="{colour}"/>')
        svg.text(x + 10, y, str(lane), "cell-ink", size=10, anchor="middle")
