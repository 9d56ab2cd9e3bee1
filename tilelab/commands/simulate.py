"""The simulator's reports of a run as one text: what was found, and what was counted."""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.runtime.model import TimedReport
from tilelab.runtime.reports import Timed
from tilelab.views.table import plural


def simulated(reports: Sequence[Timed]) -> list[TimedReport]:
    """The reports of the simulator among those that were heard."""
    return [report for report in reports if isinstance(report, TimedReport)]


def summary(reports: Sequence[TimedReport]) -> str:
    """What each simulated call was, and every finding with its place."""
    if not reports:
        return "no kernel ran on the simulator"
    lines: list[str] = []
    for number, report in enumerate(reports, 1):
        found = plural(len(report.findings), "finding") if report.findings else "nothing found"
        size = plural(report.blocks, "block")
        modelled = f"{1e3 * report.modelled_ms:.1f} us modelled at best"
        took = f"simulated in {report.seconds:.2f} s"
        lines.append(f"call {number}: {found} ({size}, {took}, {modelled})")
        lines += [_indented(str(finding)) for finding in report.findings]
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
