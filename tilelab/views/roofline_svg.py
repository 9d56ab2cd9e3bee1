"""Draws a RooflineView: logarithmic axes, the roof, points told apart by number and shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilelab.views.svg import Svg

if TYPE_CHECKING:
    from tilelab.views.roofline import Point, RooflineView

LEFT, TOP, WIDTH, HEIGHT = 84, 70, 620, 320
LOW, HIGH = -1, 4  # decades of flop/byte


def _x(intensity: float) -> float:
    decade = min(max(math.log10(intensity), LOW), HIGH)
    return LEFT + WIDTH * (decade - LOW) / (HIGH - LOW)


def _y(rate: float, top: int) -> float:
    decade = min(max(math.log10(max(rate, 1.0)), top - 5), top)
    return TOP + HEIGHT * (top - decade) / 5


def draw(view: RooflineView) -> str:
    """The picture of a roofline as SVG text."""
    top = math.ceil(math.log10(view.peak_flops))
    height = TOP + HEIGHT + 60 + 18 * len(view.points)
    svg = Svg(f"roofline-{view.target}", LEFT + WIDTH + 40, height, view.title, view.to_text())
    svg.text(24, 32, view.title, size=15, bold=True)
    peaks = f"{view.peak_flops / 1e12:.4g} TFLOP/s, {view.peak_bytes / 1e12:.3g} TB/s"
    svg.text(24, 52, peaks, "muted", size=12)
    _axes(svg, top)
    roof = [10**LOW, view.ridge, 10**HIGH]
    svg.line([(_x(i), _y(view.roof(i), top)) for i in roof], "load-edge", width=2.5)
    for number, point in enumerate(view.points, 1):
        _point(svg, view, point, number, top)
        words = f"{number}  {point.name} ({point.source}): bound by {view.bound_of(point)}"
        if point.rate is not None:
            share = point.rate / view.roof(point.intensity)
            words += f", {point.rate / 1e12:.4g} TFLOP/s, {share:.0%} of the roof"
        svg.text(24, TOP + HEIGHT + 52 + 18 * (number - 1), words, size=12)
    return svg.render()


def _axes(svg: Svg, top: int) -> None:
    svg.rect(LEFT, TOP, WIDTH, HEIGHT, "panel", "grid")
    for decade in range(LOW, HIGH + 1):
        x = _x(10**decade)
        svg.line([(x, TOP), (x, TOP + HEIGHT)], "grid")
        svg.text(x, TOP + HEIGHT + 16, f"{10.0**decade:g}", "muted", size=11, anchor="middle")
    for decade in range(top - 5, top + 1):
        y = _y(10.0**decade, top)
        svg.line([(LEFT, y), (LEFT + WIDTH, y)], "grid")
        label = f"{10.0 ** (decade - 12):g}"
        svg.text(LEFT - 8, y + 4, label, "muted", size=11, anchor="end")
    middle = LEFT + WIDTH / 2
    svg.text(middle, TOP + HEIGHT + 32, "operations for each byte", "muted", anchor="middle")
    svg.text(22, TOP + HEIGHT / 2, "TFLOP/s", "muted", anchor="middle", rotate=-90)


def _point(svg: Svg, view: RooflineView, point: Point, number: int, top: int) -> None:
    x = _x(point.intensity)
    bound = _y(view.roof(point.intensity), top)
    svg.line([(x, TOP + HEIGHT), (x, bound)], "muted", dash="4 3")
    if point.rate is None:
        svg.text(x + 6, bound - 6, str(number), "compute-edge", size=13, bold=True)
        return
    y = _y(point.rate, top)
    svg.rect(x - 9, y - 9, 18, 18, "compute", "compute-edge", radius=9, width=2)
    svg.text(x, y + 4.5, str(number), size=12, anchor="middle", bold=True)
