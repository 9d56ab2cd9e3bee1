"""Draws a PassesView: a numbered row for each pass, its notes beneath."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from tilelab.views.svg import Svg

if TYPE_CHECKING:
    from tilelab.views.passes import NoteRow, PassesView

WIDTH, TOP, ROW, NOTE = 880, 66, 30, 17


def _lines(note: NoteRow) -> list[str]:
    where = f" (line {note.line})" if note.line else ""
    mark = "Warning: " if note.level == "warning" else ""
    return textwrap.wrap(mark + note.text + where, 118)


def draw(view: PassesView) -> str:
    """The picture of a compilation as SVG text."""
    notes = sum(len(_lines(n)) for p in view.passes for n in p.notes)
    height = TOP + ROW * len(view.passes) + NOTE * notes + 16
    svg = Svg("passes", WIDTH, height, view.title, view.summary())
    svg.heading(f"{view.title}: {view.summary()}")
    y = float(TOP)
    for number, row in enumerate(view.passes, 1):
        fill, edge = ("load", "load-edge") if row.changed else ("panel", "grid")
        svg.rect(24, y - 4, 26, 22, fill, edge, radius=11)
        svg.text(37, y + 11, str(number), size=11, anchor="middle")
        svg.text(62, y + 11, row.name, size=12.5, bold=True)
        svg.text(232, y + 11, row.caption, "muted", size=12)
        if not row.changed:
            svg.text(WIDTH - 24, y + 11, "changed nothing", "muted", size=11, anchor="end")
        y += ROW
        for note in row.notes:
            role = "bad-edge" if note.level == "warning" else "ink"
            for k, line in enumerate(_lines(note)):
                svg.text(62 if k == 0 else 74, y + 6, ("– " if k == 0 else "") + line, role,
                         size=12)  # fmt: skip
                y += NOTE
    return svg.render()
