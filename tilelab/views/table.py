"""Plain text: tables with aligned columns, byte counts, wrapped notes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "  ") -> str:
    """Columns under a ruled head; columns of numbers are set to the right."""
    cells = [[str(c) for c in row] for row in rows]
    numeric = [
        bool(cells) and all(row[k][:1].isdigit() or row[k] in ("-", "") for row in cells)
        for k in range(len(head))
    ]
    widths = [max([len(h), *(len(row[k]) for row in cells)]) for k, h in enumerate(head)]

    def line(row: Sequence[str]) -> str:
        parts = [
            c.rjust(w) if right else c.ljust(w)
            for c, w, right in zip(row, widths, numeric, strict=True)
        ]
        return (indent + "  ".join(parts)).rstrip()

    ruled = [line(list(head)), indent + "  ".join("-" * w for w in widths)]
    return "\n".join(ruled + [line(row) for row in cells])


def bytes_text(count: int) -> str:
    """98,304 with a KiB figure once that is shorter to say."""
    return f"{count:,} B" if count < 1024 else f"{count:,} B ({kib(count)})"


def kib(count: int) -> str:
    """Bytes as KiB with at most one decimal."""
    value = f"{count / 1024:.1f}".removesuffix(".0")
    return f"{value} KiB"


def wrapped(text: str, indent: str = "  ", width: int = 88) -> str:
    """A sentence wrapped to terminal width."""
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


def spans(numbers: Sequence[int]) -> str:
    """Numbers as runs, in order: 12-19, 31."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in runs)


def percent(share: float) -> str:
    """`42%`, and with two digits where whole percents would say nothing: `0.034%`."""
    return f"{share:.0%}" if share >= 0.095 else f"{100 * share:.2g}%"


def plural(count: int, noun: str) -> str:
    """`3 stages`, `1 stage`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
