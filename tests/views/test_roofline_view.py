"""The roofline: points lie where their numbers are, however slow a kernel is or how little it
computes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tilelab.target import SM80, SM90A
from tilelab.views import roofline_view
from tilelab.views.roofline import Point
from tilelab.views.roofline_svg import HEIGHT, LEFT, TOP, WIDTH
from tilelab.views.table import percent

RECT = "{http://www.w3.org/2000/svg}rect"
POINTS = [
    Point("add", 1e3, 12e3, 3e-6, "modelled"),  # 0.083 operations a byte, 0.33 GFLOP/s
    Point("gemm", 1e12, 1e9, 2e-3, "measured"),
    Point("idle", 1e4, 1e8, 1e-4, "modelled"),
    Point("huge", 1e15, 1e9, 1.5, "a peer"),
]


@pytest.mark.parametrize("target", [SM80, SM90A])
@pytest.mark.parametrize("point", POINTS, ids=lambda p: p.name)
def test_a_point_lies_inside_at_its_place(point: Point, target: object) -> None:
    picture = roofline_view([point], target).to_svg()  # type: ignore[arg-type]
    (dot,) = [r for r in ElementTree.fromstring(picture).iter(RECT) if r.get("rx") == "4"]
    x, y = float(dot.get("x", 0)) + 4, float(dot.get("y", 0)) + 4
    assert LEFT < x < LEFT + WIDTH and TOP < y < TOP + HEIGHT


def test_shares_below_a_percent_are_numbers() -> None:
    assert [percent(s) for s in (0.5, 0.02, 0.00034, 1.0)] == ["50%", "2%", "0.034%", "100%"]
    assert "0.083% of the roof" in roofline_view(POINTS[:1], SM90A).to_svg()
