"""Draws a RooflineView: logarithmic axes, the roof, points told apart by number and shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilelab.views.measure import wrapped
from tilelab.views.svg import Svg

if TYPE_CHECKING:
    from tilelab.views.roofline import Point, RooflineView

LEFT, TOP, WIDTH, HEIGHT = 84, 92, 620, 320
FRAME = LEFT + WIDTH + 40
HEAD = 24  # the roof's own label stands above the highest decade
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
    words = [line for k, point in enumerate(view.points, 1)
             for line in wrapped(_words(view, point, k), FRAME - 48, 12)]  # fmt: skip
    height = TOP + HEIGHT + 60 + 18 * len(words)
    svg = Svg(f"roofline-{view.target}", FRAME, height, view.title, view.to_text())
    svg.heading(view.title)
    peaks = f"{view.peak_flops / 1e12:.4g} TFLOP/s, {view.peak_bytes / 1e12:.3g} TB/s"
    svg.sub(peaks)
    _axes(svg, top)
    roof = [10**LOW, view.ridge, 10**HIGH]
    svg.line([(_x(i), _y(view.roof(i), top)) for i in roof], "load-edge", width=2.5)
    _peaks(svg, view, top)
    places: list[tuple[float, float]] = []
    for number, point in enumerate(view.points, 1):
        _point(svg, view, point, number, top, places)
    for k, line in enumerate(words):
        svg.text(24, TOP + HEIGHT + 52 + 18 * k, line, size=12)
    return svg.render()


def _words(view: RooflineView, point: Point, number: int) -> str:
    """What the list below the picture says of a point."""
    words = f"{number}  {point.name} ({point.source}): bound by {view.bound_of(point)}"
    if point.rate is None:
        return words
    share = point.rate / view.roof(point.intensity)
    return f"{words}, {point.rate / 1e12:.4g} TFLOP/s, {share:.0%} of the roof"


def _peaks(svg: Svg, view: RooflineView, top: int) -> None:
    """Each part of the roof says what it is."""
    flat = _y(view.peak_flops, top)
    svg.text(LEFT + WIDTH - 6, flat - 8, f"tensor cores: {view.peak_flops / 1e12:.4g} TFLOP/s",
             "load-edge", size=11.5, anchor="end")  # fmt: skip
    slope = -math.degrees(math.atan2(HEIGHT / 5, WIDTH / (HIGH - LOW)))
    x, y = _x(3.0), _y(view.roof(3.0), top) - 9
    svg.text(x, y, f"memory: {view.peak_bytes / 1e12:.3g} TB/s", "load-edge", size=11.5,
             anchor="middle", rotate=slope)  # fmt: skip


def _axes(svg: Svg, top: int) -> None:
    svg.rect(LEFT, TOP - HEAD, WIDTH, HEIGHT + HEAD, "panel", "grid")
    for decade in range(LOW, HIGH + 1):
        x = _x(10**decade)
        svg.line([(x, TOP - HEAD), (x, TOP + HEIGHT)], "grid")
        svg.text(x, TOP + HEIGHT + 16, f"{10.0**decade:g}", "muted", size=11, anchor="middle")
    for decade in range(top - 5, top + 1):
        y = _y(10.0**decade, top)
        svg.line([(LEFT, y), (LEFT + WIDTH, y)], "grid")
        label = f"{10.0 ** (decade - 12):g}"
        svg.text(LEFT - 8, y + 4, label, "muted", size=11, anchor="end")
    middle = LEFT + WIDTH / 2
    svg.text(middle, TOP + HEIGHT + 32, "operations for each byte", "muted", anchor="middle")
    svg.text(22, TOP + HEIGHT / 2, "TFLOP/s", "muted", anchor="middle", rotate=-90)


def _point(
    svg: Svg, view: RooflineView, point: Point, number: int, top: int,
    places: list[tuple[float, float]],
) -> None:  # fmt: skip
    """A dot at the place, its number beside it; numbers of near points stand side by side.
    `places` are those of the numbers so far."""
    x = _x(point.intensity)
    bound = _y(view.roof(point.intensity), top)
    y = bound if point.rate is None else _y(point.rate, top)
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
