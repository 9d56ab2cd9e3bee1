"""What a comparison draws beside its modelled ladder: a measured one, and the times of slots.

Hides how a benchmark's ladder is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilelab.errors import TileValueError
from tilelab.sim import SimReport
from tilelab.views import LadderStep, LadderView, ScheduleView, schedule_views
from tilelab.views.compiled import Compiled


def measured(rows: Sequence[Mapping[str, Any]], name: str) -> LadderView:
    """The steps of a measured ladder: rows of `tilelab bench ladder --json FILE` whose names begin
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
    steps = [
        LadderStep(str(r["name"]).split(": ", 1)[1], "", 1e3 / r["values"]["to textbook"],
                   f"{r['values']['tilelab']:.0f} {r['unit']}")
        for r in found
    ]  # fmt: skip
    remark = f"measured on {found[0]['machine']}, {found[0]['date']}"
    return LadderView(f"Steps of {kernels[0]}", kernels[0], "thousandths of the first",
                      "measured", remark, tuple(steps))  # fmt: skip


def schedules(kernel: Compiled, report: SimReport) -> list[ScheduleView]:
    """The times of a run's slots."""
    return schedule_views(kernel.trace.pipelines, report.events, source="modelled",
                          block=report.block, clock_hz=report.clock_hz)  # fmt: skip
