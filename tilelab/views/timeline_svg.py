"""Draws a TimelineView: lanes over cycles, one colour and one label a kind of work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.svg import Svg

if TYPE_CHECKING:
    from tilelab.views.timeline import Span, TimelineView

WIDTH, LEFT, CHART = 880, 132, 724
TOP, ROW, BOX = 96, 28, 20
PAINT = {
    "copy": "load", "store": "good", "products": "compute", "arithmetic": "other",
    "shared memory": "barrier", "wait": "gap",
}  # fmt: skip
"""What a span is busy with -> its role in the palette."""
_STEPS = (1, 2, 5)


def draw(view: TimelineView) -> str:
    """The picture as SVG text."""
    bottom = TOP + ROW * len(view.lanes)
    stages = [s for s in view.stages if s.stage is not None]
    height = bottom + 62 + 18 * len(stages)
    svg = Svg(f"timeline-{view.kernel}", WIDTH, height, view.title, view.headline())
    svg.heading(view.title)
    svg.sub(view.headline())
    length = max(view.cycles, view.axis, 1)
    scale = CHART / length
    time_axis(svg, length, LEFT, scale, (TOP, bottom), view.end)
    svg.text(LEFT - 10, TOP - 12, "cycle", "muted", size=11, anchor="end")
    for number, lane in enumerate(view.lanes):
        y = TOP + number * ROW
        svg.label(LEFT - 10, y + 16, lane, size=12, width=LEFT - 26, anchor="end")
        svg.line([(LEFT, y + ROW - 2), (LEFT + CHART, y + ROW - 2)], "grid")
    for span in view.spans:
        _span(svg, span, scale)
    _legend(svg, bottom + 28)
    for number, stage in enumerate(stages):
        text = (
            f"Stage {stage.stage}: {stage.copies} copies, {stage.in_flight:,.0f} cycles in "
            f"flight, {stage.share:.0%} of them beside compute."
        )
        svg.text(24, bottom + 56 + 18 * number, text, size=12)
    return svg.render()


def time_axis(
    svg: Svg, length: float, left: float, scale: float, rows: tuple[float, float], end: float
) -> None:  # fmt: skip
    """Round cycles above the rows (their top and bottom), and a line where a run ends before the
    axis does."""
    top, bottom = rows
    step, tick = round_step(length / 8), 0.0
    while tick <= length:
        x = left + tick * scale
        svg.line([(x, top - 6), (x, bottom)], "grid", dash="3 3")
        svg.text(x, top - 12, f"{tick:,.0f}", "muted", size=11, anchor="middle")
        tick += step
    if end < length:
        x = left + end * scale
        svg.line([(x, top - 6), (x, bottom + 4)], "ink", width=1.5)
        svg.text(x, bottom + 14, f"ends at {end:,.0f}", size=11, anchor="middle")


def round_step(least: float) -> float:
    """The round number next above `least`: 1, 2 or 5 times a power of ten."""
    power = 1.0
    while True:
        for digit in _STEPS:
            if digit * power >= least:
                return digit * power
        power *= 10


def _span(svg: Svg, span: Span, scale: float) -> None:
    x, width = LEFT + span.start * scale, max((span.end - span.start) * scale, 0.4)
    y, role = TOP + span.lane * ROW + 2, PAINT[span.what]
    edge = "muted" if role == "gap" else f"{role}-edge"
    wide = width >= 6
    svg.rect(x, y, width, BOX, role, edge if wide else "", title=_tip(span) if wide else "")
    if width > 26:
        label = span.label if span.stage is None else f"{span.label} {span.stage}"
        svg.label(x + width / 2, y + 14, label, size=10.5, width=width - 4)


def _tip(span: Span) -> str:
    stage = "" if span.stage is None else f", stage {span.stage}"
    line = "" if span.line is None else f", line {span.line}"
    times = f" ({span.times} events)" if span.times > 1 else ""
    return (
        f"{span.what}: {span.label}{stage}{line}, cycles {span.start:.0f} to {span.end:.0f}{times}"
    )


def _legend(svg: Svg, y: float) -> None:
    x = 24.0
    for what, role in PAINT.items():
        edge = "muted" if role == "gap" else f"{role}-edge"
        svg.rect(x, y - 11, 14, 14, role, edge, radius=2)
        svg.text(x + 20, y, what, size=12)
        x += 44 + 7 * len(what)
