"""Draws a SharedView: the whole tile coloured by bank, and a corner with bank numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilelab.views.measure import wrapped
from tilelab.views.palette import lane_colours
from tilelab.views.raster import png_uri
from tilelab.views.svg import Svg, number

if TYPE_CHECKING:
    from tilelab.views.shared import SharedView

MAP, CELL_W, CELL_H = 400, 30, 22
LEFT, TOP, GAP = 52, 112, 60
HEAD = 150  # what is written above a narrow tile takes
ROWS = COLS = 16


def draw(view: SharedView) -> str:
    """The picture of a shared layout as SVG text."""
    banks = view.bank_grid()
    rows, cols = banks.shape
    scale = min(MAP / cols, MAP / rows, 20)
    map_w, map_h = cols * scale, rows * scale
    corner = banks[:ROWS, :COLS]
    corner_x = LEFT + max(map_w, HEAD) + GAP
    bottom = TOP + max(map_h, corner.shape[0] * CELL_H)
    right = max(corner_x + corner.shape[1] * CELL_W + 24, 720)
    notes = wrapped("Why: " + view.reason, right - 48, 12) if view.reason else []
    desc = f"{view.summary()}. {view.description}"
    svg = Svg(f"shared-{view.buffer}", right, bottom + 56 + 17 * len(notes), view.title, desc)
    svg.heading(view.summary())
    svg.sub(view.description)
    svg.text(LEFT, TOP - 12, "whole tile, by bank", "muted", size=12, bold=True)
    uri = png_uri(banks.astype(np.int64), list(lane_colours()))
    svg.raw(
        f'<image x="{LEFT}" y="{TOP}" width="{number(map_w)}" height="{number(map_h)}" '
        f'preserveAspectRatio="none" style="image-rendering:pixelated" href="{uri}"/>'
    )
    svg.rect(LEFT, TOP, map_w, map_h, "", "grid")
    svg.text(corner_x, TOP - 12, "bank of each element (corner)", "muted", size=12, bold=True)
    for (r, c), bank in np.ndenumerate(corner):
        x, y = corner_x + c * CELL_W, TOP + r * CELL_H
        svg.raw(
            f'<rect x="{number(x)}" y="{number(y)}" width="{CELL_W}" height="{CELL_H}" '
            f'fill="{lane_colours()[bank]}"/>'
        )
        svg.text(x + CELL_W / 2, y + 15, str(bank), "cell-ink", size=11, anchor="middle")
    for k, line in enumerate(notes):
        svg.text(24, bottom + 40 + 17 * k, line, "muted", size=12)
    return svg.render()
