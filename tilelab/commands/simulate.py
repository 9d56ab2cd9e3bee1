"""The simulator's reports of a run as one text: what was found, and what was counted."""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.runtime.reports import Timed
from tilelab.sim import Finding, SimReport
from tilelab.views.table import plural


def findings(heard: Sequence[Timed]) -> list[Finding]:
    """Everything that the simulated calls of a run found."""
    return [found for report in heard if isinstance(report, SimReport) for found in report.findings]


def summary(heard: Sequence[Timed]) -> str:
    """What each simulated call of a run was, and every finding with its place."""
    lines: list[str] = []
    for report in heard:
        if isinstance(report, SimReport):
            count = len(report.findings)
            found = plural(count, "finding") if count else "nothing found"
            size, took = plural(report.blocks, "block"), f"simulated in {report.seconds:.2f} s"
            modelled = f"{1e3 * report.modelled_ms:.1f} us modelled at best"
            lines.append(f"call {len(lines) + 1}: {found} ({size}, {took}, {modelled})")
    if not lines:
        return "no kernel ran on the simulator"
    return "\n".join([*lines, *(_indented(str(found)) for found in findings(heard))])


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
