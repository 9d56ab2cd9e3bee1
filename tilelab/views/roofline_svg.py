"""Draws a RooflineView: logarithmic axes, the roof, points told apart by number and shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilelab.views.measure import wrapped
from tilelab.views.svg import Svg
from tilelab.views.table import percent

if TYPE_CHECKING:
    from tilelab.views.roofline import Point, RooflineView

LEFT, TOP, WIDTH, HEIGHT = 84, 92, 620, 320
FRAME = LEFT + WIDTH + 40
HEAD = 24  # the roof's own label stands above the highest decade
LEAST_DECADES, MOST_DECADES = 5, 12


@dataclass(frozen=True)
class Axes:
    """Decades of operations for each byte (`low` to `high`) and a second (`bottom` to `top`)."""

    low: int
    high: int
    bottom: int
    top: int

    def x(self, intensity: float) -> float:
        decade = min(max(math.log10(intensity), self.low), self.high)
        return LEFT + WIDTH * (decade - self.low) / (self.high - self.low)

    def y(self, rate: float) -> float:
        decade = min(max(math.log10(max(rate, 1.0)), self.bottom), self.top)
        return TOP + HEIGHT * (self.top - decade) / (self.top - self.bottom)


def _axes_of(view: RooflineView) -> Axes:
    """Decades that hold the ridge and every point, unless it lies very far away."""
    top = math.ceil(math.log10(view.peak_flops))
    places = [math.log10(p.intensity) for p in view.points]
    rates = [math.log10(max(p.rate, 1.0)) for p in view.points if p.rate is not None]
    # A little below the lowest point, so that its number does not lie on the frame.
    low = math.floor(min([-1, *(place - 0.2 for place in places)]))
    bottom = math.floor(min([top - LEAST_DECADES, *(rate - 0.2 for rate in rates)]))
    high = math.ceil(max([4, *(place + 0.2 for place in places)]))
    return Axes(max(low, high - MOST_DECADES), high, max(bottom, top - MOST_DECADES), top)


def draw(view: RooflineView) -> str:
    """The picture of a roofline as SVG text."""
    axes = _axes_of(view)
    words = [line for k, point in enumerate(view.points, 1)
             for line in wrapped(_words(view, point, k), FRAME - 48, 12)]  # fmt: skip
    height = TOP + HEIGHT + 60 + 18 * len(words)
    svg = Svg(f"roofline-{view.target}", FRAME, height, view.title, view.to_text())
    svg.heading(view.title)
    peaks = f"{view.peak_flops / 1e12:.4g} TFLOP/s, {view.peak_bytes / 1e12:.3g} TB/s"
    svg.sub(peaks)
    _frame(svg, axes)
    # From where the roof leaves the picture's bottom.
    first = max(10.0**axes.low, 10.0**axes.bottom / view.peak_bytes)
    roof = [first, view.ridge, 10.0**axes.high]
    svg.line([(axes.x(i), axes.y(view.roof(i))) for i in roof], "load-edge", width=2.5)
    _peaks(svg, view, axes)
    places: list[tuple[float, float]] = []
    for number, point in enumerate(view.points, 1):
        _point(svg, view, point, number, axes, places)
    for k, line in enumerate(words):
        svg.text(24, TOP + HEIGHT + 52 + 18 * k, line, size=12)
    return svg.render()


def _words(view: RooflineView, point: Point, number: int) -> str:
    """What the list below the picture says of a point."""
    words = f"{number}  {point.name} ({point.source}): bound by {view.bound_of(point)}"
    if point.rate is None:
        return words
    share = point.rate / view.roof(point.intensity)
    return f"{words}, {point.rate / 1e12:.4g} TFLOP/s, {percent(share)} of the roof"


def _peaks(svg: Svg, view: RooflineView, axes: Axes) -> None:
    """Each part of the roof says what it is."""
    flat = axes.y(view.peak_flops)
    svg.text(LEFT + WIDTH - 6, flat - 8, f"tensor cores: {view.peak_flops / 1e12:.4g} TFLOP/s",
             "load-edge", size=11.5, anchor="end")  # fmt: skip
    decade = HEIGHT / (axes.top - axes.bottom), WIDTH / (axes.high - axes.low)
    slope = -math.degrees(math.atan2(*decade))
    x, y = axes.x(3.0), axes.y(view.roof(3.0)) - 9
    svg.text(x, y, f"memory: {view.peak_bytes / 1e12:.3g} TB/s", "load-edge", size=11.5,
             anchor="middle", rotate=slope)  # fmt: skip


def _frame(svg: Svg, axes: Axes) -> None:
    svg.rect(LEFT, TOP - HEAD, WIDTH, HEIGHT + HEAD, "panel", "grid")
    for decade in range(axes.low, axes.high + 1):
        x = axes.x(10.0**decade)
        svg.line([(x, TOP - HEAD), (x, TOP + HEIGHT)], "grid")
        svg.text(x, TOP + HEIGHT + 16, f"{10.0**decade:g}", "muted", size=11, anchor="middle")
    for decade in range(axes.bottom, axes.top + 1):
        y = axes.y(10.0**decade)
        svg.line([(LEFT, y), (LEFT + WIDTH, y)], "grid")
        label = f"{10.0 ** (decade - 12):g}"
        svg.text(LEFT - 8, y + 4, label, "muted", size=11, anchor="end")
    middle = LEFT + WIDTH / 2
    svg.text(middle, TOP + HEIGHT + 32, "operations for each byte", "muted", anchor="middle")
    svg.text(22, TOP + HEIGHT / 2, "TFLOP/s", "muted", anchor="middle", rotate=-90)


def _point(
    svg: Svg, view: RooflineView, point: Point, number: int, axes: Axes,
    places: list[tuple[float, float]],
) -> None:  # fmt: skip
    """A dot at the place, its number beside it; numbers of near points stand side by side.
    `places` are those of the numbers so far."""
    x = axes.x(point.intensity)
    bound = axes.y(view.roof(point.intensity))
    y = bound if point.rate is None else axes.y(point.rate)
    svg.line([(x, TOP + HEIGHT), (x, bound)], "muted", dash="4 3")
    if point.rate is not None:
        svg.rect(x - 4, y - 4, 8, 8, "compute", "compute-edge", radius=4, width=2)
    aside = x + 16
    while any(abs(aside - a) < 19 and abs(y - b) < 19 for a, b in places):
        aside += 20
    places.append((aside, y))
    svg.line([(x + 4, y), (aside - 8, y)], "compute-edge")
    svg.rect(aside - 9, y - 9, 18, 18, "compute", "compute-edge", radius=9)
    svg.text(aside, y + 4.5, str(number), size=12, anchor="middle", bold=True)
