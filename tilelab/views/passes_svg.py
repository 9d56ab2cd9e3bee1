"""Draws a PassesView: a numbered row for each pass, its notes beneath."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.measure import wrapped
from tilelab.views.svg import Svg

if TYPE_CHECKING:
    from tilelab.views.passes import NoteRow, PassesView, PassRow

WIDTH, TOP, ROW, NOTE = 880, 66, 30, 17
NAME, CAPTION, SAME, NOTES = 62, 232, 110, 80  # left edges; room for "changed nothing"


def _lines(note: NoteRow) -> list[str]:
    where = f" (line {note.line})" if note.line else ""
    mark = "Warning: " if note.level == "warning" else ""
    return wrapped(mark + note.text + where, WIDTH - NOTES - 24, 12)


def _caption(row: PassRow) -> list[str]:
    room = WIDTH - CAPTION - 24 - (0 if row.changed else SAME)
    return wrapped(row.caption, room, 12) or [""]


def draw(view: PassesView) -> str:
    """The picture of a compilation as SVG text."""
    notes = sum(len(_lines(n)) for p in view.passes for n in p.notes)
    more = sum(len(_caption(p)) - 1 for p in view.passes)
    height = TOP + ROW * len(view.passes) + NOTE * (notes + more) + 16
    svg = Svg("passes", WIDTH, height, view.title, view.summary())
    svg.heading(f"{view.title}: {view.summary()}")
    y = float(TOP)
    for number, row in enumerate(view.passes, 1):
        fill, edge = ("load", "load-edge") if row.changed else ("panel", "grid")
        svg.rect(24, y - 4, 26, 22, fill, edge, radius=11)
        svg.text(37, y + 11, str(number), size=11, anchor="middle")
        svg.label(NAME, y + 11, row.name, size=12.5, bold=True, width=CAPTION - NAME - 6,
                  anchor="start")  # fmt: skip
        for k, line in enumerate(_caption(row)):
            svg.text(CAPTION, y + 11 + NOTE * k, line, "muted", size=12)
        if not row.changed:
            svg.text(WIDTH - 24, y + 11, "changed nothing", "muted", size=11, anchor="end")
        y += ROW + NOTE * (len(_caption(row)) - 1)
        for note in row.notes:
            role = "bad-edge" if note.level == "warning" else "ink"
            for k, line in enumerate(_lines(note)):
                if not k:
                    svg.text(NOTES - 14, y + 6, "–", role)
                svg.text(NOTES, y + 6, line, role, size=12)
                y += NOTE
    return svg.render()
