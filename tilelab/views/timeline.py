"""The modelled timeline of a simulated block as a view: who is busy when, in cycles.

Hides how copies of one tile become one span, and how events too short to be seen are joined, so
that a picture of a long run stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tilelab.sim import Event, SimReport
from tilelab.sim.timeline import ENGINES, TENSOR_CORES
from tilelab.sim.trace import INSTANT, order, tracks
from tilelab.views import timeline_svg
from tilelab.views.base import View, register
from tilelab.views.table import table

MAX_SPANS = 1000
COPYING = frozenset(ENGINES) - {TENSOR_CORES}
CLASSES = {
    "tma load": "copy", "cp.async": "copy", "load": "copy", "tma store": "store", "store": "store",
    "wgmma": "products", "mma": "products", "simt": "arithmetic", "shared": "shared memory",
    "sync": "wait", "wait": "wait",
}  # fmt: skip
"""Kind of an event -> what the picture calls it."""


@dataclass(frozen=True)
class Span:
    """From `start` to `end` (cycles) lane `lane` is busy with `what`; `times` events in one."""

    lane: int
    what: str
    start: float
    end: float
    label: str = ""
    stage: int | None = None
    line: int | None = None
    times: int = 1


@dataclass(frozen=True)
class StageRow:
    """Copies of one stage (None: all): cycles in flight, and the share of them beside compute."""

    stage: int | None
    copies: int
    in_flight: float
    share: float


@register
@dataclass(frozen=True)
class TimelineView(View):
    """One kernel's modelled timeline. `lanes`: roles, then engines. `axis`: cycles that the
    picture has room for, where another run beside it is longer."""

    kind: ClassVar[str] = "timeline"
    kernel: str
    block: int
    cycles: float
    microseconds: float
    lanes: tuple[str, ...]
    spans: tuple[Span, ...]
    stages: tuple[StageRow, ...]
    axis: float = 0.0

    @property
    def end(self) -> float:
        """The cycle at which the run ends."""
        return self.cycles

    def headline(self) -> str:
        """One sentence: how long, and how much of the copies is hidden."""
        text = f"{self.cycles:,.0f} cycles ({self.microseconds:.2f} us), modelled"
        copies = self.stages[0] if self.stages else None
        if copies is not None and copies.copies:
            text += f"; {copies.share:.0%} of the copies' time in flight lies beside compute"
        return text

    def busy(self) -> list[tuple[str, str, float]]:
        """(lane, what, cycles) of every lane, in order."""
        found: dict[tuple[int, str], float] = {}
        for span in self.spans:
            key = (span.lane, span.what)
            found[key] = found.get(key, 0.0) + span.end - span.start
        return [(self.lanes[lane], what, found[lane, what]) for lane, what in sorted(found)]

    def to_text(self) -> str:
        """The lanes' busy cycles, and the copies of each stage."""
        rows = [(lane, what, f"{n:,.0f}", f"{n / max(self.cycles, 1):.0%}")
                for lane, what, n in self.busy()]  # fmt: skip
        text = f"{self.title}: {self.headline()}\n"
        text += table(("track", "busy with", "cycles", "share"), rows)
        stages = [
            ("all" if s.stage is None else s.stage, s.copies, f"{s.in_flight:,.0f}",
             f"{s.share:.0%}")
            for s in self.stages if s.copies
        ]  # fmt: skip
        if stages:
            text += "\n" + table(("stage", "copies", "cycles in flight", "beside compute"), stages)
        return text

    def to_svg(self) -> str:
        return timeline_svg.draw(self)


def timeline_views(report: SimReport) -> list[TimelineView]:
    """A view of each kernel that a report has events of."""
    kernels = list(dict.fromkeys(e.kernel for e in report.events))
    return [_view(report, k, [e for e in report.events if e.kernel == k]) for k in kernels]


def _view(report: SimReport, kernel: str, events: list[Event]) -> TimelineView:
    placed, times = _together([e for e in events if e.kind not in INSTANT])
    lanes = tracks(placed)
    numbers = {lane: i for i, lane in enumerate(order(lanes))}
    cycles = max((e.end for e in events), default=0.0)
    spans = [
        Span(numbers[lane], CLASSES[e.kind], e.start, e.end, e.name or e.kind, e.stage,
             None if e.loc is None else e.loc.line, n)
        for e, lane, n in zip(placed, lanes, times, strict=True)
    ]  # fmt: skip
    rows = [StageRow(o.stage, o.copies, o.in_flight, o.share) for o in report.overlaps()]
    return TimelineView(
        f"Timeline of {kernel}, block {report.block}", kernel, report.block, cycles,
        cycles / report.clock_hz * 1e6,
        tuple(f"{track} {n + 1}" if n else track for track, n in numbers), _joined(spans, cycles),
        tuple(rows),
    )  # fmt: skip


def _together(events: Sequence[Event]) -> tuple[list[Event], list[int]]:
    """Events by time, and how many each stands for: copies that fill one slot, issued before the
    first of them has arrived, are one."""
    found: list[Event] = []
    times: list[int] = []
    filling: dict[tuple[Any, ...], tuple[int, float]] = {}
    for event in sorted(events, key=lambda e: (e.start, e.end)):
        key = (event.track, event.kind, event.role, event.loc, event.stage, event.name)
        at, arrival = filling.get(key, (0, 0.0))
        if event.track in COPYING and event.start < arrival:
            found[at] = replace(found[at], end=max(found[at].end, event.end))
            times[at] += 1
            continue
        filling[key] = (len(found), event.end)
        found.append(event)
        times.append(1)
    return found, times


def _joined(spans: Sequence[Span], cycles: float) -> tuple[Span, ...]:
    """At most about MAX_SPANS: neighbours of one kind with small gaps between them become one."""
    gap = 0.0
    found = list(spans)
    while len(found) > MAX_SPANS:
        gap = 2 * gap or cycles / 4000
        found = _with_gaps(spans, gap)
    return tuple(found)


def _with_gaps(spans: Sequence[Span], gap: float) -> list[Span]:
    last: dict[int, int] = {}
    out: list[Span] = []
    for span in spans:
        at = last.get(span.lane)
        before = None if at is None else out[at]
        if at is None or before is None or not _joins(before, span, gap):
            last[span.lane] = len(out)
            out.append(span)
            continue
        # The longer of the two names the picture's span.
        longer = span if span.end - span.start > before.end - before.start else before
        out[at] = Span(span.lane, longer.what, before.start, span.end, longer.what,
                       times=before.times + 1)  # fmt: skip
    return out


def _joins(before: Span, span: Span, gap: float) -> bool:
    near = span.start - before.end <= gap
    short = span.end - span.start <= gap or before.end - before.start <= gap
    return near and (before.what == span.what or short)
