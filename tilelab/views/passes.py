"""The passes of one compilation: what each was for, how long it took, what it decided and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilelab.passes.base import CompileTrace, Note, Step
from tilelab.views.base import View, register
from tilelab.views.passes_svg import draw
from tilelab.views.table import plural, table, wrapped


@dataclass(frozen=True)
class NoteRow:
    """One sentence of a pass; `level` is "info" or "warning"."""

    text: str
    level: str
    line: int | None


@dataclass(frozen=True)
class PassRow:
    """One pass as it ran."""

    name: str
    caption: str
    seconds: float
    changed: bool
    notes: tuple[NoteRow, ...]


@register
@dataclass(frozen=True)
class PassesView(View):
    """All passes in the order they ran."""

    kind: ClassVar[str] = "passes"
    target: str
    passes: tuple[PassRow, ...]

    @property
    def seconds(self) -> float:
        """Time of all passes together."""
        return sum(p.seconds for p in self.passes)

    def summary(self) -> str:
        """How many passes ran, and how many warned."""
        warned = sum(n.level == "warning" for p in self.passes for n in p.notes)
        noun = "pass" if len(self.passes) == 1 else "passes"
        text = f"{len(self.passes)} {noun} for {self.target}"
        return text + (f", {plural(warned, 'warning')}" if warned else "")

    def to_text(self) -> str:
        """A table of the passes, then every note with the Python line it is about."""
        rows = [
            (k + 1, p.name, f"{1000 * p.seconds:.1f}", "yes" if p.changed else "no", p.caption)
            for k, p in enumerate(self.passes)
        ]
        parts = [f"PASSES  {self.summary()}, {1000 * self.seconds:.1f} ms",
                 table(("#", "pass", "ms", "changed", "what it does"), rows)]  # fmt: skip
        for p in self.passes:
            parts += [wrapped(f"{p.name}: {note_text(n)}") for n in p.notes]
        return "\n".join(parts) + "\n"

    def to_svg(self) -> str:
        """One row a pass with its notes under it.

        Times are left out: the picture of a program is the same every time.
        """
        return draw(self)


def note_text(note: NoteRow) -> str:
    """The sentence with its line and, for a warning, the word."""
    where = f" (line {note.line})" if note.line else ""
    return ("warning: " if note.level == "warning" else "") + note.text + where


def _note(note: Note) -> NoteRow:
    return NoteRow(note.text, note.level, note.loc.line if note.loc else None)


def _row(step: Step) -> PassRow:
    return PassRow(
        step.name, step.caption, step.seconds, step.changed, tuple(_note(n) for n in step.notes)
    )


def passes_view(trace: CompileTrace) -> PassesView:
    """What the compiler did, from its trace."""
    return PassesView(
        title="What each pass did",
        target=trace.target.name,
        passes=tuple(_row(step) for step in trace.steps),
    )
