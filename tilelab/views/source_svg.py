"""Draws a SourceView: two numbered texts with bands between lines that belong together."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from tilelab.views.measure import cut, width_of
from tilelab.views.svg import Svg, number
from tilelab.views.table import plural

if TYPE_CHECKING:
    from tilelab.views.source import Line, SourceView

LINE, TOP, SIZE = 15, 78, 11
ADVANCE = width_of("0", SIZE, mono=True)
LEFT_COLUMNS, RIGHT_COLUMNS, BRIDGE = 64, 100, 70
GUTTER = 34
ROLES = ("load", "compute", "other", "good", "barrier")


def draw(view: SourceView) -> str:
    """The picture of both texts as SVG text."""
    left_x = 24.0
    right_x = left_x + GUTTER + LEFT_COLUMNS * ADVANCE + BRIDGE
    width = right_x + GUTTER + RIGHT_COLUMNS * ADVANCE + 24
    height = TOP + LINE * max(len(view.python), len(view.cuda)) + 20
    desc = (f"{plural(len(view.python), 'line')} of Python on the left, "
            f"{plural(len(view.cuda), 'line')} of CUDA on the right")  # fmt: skip
    svg = Svg(f"source-{view.file}", width, height, view.title, desc)
    svg.heading(view.title)
    svg.label(left_x + GUTTER, TOP - 18, f"Python: {view.file}", "muted", size=12, bold=True,
              width=LEFT_COLUMNS * ADVANCE, anchor="start")  # fmt: skip
    svg.text(right_x + GUTTER, TOP - 18, "CUDA", "muted", size=12, bold=True)
    with svg.group('opacity="0.8"'):
        _bands(svg, view, left_x, right_x, width - 24)
    offset = _indent(view.python)
    _text(svg, view.python, left_x, LEFT_COLUMNS, offset)
    _text(svg, view.cuda, right_x, RIGHT_COLUMNS, 0)
    return svg.render()


def _indent(lines: tuple[Line, ...]) -> int:
    """Spaces that all lines begin with."""
    joined = "\n".join(line.text for line in lines)
    longest = max((len(line.text) for line in lines), default=0)
    return longest - max((len(t) for t in textwrap.dedent(joined).split("\n")), default=0)


def _text(svg: Svg, lines: tuple[Line, ...], x: float, columns: int, offset: int) -> None:
    for k, line in enumerate(lines):
        y = TOP + LINE * k + 11
        svg.text(x + GUTTER - 8, y, str(line.number), "muted", size=10, anchor="end", mono=True)
        text = line.text[offset:].rstrip()
        shown = cut(text, columns * ADVANCE, SIZE, mono=True)
        if shown:
            svg.text(x + GUTTER, y, shown, size=SIZE, mono=True)


def _bands(svg: Svg, view: SourceView, left: float, right: float, end: float) -> None:
    """A tint behind each linked Python line and behind the runs of its CUDA lines."""
    python = {line.number: k for k, line in enumerate(view.python)}
    cuda = {line.number: k for k, line in enumerate(view.cuda)}
    edge = left + GUTTER + LEFT_COLUMNS * ADVANCE
    linked = sorted({k.python for k in view.links if k.python in python})
    taken: set[int] = set()
    for order, line in enumerate(linked):
        role = ROLES[order % len(ROLES)]
        y = TOP + LINE * python[line]
        svg.rect(left + GUTTER - 4, y, edge - left - GUTTER + 4, LINE, role)
        mine = [n for n in view.cuda_of(line) if n in cuda and n not in taken]
        taken.update(mine)
        for first, last in _runs([cuda[n] for n in mine]):
            top, bottom = TOP + LINE * first, TOP + LINE * (last + 1)
            svg.rect(right + GUTTER - 4, top, end - right - GUTTER + 4, bottom - top, role)
            svg.path(_ribbon(edge, y, right + GUTTER - 4, top, bottom), fill=role)


def _ribbon(x0: float, y0: float, x1: float, top: float, bottom: float) -> str:
    middle = number((x0 + x1) / 2)
    a, b = number(y0), number(y0 + LINE)
    return (
        f"M{number(x0)} {a}C{middle} {a} {middle} {number(top)} {number(x1)} {number(top)}"
        f"V{number(bottom)}C{middle} {number(bottom)} {middle} {b} {number(x0)} {b}z"
    )


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for n in sorted(numbers):
        if runs and n == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], n)
        else:
            runs.append((n, n))
    return runs
