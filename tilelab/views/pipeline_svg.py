"""Draws a PipelineView: producer, slots and consumer as rows over the plan's steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.views.measure import wrapped
from tilelab.views.svg import Svg
from tilelab.views.table import bytes_text, kib, plural

if TYPE_CHECKING:
    from tilelab.views.pipeline import Iteration, OpRow, PipelineView

LEFT, CHART, WIDTH = 150, 706, 880
FACTS = 112  # where the sentences below the chart begin
TOP, ROW, BOX = 118, 36, 26

SIGNALS = {
    "tma": (
        "full: the data has arrived; the consumer waits for it",
        "empty: the slot is free again; the producer waits for it",
    ),
    "cp.async": (
        "cp.async wait and block barrier: every thread sees the slot's data",
        "block barrier: no thread reads the slot any more, it may be overwritten",
    ),
    "sync": (
        "block barrier: the copy is visible to every thread",
        "block barrier: no thread reads the slot any more",
    ),
}
FULL, EMPTY = "good-edge", "barrier-edge"


class Chart:
    """Steps to pixels, rows to pixels; knows which steps are left out."""

    def __init__(self, view: PipelineView) -> None:
        self.view = view
        self.columns = list(view.shown_steps())
        self.cell = min(CHART / max(len(self.columns), 1), 64)
        self._at = {step: k for k, step in enumerate(self.columns) if step is not None}

    def shows(self, step: int) -> bool:
        """Whether a step has a column of its own."""
        return step in self._at

    def x(self, step: int) -> float:
        """Left edge of a step; one that is left out lies in the middle of the gap."""
        if step in self._at:
            return LEFT + self._at[step] * self.cell
        if step >= self.view.steps:
            return self.right
        return LEFT + (self.columns.index(None) + 0.5) * self.cell

    def row(self, index: int) -> float:
        """Top of a row: 0 the producer, then one a slot, then the consumer."""
        return TOP + index * ROW + (10 if index else 0) + (10 if index > self.view.slots else 0)

    @property
    def right(self) -> float:
        return LEFT + len(self.columns) * self.cell

    @property
    def consumer(self) -> int:
        return self.view.slots + 1

    @property
    def bottom(self) -> float:
        return self.row(self.consumer) + ROW


def draw(view: PipelineView) -> str:
    """The picture of a planned schedule as SVG text."""
    chart = Chart(view)
    facts = _facts(view)
    height = chart.bottom + 80 + 18 * len(facts)
    takes = f" The schedule takes {view.steps} steps." if view.trip_count else ""
    desc = f"{view.headline()}.{takes} {view.reason}"
    svg = Svg(f"pipeline-{view.kernel}-{view.loop}", WIDTH, height, view.title, desc)
    headline = view.headline()
    svg.heading(headline[0].upper() + headline[1:])
    svg.sub(_sub(view))
    _grid(svg, chart)
    _rows(svg, chart)
    _arrows(svg, chart)
    for it in view.iterations:
        _iteration(svg, chart, it)
    _legend(svg, view, chart.bottom + 22)
    for k, (word, line) in enumerate(facts):
        svg.text(24, chart.bottom + 78 + 18 * k, word, "muted", size=12, bold=True)
        svg.text(FACTS, chart.bottom + 78 + 18 * k, line, size=12)
    return svg.render()


def _sub(view: PipelineView) -> str:
    flying = view.bytes_in_flight()
    ahead = (
        f"loads run {plural(view.prefetch, 'iteration')} ahead, "
        f"{kib(flying)} in flight"
        if view.prefetch else "no load runs ahead"
    )  # fmt: skip
    return f"The plan, not a measurement: one step is one iteration of the consumer; {ahead}."


def _facts(view: PipelineView) -> list[tuple[str, str]]:
    """(word, sentence) of every op, role and barrier, and the reason."""
    lines = [("copies" if o.side == "produce" else "computes", _op(o)) for o in view.ops]
    for role in view.roles:
        last = role.first_thread + role.threads - 1
        budget = f", {role.registers} registers each" if role.registers else ""
        lines.append(("role", f"{role.name}: threads {role.first_thread} to {last}{budget}"))
    for b in view.barriers:
        expect = f" and {b.expected_bytes:,} B" if b.expected_bytes else ""
        text = (
            f"{b.name}: {plural(b.count, 'mbarrier')}, each waits for "
            f"{plural(b.arrivals, 'arrival')}{expect}; arrived by {b.arrived_by}, "
            f"waited for by {b.waited_by}"
        )
        lines.append(("barrier", text))
    lines += [("why", view.reason)] if view.reason else []
    return [
        ("" if k else word, line)
        for word, sentence in lines
        for k, line in enumerate(wrapped(sentence, WIDTH - FACTS - 24, 12))
    ]


def _op(op: OpRow) -> str:
    moved = f", {bytes_text(op.num_bytes)} an iteration" if op.num_bytes else ""
    return f"{op.label}, by {op.engine}{moved}" + (f" (line {op.line})" if op.line else "")


def _phases(view: PipelineView) -> list[tuple[str, int, int]]:
    """(name, first step, last step + 1) of prologue, steady state and drain."""
    if not view.iterations:
        return []
    first = view.iterations[0].consume
    last_issue = view.iterations[-1].issue
    if view.trip_count is None:
        last_issue = view.steps - 1  # where it ends is known at run time
    spans = [("prologue", 0, first), ("steady state", first, last_issue + 1),
             ("drain", max(last_issue + 1, first), view.steps)]  # fmt: skip
    return [(name, a, b) for name, a, b in spans if b > a]


def _grid(svg: Svg, chart: Chart) -> None:
    for name, start, stop in _phases(chart.view):
        x, end = chart.x(start), chart.x(stop)
        svg.line([(x, TOP - 46), (x, chart.bottom)], "grid", dash="4 3")
        svg.line([(x + 3, TOP - 30), (end - 3, TOP - 30)], "muted", width=1.5)
        svg.label((x + end) / 2, TOP - 36, name, "muted", size=11.5, width=end - x)
    svg.text(LEFT - 10, TOP - 10, "step", "muted", size=11, anchor="end")
    for k, step in enumerate(chart.columns):
        x = LEFT + (k + 0.5) * chart.cell
        svg.text(x, TOP - 10, "…" if step is None else str(step), "muted", size=11, anchor="middle")


def _names(view: PipelineView) -> list[tuple[str, str]]:
    """(name, remark) of every row."""
    engines = {side: "/".join(dict.fromkeys(o.engine for o in view.ops if o.side == side))
               for side in ("produce", "consume")}  # fmt: skip
    roles = [r.name for r in view.roles]
    split = len(roles) > 1
    producer = next((r for r in roles if "produc" in r), "producer") if split else "all threads"
    consumer = next((r for r in roles if "consum" in r), "consumer") if split else "all threads"
    size = sum(b.bytes_per_version for b in view.buffers)
    slots = [(f"slot {s}", kib(size) if size else "") for s in range(view.slots)]
    return [
        (producer, engines["produce"] + " loads"), *slots, (consumer, engines["consume"]),
    ]  # fmt: skip


def _rows(svg: Svg, chart: Chart) -> None:
    for k, (name, remark) in enumerate(_names(chart.view)):
        y = chart.row(k)
        slot = 0 < k < chart.consumer
        fill = "panel" if slot else ""
        svg.rect(LEFT, y, chart.right - LEFT, ROW - 4, fill, "grid" if slot else "", radius=3)
        svg.label(LEFT - 10, y + 14, name, size=12, width=LEFT - 20, anchor="end")
        svg.label(LEFT - 10, y + 28, remark, "muted", size=10.5, width=LEFT - 20, anchor="end")


def _box(svg: Svg, x: float, y: float, w: float, label: str, fill: str, tip: str = "") -> None:
    svg.rect(x + 1.5, y + 3, w - 3, BOX, fill, f"{fill}-edge", radius=3, title=tip)
    svg.label(x + w / 2, y + 20, label, size=11.5, width=w - 4)


def _iteration(svg: Svg, chart: Chart, it: Iteration) -> None:
    """The load, the slot's time and the use of one iteration, as far as their steps are drawn."""
    name, cell, wide = str(it.k), chart.cell, chart.cell >= 46
    issue, consume = chart.x(it.issue), chart.x(it.consume)
    slot = chart.row(it.slot + 1)
    tip = f"iteration {name}: load issued at step {it.issue}, consumed at step {it.consume}"
    if chart.shows(it.issue):
        _box(svg, issue, chart.row(0), cell, f"load {name}" if wide else name, "load", tip)
    if consume > issue:
        span = consume - issue - 3
        svg.rect(issue + 1.5, slot + 3, span, BOX, "wait", "load-edge", radius=3, dash="3 2",
                 title=tip)  # fmt: skip
        long = f"k={name} arriving"
        label = long if len(long) * 6.2 < span else f"k={name}"
        if span > 26:
            svg.label((issue + consume) / 2, slot + 20, label, size=11, width=span)
    if chart.shows(it.consume):
        label = f"k={name}" if cell >= 40 else name
        _box(svg, consume, slot, cell, label, "compute", tip)
        label = f"use {name}" if wide else name
        _box(svg, consume, chart.row(chart.consumer), cell, label, "compute", tip)


