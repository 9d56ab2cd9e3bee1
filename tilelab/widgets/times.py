"""Where the times of a schedule come from: nowhere (the plan alone), the simulator, or a GPU.

Hides which inputs a run gets, the build with stamps (`tl.stamp_schedule`), and how both kinds of
events are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelab.errors import TileRuntimeError, TileValueError
from tilelab.kernel import JITKernel
from tilelab.passes.stamp_schedule import KEY
from tilelab.runtime import driver, stamps
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


def measured(
    kernel: JITKernel, inputs: Sequence[Any] = (), *, block: int = 0
) -> list[ScheduleView]:
    """The schedules of one block of a run on the GPU: the kernel is built once more, with one
    thread a role that notes the clock around its barriers, run once to warm up and once for its
    stamps. When a load arrived is not seen by any thread, so it is left open.

    inputs: the kernel's arguments (default: random ones). TileRuntimeError (TL1717) without a GPU
    or for a block that the grid does not have, TileValueError (TL1711) where nothing runs ahead.
    """
    if driver.find() is None:
        raise TileRuntimeError(
            "times are measured on an NVIDIA GPU, and there is none here", code="TL1717",
            hint="ask for modelled times: the simulator makes them anywhere",
        )  # fmt: skip
    made = kernel.remade(pass_configs={**kernel.pass_configs, KEY: block})
    own = inputs or made.get_profiler().make_inputs()
    given = [x.cuda() if hasattr(x, "cuda") else x for x in own]
    made(*given)
    stamps.clear(made.loaded)
    made(*given)
    limits = made.trace.target.limits
    events = stamps.read(made.loaded, made.trace.stamps) if made.trace.stamps else []
    return told(kernel, schedule_views(
        made.trace.pipelines, events, source="measured", block=block, clock_hz=limits.clock_hz,
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


TIMES = {
    PLAN: "the plan alone", "modelled": "modelled, by the simulator",
    "measured": "measured, on the GPU here",
}  # fmt: skip
RUNS: dict[str, Run] = {PLAN: _none, "modelled": modelled, "measured": measured}
"""How the times of each kind are had."""
