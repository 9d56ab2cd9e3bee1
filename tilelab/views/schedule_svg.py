"""Draws a ScheduleView: slots over time, and below them what the consumer did meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.svg import Svg
from tilelab.views.timeline_svg import time_axis

if TYPE_CHECKING:
    from tilelab.views.schedule import ScheduleView, TimedUse

WIDTH, LEFT, CHART = 880, 110, 746
TOP, ROW, BOX = 112, 34, 24
LEGEND = (
    ("in flight", "wait", "load-edge"), ("lies ready", "good", "good-edge"),
    ("in use", "compute", "compute-edge"), ("the consumer waits", "gap", "muted"),
)  # fmt: skip


class _Chart:
    def __init__(self, view: ScheduleView) -> None:
        self.length = max(view.end, view.axis, 1)
        self.scale = CHART / self.length

    def x(self, cycle: float) -> float:
        return LEFT + cycle * self.scale


def draw(view: ScheduleView) -> str:
    """The picture as SVG text."""
    chart = _Chart(view)
    bottom = TOP + ROW * (view.slots + 1) + 10
    ident = f"schedule-{view.kernel}-{view.loop}-{view.tiles[0]}-{view.source}"
    svg = Svg(ident, WIDTH, bottom + 50, view.title, view.headline() + ". " + view.caption())
    svg.heading(f"Loop {view.loop}, {view.source} times")
    svg.sub(view.headline(), "ink")
    svg.sub(view.caption())
    time_axis(svg, chart.length, LEFT, chart.scale, (TOP - 2, bottom), view.end)
    svg.text(LEFT - 34, TOP - 14, "cycle", "muted", size=11, anchor="end")
    for slot in range(view.slots):
        svg.label(LEFT - 10, TOP + slot * ROW + 17, f"slot {slot}", width=80, anchor="end")
        svg.rect(LEFT, TOP + slot * ROW, CHART, ROW - 4, "panel", "grid", radius=3)
    consumer = TOP + view.slots * ROW + 10
    svg.label(LEFT - 10, consumer + 17, "consumer", width=80, anchor="end")
    for use in view.uses:
        _slot(svg, chart, use)
        _consumer(svg, chart, use, consumer)
    x = 24.0
    for text, fill, edge in LEGEND:
        svg.rect(x, bottom + 20, 14, 14, fill, edge, radius=2)
        svg.text(x + 20, bottom + 31, text)
        x += 48 + 6.6 * len(text)
    return svg.render()


def _slot(svg: Svg, chart: _Chart, use: TimedUse) -> None:
    y = TOP + use.slot * ROW + 3
    there = use.consume if use.arrived is None else min(use.arrived, use.consume)
    arrived = "not known" if use.arrived is None else f"cycle {use.arrived:,.0f}"
    tip = (
        f"use {use.k}: issued at cycle {use.issue:,.0f}, arrived {arrived}, used from "
        f"{use.consume:,.0f} to {use.done:,.0f}; the consumer waited {use.waited:,.0f}"
    )
    _bar(svg, chart, y, (use.issue, there), ("wait", "load-edge"), f"{use.k}", tip, dash="3 2")
    _bar(svg, chart, y, (there, use.consume), ("good", "good-edge"), "", tip)
    _bar(svg, chart, y, (use.consume, use.done), ("compute", "compute-edge"), f"{use.k}", tip)


def _consumer(svg: Svg, chart: _Chart, use: TimedUse, y: float) -> None:
    tip = f"use {use.k}: the consumer waits {use.waited:,.0f} cycles"
    _bar(svg, chart, y, (use.asked, use.consume), ("gap", "muted"), "wait", tip)
    # A slot may be given back one iteration later than its work ends: the next wait parts them.
    tip = f"use {use.k} is worked on"
    _bar(svg, chart, y, (use.consume, use.busy_until), ("compute", "compute-edge"),
         f"use {use.k}", tip)  # fmt: skip


def _bar(
    svg: Svg, chart: _Chart, y: float, span: tuple[float, float], paint: tuple[str, str],
    label: str, tip: str, dash: str = "",
) -> None:  # fmt: skip
    start, end = chart.x(span[0]), chart.x(span[1])
    width = end - start
    if width < 0.3:
        return
    svg.rect(start, y, width, BOX, paint[0], paint[1], radius=2, title=tip, dash=dash)
    if width > 7 * len(label) + 4:
        svg.label(start + width / 2, y + 16, label, size=11, width=width)
