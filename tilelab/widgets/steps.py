"""What a comparison draws beside its modelled times: measured gains, and the times of slots.

Hides how a benchmark's ladder is read, and how two pictures of time come to one scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilelab.errors import TileValueError
from tilelab.sim import SimReport
from tilelab.views import ScheduleView, TimelineView, View, schedule_views
from tilelab.views.compiled import Compiled
from tilelab.views.report import memory_views
from tilelab.views.variants import facts

TIMED = (TimelineView, ScheduleView)


@dataclass(frozen=True)
class Gains:
    """How many times as fast as the first step each step is, by its name, and where that was
    measured."""

    times: Mapping[str, float]
    remark: str


def measured(rows: Sequence[Mapping[str, Any]], name: str) -> Gains:
    """The gains of a measured ladder: rows of `tilelab bench ladder --json FILE` whose names begin
    with `name`. TileValueError (TL1716) for none, or for rows of several kernels."""
    found = [r for r in rows if str(r["name"]).startswith(name) and "to step before" in r["values"]]
    kernels = list(dict.fromkeys(str(r["name"]).split(": ")[0] for r in found))
    if len(kernels) != 1:
        have = dict.fromkeys(
            str(r["name"]).split(": ")[0] for r in rows if "to step before" in r["values"]
        )
        raise TileValueError(
            f"row={name!r} names {'several ladders' if kernels else 'no ladder'} of the file",
            code="TL1716",
            hint="one of: " + "; ".join(have)
            if have
            else "make one with: tilelab bench ladder --json FILE",
        )
    times = {str(r["name"]).split(": ", 1)[1]: r["values"]["to textbook"] for r in found}
    first, last = (f"{found[k]['values']['tilelab']:.0f}" for k in (0, -1))
    remark = (
        f"measured: {kernels[0]} on {found[0]['machine']}, {found[0]['date']}: {first} "
        f"{found[0]['unit']} at first, {last} with all steps."
    )
    return Gains(times, remark)


def room(kernel: Compiled) -> str:
    """What a kernel takes of a multiprocessor, and how many blocks of it one holds: what the times
    of a single block leave out."""
    budgets = memory_views(
        kernel.program, kernel.source.kernel_names, kernel.trace, kernel.resources
    )
    return f"{facts(kernel)}: {'; '.join(view.verdict() for view in budgets)}"


def schedules(kernel: Compiled, report: SimReport) -> list[ScheduleView]:
    """The times of a run's slots."""
    return schedule_views(kernel.trace.pipelines, report.events, source="modelled",
                          block=report.block, clock_hz=report.clock_hz)  # fmt: skip


def on_one_axis(sides: Sequence[Sequence[View]]) -> list[list[View]]:
    """The views, those of times with axes of one length: the shorter run is the shorter picture."""
    most = max((v.end for side in sides for v in side if isinstance(v, TIMED)), default=0.0)
    return [
        [replace(v, axis=most) if isinstance(v, TIMED) else v for v in side] for side in sides
    ]  # fmt: skip
