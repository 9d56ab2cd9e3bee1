"""Pipeline timeline and shared-memory budget: pictures of a plan with sliders that re-plan it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tilelab.errors import TileError, TileValueError
from tilelab.kernel import JITKernel
from tilelab.target import TARGETS
from tilelab.views import MemoryView, PipelineView, ScheduleView, View, pipeline_view
from tilelab.views.pipeline import BARRIER_HEAD
from tilelab.views.report import memory_views
from tilelab.widgets.panel import wish
from tilelab.widgets.replan import pipelined, replanned
from tilelab.widgets.times import PLAN, RUNS, TIMES

MOST_STAGES = 8


class _Planned:
    """A kernel's plan as it stands, or as the reader last asked for it.

    `note` says in words what differs from the kernel that was compiled.
    """

    def __init__(self, kernel: JITKernel) -> None:
        self.kernel = kernel
        self.target = kernel.trace.target
        self.own_stages = max((p.num_stages for p in kernel.trace.pipelines), default=0)
        self.stages = self.own_stages
        self.planned = kernel

    def ask(self, request: Mapping[str, Any]) -> None:
        """Plan anew with {"stages": n, "target": name}; on an error of the compiler everything
        stays as it was."""
        stages = int(request.get("stages", self.stages))
        target = str(request.get("target", self.target.name))
        if not 0 <= stages <= MOST_STAGES:
            raise TileValueError(
                f"num_stages={stages} is not drawn", code="TL1711", hint=f"0 to {MOST_STAGES}"
            )
        chosen = TARGETS[wish({"target": target}, "target", tuple(TARGETS))]
        own = stages == self.own_stages and chosen.name == self.kernel.trace.target.name
        self.planned = self.kernel if own else replanned(self.kernel, stages, chosen)
        self.stages, self.target = stages, chosen

    @property
    def is_own(self) -> bool:
        """Whether this is the plan of the kernel as it was compiled."""
        return self.planned is self.kernel

    @property
    def note(self) -> str:
        if self.is_own:
            return "as compiled"
        return (
            f"what num_stages={self.stages} on {self.target.name} would give; the kernel itself "
            f"has {self.own_stages} on {self.kernel.trace.target.name}"
        )

    def controls(self) -> dict[str, Any]:
        """What the sliders and the list of chips show."""
        return {
            "stages": self.stages,
            "most_stages": MOST_STAGES,
            "target": self.target.name,
            "targets": list(TARGETS),
            "note": self.note,
        }


class TimelinePanel:
    """The planned schedule of each pipelined loop, with a slider for its stages, and the times of
    a run beside it when the reader asks for them."""

    script: ClassVar[str] = "timeline"

    def __init__(self, kernel: JITKernel, inputs: Sequence[Any] = ()) -> None:
        if not pipelined(kernel):
            raise TileValueError(
                f"{kernel.name} has no pipelined loop",
                code="TL1711",
                hint="write the loop as `for k in T.Pipelined(..., num_stages=3)`",
            )
        self._plan = _Planned(kernel)
        self._inputs = tuple(inputs)
        self._times, self._schedules = PLAN, list[ScheduleView]()

    def state(self) -> dict[str, Any]:
        """The pictures, and the same facts as tables."""
        return {
            "title": f"Pipeline of {self._plan.kernel.name}",
            **self._plan.controls(),
            "times": self._times,
            "all_times": TIMES,
            "loops": [self._loop(view) for view in self._views()],
            "schedules": [_timed(view) for view in self._schedules],
        }

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"stages": n, "target": name}, or {"times": one of TIMES}. Times follow the plan."""
        before = self._plan.stages, self._plan.target.name
        times = self._times
        if "times" in request:
            times = wish(request, "times", tuple(TIMES))
        else:
            self._plan.ask(request)
        try:
            self._schedules = RUNS[times](self._plan.planned, self._inputs)
        except TileError:
            self._plan.ask(dict(zip(("stages", "target"), before, strict=True)))
            raise
        self._times = times

    def twins(self) -> tuple[View, ...]:
        """The pipeline view of each loop, then the times where they were asked for."""
        return (*self._views(), *self._schedules)

    def _views(self) -> list[PipelineView]:
        return [pipeline_view(plan) for plan in self._plan.planned.trace.pipelines]

    def _loop(self, view: PipelineView) -> dict[str, Any]:
        return {
            "headline": view.headline(),
            "reason": view.reason,
            "in_flight": view.bytes_in_flight(),
            "svg": view.to_svg(),
            "head": ["iteration", "slot", "issued at step", "consumed at step", "free at step",
                     "phase"],
            "rows": [[i.k, i.slot, i.issue, i.consume, i.done, i.phase] for i in view.iterations],
            "barrier_head": list(BARRIER_HEAD),
            "barriers": [[b.name, b.count, b.arrivals, b.expected_bytes, b.arrived_by,
                          b.waited_by] for b in view.barriers],
        }  # fmt: skip


def _timed(view: ScheduleView) -> dict[str, Any]:
    return {
        "headline": view.headline(),
        "caption": view.caption(),
        "svg": view.to_svg(),
        "head": ["use", "slot", "issued", "arrived", "asked for", "used from", "free at", "waited"],
        "rows": [
            [u.k, u.slot, round(u.issue), "-" if u.arrived is None else round(u.arrived),
             round(u.asked), round(u.consume), round(u.done), round(u.waited)]
            for u in view.uses
        ],
    }  # fmt: skip


class BudgetPanel:
    """Shared memory by buffer and stage against a chip's limit, and the blocks that fit."""

    script: ClassVar[str] = "budget"

    def __init__(self, kernel: JITKernel) -> None:
        self._plan = _Planned(kernel)

    def state(self) -> dict[str, Any]:
        """The picture, its rows, and the verdict."""
        views = self._views()
        return {
            "title": f"Shared memory of {self._plan.kernel.name}",
            **self._plan.controls(),
            "pipelined": pipelined(self._plan.kernel),
            "kernels": [self._kernel(view) for view in views],
        }

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"stages": n, "target": name}"""
        self._plan.ask(request)

    def twins(self) -> tuple[View, ...]:
        """The memory view of each kernel."""
        return tuple(self._views())

    def _views(self) -> list[MemoryView]:
        # ptxas' registers are known for the kernel as compiled; another plan was not compiled.
        used = self._plan.kernel.resources if self._plan.is_own else {}
        names = self._plan.kernel.source.kernel_names
        return memory_views(self._plan.planned.program, names, self._plan.planned.trace, used)

    def _kernel(self, view: MemoryView) -> dict[str, Any]:
        rows = [[r.name, r.use, r.offset, r.num_bytes, r.stages, r.bytes_per_stage,
                 r.sharing()] for r in view.rows]  # fmt: skip
        return {
            "name": view.kernel,
            "verdict": view.verdict(),
            "total": view.total_bytes,
            "fits": view.total_bytes <= view.shared_per_block,
            "largest": [f"loop {f.loop}: {f.largest} stages fit" for f in view.fits],
            "svg": view.to_svg(),
            "head": [
                "buffer",
                "kind",
                "at byte",
                "bytes",
                "stages",
                "bytes a stage",
                "shares with",
            ],
            "rows": rows,
        }
