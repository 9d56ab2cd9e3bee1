"""Draws an AccessView: one row a wavefront or sector, the lanes in the cells they are served by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.palette import lane_colours
from tilelab.views.svg import Svg, number
from tilelab.views.table import plural

if TYPE_CHECKING:
    from tilelab.views.access import AccessView, Wave

CELLS, CELL_W, CELL_H = 32, 25, 22
LEFT, TOP = 104, 108
SHOWN = 64  # rows that are drawn; the text twin has them all


def draw(view: AccessView) -> str:
    """The picture of an access as SVG text."""
    shown = view.waves[:SHOWN]
    height = TOP + CELL_H * len(shown) + 44
    desc = f"{view.verdict()}. {plural(len(view.addresses), 'lane')} of {view.width} bytes."
    svg = Svg(f"access-{view.buffer}", LEFT + CELLS * CELL_W + 24, height, view.title, desc)
    svg.heading(view.title)
    good = len(view.waves) <= view.ideal
    svg.sub(view.verdict(), "good-edge" if good else "bad-edge", size=13, bold=True)
    across = "bank (4 bytes each)" if view.space == "shared" else "byte of the 32-byte sector"
    svg.text(LEFT, TOP - 24, across, "muted", size=11)
    for cell in range(CELLS):
        x = LEFT + (cell + 0.5) * CELL_W
        svg.text(x, TOP - 7, str(cell), "muted", size=10, anchor="middle")
    for row, wave in enumerate(shown):
        _row(svg, view, wave, TOP + row * CELL_H)
    if len(view.waves) > SHOWN:
        rest = f"and {len(view.waves) - SHOWN} more rows"
        svg.text(LEFT, height - 24, rest, "muted", size=11)
    else:
        note = "A cell's number is the lane served there; + means several lanes read the same word."
        svg.text(24, height - 16, note, "muted", size=11)
    return svg.render()


def _row(svg: Svg, view: AccessView, wave: Wave, y: float) -> None:
    label = f"{view.unit} {wave.place}" if view.space == "shared" else f"byte {wave.place:,}"
    svg.label(LEFT - 8, y + 15, label, "muted", size=11, anchor="end", width=LEFT - 16)
    svg.rect(LEFT, y, CELLS * CELL_W, CELL_H - 2, "panel", "grid")
    for cell, lanes in sorted(view.cells_of(wave).items()):
        x = LEFT + cell * CELL_W
        svg.raw(
            f'<rect x="{number(x)}" y="{number(y)}" width="{CELL_W}" height="{CELL_H - 2}" '
            f'fill="{lane_colours()[lanes[0] % CELLS]}"/>'
        )
        text = f"{lanes[0]}" + ("+" if len(set(lanes)) > 1 else "")
        svg.text(x + CELL_W / 2, y + 14, text, "cell-ink", size=10, anchor="middle")