def _arrows(svg: Svg, chart: Chart) -> None:
    """Full: from a slot down to its use. Empty: from a use up to the load that takes its slot."""
    view = chart.view
    by_k = {it.k: it for it in view.iterations}
    bottom = chart.row(chart.consumer)
    for it in view.iterations:
        if not chart.shows(it.consume):
            continue
        x = chart.x(it.consume) + 6
        top = chart.row(it.slot + 1) + BOX
        svg.line([(x, top), (x, bottom + 2)], FULL, width=1.4, arrow=True)
        after = by_k.get(it.k + view.slots)
        if after is not None and chart.shows(after.issue):
            start, end = chart.x(it.done) - 6, chart.x(after.issue) + 6
            knee = chart.row(1) - 1
            points = [(start, bottom + 4), (start, knee), (end, chart.row(0) + BOX + 4)]
            svg.line(points, EMPTY, width=1.4, dash="4 2", arrow=True)


def _legend(svg: Svg, view: PipelineView, y: float) -> None:
    full, empty = SIGNALS[view.mechanism]
    svg.line([(24, y - 4), (48, y - 4)], FULL, width=1.4, arrow=True)
    svg.text(56, y, full, FULL, size=11.5)
    if view.slots < len(view.iterations):
        svg.line([(24, y + 16), (48, y + 16)], EMPTY, width=1.4, dash="4 2", arrow=True)
        svg.text(56, y + 20, empty, EMPTY, size=11.5)
