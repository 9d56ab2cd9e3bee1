"""Where the times of a schedule come from: nowhere (the plan alone), or the simulator.

Hides which inputs a run gets, and how its events are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelab.errors import TileValueError
from tilelab.kernel import JITKernel
from tilelab.views import ScheduleView, schedule_views

PLAN = "plan"
Run = Callable[[JITKernel, Sequence[Any]], list[ScheduleView]]


def _none(kernel: JITKernel, inputs: Sequence[Any]) -> list[ScheduleView]:
    return []


def modelled(kernel: JITKernel, inputs: Sequence[Any] = ()) -> list[ScheduleView]:
    """The schedules of a run on the simulator. inputs: the kernel's arguments, on the CPU
    (default: random ones). TileValueError (TL1711) where nothing runs ahead."""
    report = kernel.simulate(*(inputs or kernel.get_profiler().make_inputs()))
    return told(kernel, schedule_views(
        kernel.trace.pipelines, report.events, source="modelled", block=report.block,
        clock_hz=report.clock_hz,
    ))  # fmt: skip


def told(kernel: JITKernel, found: list[ScheduleView]) -> list[ScheduleView]:
    """`found`, which must not be empty."""
    if not found:
        raise TileValueError(
            f"no load of {kernel.name} runs ahead in whole uses of a slot, so that none has times",
            code="TL1711",
            hint="tilelab.widgets.player(kernel, ...) shows the run of any kernel",
        )
    return found


TIMES = {PLAN: "the plan alone", "modelled": "modelled, by the simulator"}
RUNS: dict[str, Run] = {PLAN: _none, "modelled": modelled}
"""How the times of each kind are had."""
