"""Widgets of a simulated run: its accesses, its timeline step by step, its place on a roofline.

Hides how a report's records become what a reader steps through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tilelab.errors import TileValueError
from tilelab.kernel import JITKernel
from tilelab.sim import SimReport
from tilelab.sim.counters import Access
from tilelab.target import TARGETS
from tilelab.views import AccessView, View, access_view, source_view
from tilelab.views.roofline import Point, RooflineView, point_of, roofline_view
from tilelab.views.timeline import TimelineView, timeline_views
from tilelab.widgets.panel import wish


class AccessPanel:
    """Each access of a run: the worst request of a warp, wavefront by wavefront."""

    script: ClassVar[str] = "accesses"

    def __init__(self, report: SimReport) -> None:
        found = [a for k in report.counters for line in k.lines.values() for a in line.accesses]
        self.accesses = sorted((a for a in found if a.example), key=lambda a: -a.ratio)
        if not self.accesses:
            raise TileValueError(
                "this run has no access of single lanes to look at",
                code="TL1711",
                hint="TMA and wgmma move whole tiles; look at a kernel with loads of its own",
            )
        self.name, self.chosen = report.name, 0

    def state(self) -> dict[str, Any]:
        """The accesses, the worst first, and the chosen one's picture."""
        view = self._view(self.chosen)
        return {
            "title": f"Accesses of {self.name}",
            "names": [_access_name(a) for a in self.accesses],
            "chosen": self.chosen,
            "verdict": view.verdict(),
            "good": self.accesses[self.chosen].ratio <= 1,
            "svg": view.to_svg(),
            "text": view.to_text(),
            "head": ["access", "bytes a lane", "units", "ideal", "ratio", "worst", "estimated"],
            "rows": [
                [_access_name(a), a.width, a.units, a.ideal, round(a.ratio, 2), a.worst or "-",
                 "yes" if a.estimated else "no"]
                for a in self.accesses
            ],
        }  # fmt: skip

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"access": number}"""
        self.chosen = wish(request, "access", tuple(range(len(self.accesses))))

    def twins(self) -> tuple[View, ...]:
        """The picture of the chosen access."""
        return (self._view(self.chosen),)

    def _view(self, number: int) -> AccessView:
        access = self.accesses[number]
        return access_view(
            access.example, access.width, space=access.space, buffer=access.buffer,
            what="read of" if access.what == "read" else "write to",
            line=access.loc.line if access.loc else None, load=access.merges,
        )  # fmt: skip


def _access_name(access: Access) -> str:
    where = f"line {access.loc.line}: " if access.loc else ""
    return f"{where}{access.buffer} {access.what} ({access.space}), {access.ratio:.3g}x"


class PlayerPanel:
    """The modelled run of one block, step by step; findings mark their lines."""

    script: ClassVar[str] = "player"

    def __init__(self, kernel: JITKernel, inputs: Sequence[Any]) -> None:
        self.kernel, self.inputs = kernel, tuple(inputs)
        self.report: SimReport = kernel.simulate(*self.inputs)
        self.block = self.report.block

    def state(self) -> dict[str, Any]:
        """Lanes and spans of each kernel of the run, the source lines, and the findings."""
        return {
            "title": f"Simulation of {self.kernel.name}",
            "headline": self.report.headline(),
            "block": self.block,
            "blocks": self.report.blocks,
            "kernels": [_played(view) for view in self._views()],
            "source": self._source(),
            "findings": [_found(f) for f in self.report.findings],
        }

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"block": number}: time another block (the kernel is simulated again)."""
        block = wish(request, "block", tuple(range(max(self.report.blocks, 1))))
        self.report = self.kernel.simulate(*self.inputs, timeline_block=block)
        self.block = block

    def twins(self) -> tuple[View, ...]:
        """The timelines."""
        return tuple(self._views())

    def _views(self) -> list[TimelineView]:
        return timeline_views(self.report)

    def _source(self) -> list[list[Any]]:
        view = source_view(self.kernel.source, self.kernel.prim_func.loc)
        return [[line.number, line.text] for line in view.python]


def _played(view: TimelineView) -> dict[str, Any]:
    return {
        "headline": view.headline(),
        "cycles": view.cycles,
        "lanes": list(view.lanes),
        "spans": [
            [s.lane, s.what, s.start, s.end, s.label, s.stage, s.line, s.times] for s in view.spans
        ],
        "head": ["track", "busy with", "cycles"],
        "rows": [[lane, what, round(cycles)] for lane, what, cycles in view.busy()],
    }


def _found(finding: Any) -> dict[str, Any]:
    return {
        "text": f"{finding.code}: {finding.message}",
        "line": finding.loc.line if finding.loc else None,
        "hint": finding.hint,
        "where": str(finding),
    }


class RooflinePanel:
    """The kernel's bound and its point, under the roof of a chosen chip."""

    script: ClassVar[str] = "roofline"

    def __init__(self, kernel: JITKernel, inputs: Sequence[Any], *, seconds: float | None = None,
                 peers: Sequence[Point] = ()) -> None:  # fmt: skip
        report = kernel.simulate(*inputs)
        self.target = kernel.target.name if kernel.target.name in TARGETS else next(iter(TARGETS))
        own = point_of(report, inputs, seconds=seconds)
        self.points = (own, *peers)

    def state(self) -> dict[str, Any]:
        """The picture and its text."""
        view = self._view()
        return {
            "title": view.title,
            "target": self.target,
            "targets": list(TARGETS),
            "svg": view.to_svg(),
            "text": view.to_text(),
        }

    def answer(self, request: Mapping[str, Any]) -> None:
        """{"target": name}"""
        self.target = wish(request, "target", tuple(TARGETS))

    def twins(self) -> tuple[View, ...]:
        """The roofline."""
        return (self._view(),)

    def _view(self) -> RooflineView:
        return roofline_view(self.points, TARGETS[self.target])
