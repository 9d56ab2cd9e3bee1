"""Rows of measurements, as text, markdown and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured thing: values by column name. None: not measured here."""

    name: str
    unit: str
    values: dict[str, float | None]
    bound: float | None = None  # roofline, in the same unit
    note: str = ""
    spreads: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """Tenth and ninetieth percentile of some columns."""
    flops: float | None = None
    moved: float | None = None
    """The row's work: operations, and bytes of all inputs and outputs once. None: not counted."""

    def cell(self, column: str) -> str:
        """The value as text, with its spread where one is known."""
        text = _number(self.values.get(column))
        if text and column in self.spreads:
            low, high = self.spreads[column]
            text += f" [{low:.2f}-{high:.2f}]"
        return text


@dataclass
class Table:
    """Rows of one suite, and what they were measured on."""

    suite: str
    command: str
    date: str
    machine: str
    rows: list[Row] = field(default_factory=list[Row])

    def columns(self) -> list[str]:
        """Every column that some row has a value in, in the order of first appearance."""
        seen = dict.fromkeys(name for row in self.rows for name in row.values)
        return [c for c in seen if any(row.values.get(c) is not None for row in self.rows)]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def cells(self) -> list[list[str]]:
        """Header and rows as text."""
        columns = self.columns()
        out = [["", "unit", *columns, "bound", "note"]]
        for row in self.rows:
            values = [row.cell(c) for c in columns]
            out.append([row.name, row.unit, *values, _number(row.bound), row.note])
        return out

    def to_text(self) -> str:
        """Aligned columns for a terminal."""
        cells = self.cells()
        widths = [max(len(r[i]) for r in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in cells]
        head = f"{self.suite}: {self.machine}, {self.date}"
        return "\n".join([head, *(line.rstrip() for line in lines)])

    @property
    def heading(self) -> str:
        """The first line of its section."""
        return f"## {self.suite}"

    def to_markdown(self) -> str:
        """A section of docs/benchmarks.md."""
        cells = self.cells()
        body = ["| " + " | ".join(r) + " |" for r in cells]
        rule = "|" + "---|" * len(cells[0])
        head = f"{self.heading}\n\n`{self.command}` on {self.machine}, {self.date}\n"
        return "\n".join([head, body[0], rule, *body[1:], ""])


def _number(value: float | None) -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"
