"""Draws a LadderView: a bar of time for each step with what the step gained, and below it the time
that was measured, where one was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.measure import wrapped
from tilelab.views.svg import Svg

if TYPE_CHECKING:
    from tilelab.views.ladder import LadderStep, LadderView

WIDTH, LEFT, CHART = 880, 320, 250
TOP, ROW, BOX, THIN = 104, 38, 24, 8
GAIN, TOTAL, MEASURED = 590, 760, WIDTH - 24


def draw(view: LadderView) -> str:
    """The picture as SVG text."""
    notes = [line for note in view.notes() for line in wrapped(note, WIDTH - 48, 11.5)]
    bottom = TOP + ROW * len(view.steps)
    svg = Svg(f"ladder-{view.kernel}", WIDTH, bottom + 24 + 17 * len(notes), view.title,
              view.headline())  # fmt: skip
    svg.heading(view.title)
    headline = view.headline().removeprefix(f"{view.kernel}: ")
    svg.sub(headline, "ink")
    timed = any(step.measured for step in view.steps)
    below = "; below it: measured" if timed else ""
    svg.text(LEFT, TOP - 14, f"time in {view.unit}, {view.source}{below}", "muted", size=11)
    svg.text(GAIN, TOP - 14, "gain of the step", "muted", size=11)
    svg.text(TOTAL, TOP - 14, "to the first", "muted", size=11, anchor="end")
    svg.text(MEASURED, TOP - 14, "measured", "muted", size=11, anchor="end")
    first = view.steps[0]
    # Measured times have no unit of the model's: both begin with a bar of one length.
    most = max(max(s.time, first.time / (s.measured or 1)) for s in view.steps)
    for number, step in enumerate(view.steps):
        y, width = TOP + ROW * number, CHART * step.time / most
        _names(svg, step, y)
        fill = "compute" if number else "gap"
        edge = "compute-edge" if number else "muted"
        high = BOX - THIN if timed else BOX
        svg.rect(LEFT, y + 2, width, high, fill, edge, radius=3, title=step.detail or step.name)
        inside = width > 90
        svg.text(LEFT + 8 if inside else LEFT + width + 8, y + high / 2 + 6, view.shown(number),
                 size=11.5)  # fmt: skip
        if step.measured:
            tip = f"measured: {step.measured:.2f} times as fast as the first"
            width = CHART * first.time / step.measured / most
            svg.rect(LEFT, y + 2 + high, width, THIN, "good", "good-edge", title=tip)
        _gains(svg, view, number, y + 18)
    for number, line in enumerate(notes):
        svg.text(24, bottom + 18 + 17 * number, line, "muted", size=11.5)
    return svg.render()


def _names(svg: Svg, step: LadderStep, y: float) -> None:
    svg.label(24, y + 16, step.name, size=12, width=LEFT - 44, anchor="start")
    if step.switch:
        svg.label(24, y + 30, step.switch, "muted", size=10.5, width=LEFT - 44, anchor="start",
                  mono=True)  # fmt: skip


def _gains(svg: Svg, view: LadderView, number: int, y: float) -> None:
    if number:
        gain = view.gain(number)
        role = "good-edge" if gain > 1.005 else "bad-edge" if gain < 0.995 else "muted"
        mark = "▲" if gain > 1.005 else "▼" if gain < 0.995 else "="
        svg.text(GAIN, y, f"{mark} {gain:.2f}x", role, size=12)
        svg.text(TOTAL, y, f"{view.total(number):.2f}x", size=12, anchor="end")
    known = view.steps[number].measured is not None
    svg.text(MEASURED, y, view.measured(number), "ink" if known else "muted", size=11.5,
             anchor="end")  # fmt: skip
