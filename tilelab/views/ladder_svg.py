"""Draws a LadderView: a bar of time for each step, longest above, with what the step gained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.measure import wrapped
from tilelab.views.svg import Svg

if TYPE_CHECKING:
    from tilelab.views.ladder import LadderView

WIDTH, LEFT, CHART = 880, 330, 340
TOP, ROW, BOX = 104, 38, 24


def draw(view: LadderView) -> str:
    """The picture as SVG text."""
    notes = wrapped(view.remark, WIDTH - 48, 11.5) if view.remark else []
    bottom = TOP + ROW * len(view.steps)
    svg = Svg(f"ladder-{view.kernel}", WIDTH, bottom + 24 + 17 * len(notes), view.title,
              view.headline())  # fmt: skip
    svg.heading(view.title)
    headline = view.headline().removeprefix(f"{view.kernel}: ")
    svg.sub(headline, "ink")
    svg.text(LEFT, TOP - 14, f"time in {view.unit}", "muted", size=11)
    svg.text(LEFT + CHART + 20, TOP - 14, "gain of the step", "muted", size=11)
    svg.text(WIDTH - 24, TOP - 14, "to the first", "muted", size=11, anchor="end")
    most = max(step.time for step in view.steps)
    for number, step in enumerate(view.steps):
        y, width = TOP + ROW * number, CHART * step.time / most
        svg.label(24, y + 16, step.name, size=12, width=LEFT - 44, anchor="start")
        if step.switch:
            svg.label(24, y + 30, step.switch, "muted", size=10.5, width=LEFT - 44,
                      anchor="start", mono=True)  # fmt: skip
        fill = "gap" if not number else "compute"
        edge = "muted" if not number else "compute-edge"
        svg.rect(LEFT, y + 2, width, BOX, fill, edge, radius=3, title=step.detail or step.name)
        inside = width > 90
        svg.text(LEFT + 8 if inside else LEFT + width + 8, y + 18, view.shown(number), size=11.5)
        if number:
            gain = view.gain(number)
            role = "good-edge" if gain > 1.005 else "bad-edge" if gain < 0.995 else "muted"
            mark = "▲" if gain > 1.005 else "▼" if gain < 0.995 else "="
            svg.text(LEFT + CHART + 20, y + 18, f"{mark} {gain:.2f}x", role, size=12)
            svg.text(WIDTH - 24, y + 18, f"{view.total(number):.2f}x", size=12, anchor="end")
    for number, line in enumerate(notes):
        svg.text(24, bottom + 18 + 17 * number, line, "muted", size=11.5)
    return svg.render()
