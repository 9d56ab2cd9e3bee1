"""The planned schedule of a pipelined loop: who does what when, in which slot, waiting on whom.

The times are steps of the plan, not measurements: a step is one iteration of the consumer.
`schedule` turns a PipelinePlan into events; the view keeps events only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from tilelab.passes.plan import BarrierPlan, PipelinePlan, PlannedOp, RolePlan
from tilelab.views.base import View, register
from tilelab.views.pipeline_svg import draw
from tilelab.views.table import plural, table, wrapped

SHOWN_STEPS = 20
UNKNOWN_TRIPS = 64  # iterations planned for when the count is known only at run time


@dataclass(frozen=True)
class OpRow:
    """One op of the loop body. `side` is "produce" or "consume"."""

    side: str
    label: str
    kind: str
    engine: str
    num_bytes: int
    line: int | None


@dataclass(frozen=True)
class SlotRow:
    """A buffer with one copy a slot."""

    buffer: str
    versions: int
    bytes_per_version: int


@dataclass(frozen=True)
class Iteration:
    """Iteration `k` in steps: its load is issued at `issue` into `slot`, must be there at
    `consume`, and the slot is free again at `done`. `phase` is "steady" while loads are still
    issued beside its use, "drain" after the last (the prologue lies before the first use)."""

    k: int
    slot: int
    issue: int
    consume: int
    done: int
    phase: str


@register
@dataclass(frozen=True)
class PipelineView(View):
    """The plan of one loop. `steps` is the length of the whole schedule; steps of `left_out`
    (first, last + 1) repeat the pattern and are not drawn, and `iterations` holds those that
    reach into the others."""

    kind: ClassVar[str] = "pipeline"
    loop: str
    kernel: str
    mechanism: str
    num_stages: int
    slots: int
    prefetch: int
    trip_count: int | None
    ops: tuple[OpRow, ...]
    roles: tuple[RolePlan, ...]
    barriers: tuple[BarrierPlan, ...]
    buffers: tuple[SlotRow, ...]
    iterations: tuple[Iteration, ...]
    steps: int
    left_out: tuple[int, int] | None
    reason: str
    line: int | None

    def headline(self) -> str:
        """One line: the loop, its stages and how it overlaps."""
        trips = "a run-time number of" if self.trip_count is None else str(self.trip_count)
        return (
            f"loop {self.loop}: {trips} iterations, {plural(self.slots, 'slot')}, "
            f"{MECHANISMS[self.mechanism]}"
        )

    def bytes_in_flight(self) -> int:
        """Bytes that are on their way at once in the steady state."""
        flying = flight(self.slots, self.prefetch) if self.prefetch else 0
        return flying * sum(o.num_bytes for o in self.ops if o.side == "produce")

    def to_text(self) -> str:
        """Headline, the ops and roles, the schedule as rows of slots, the barriers."""
        where = f"{self.kernel}, " if self.kernel else ""
        parts = [f"PIPELINE  {where}{self.headline()}"]
        if self.reason:
            parts.append(wrapped("why: " + self.reason))
        ops = [(o.side, o.label, o.engine, f"{o.num_bytes:,}" if o.num_bytes else "-",
                o.line or "-") for o in self.ops]  # fmt: skip
        parts += [table(("side", "op", "engine", "bytes", "line"), ops), "", self._chart()]
        if self.roles:
            rows = [(r.name, f"{r.first_thread}-{r.first_thread + r.threads - 1}",
                     r.registers or "-") for r in self.roles]  # fmt: skip
            parts += ["", table(("role", "threads", "registers"), rows)]
        if self.barriers:
            rows = [(b.name, b.count, b.arrivals, f"{b.expected_bytes:,}" if b.expected_bytes
                     else "-", b.arrived_by, b.waited_by) for b in self.barriers]  # fmt: skip
            parts += ["", table(BARRIER_HEAD, rows)]
        return "\n".join(parts) + "\n"

    def _chart(self) -> str:
        """One line per slot over the steps: `L3` issues the load of k=3, `.` flies, `C3` uses."""
        columns = list(self.shown_steps())
        names = [str(it.k) for it in self.iterations]
        width = max([2, *map(len, names)]) + 2
        slots = [f"slot {s}" for s in range(self.slots)]
        lines = [
            "  "
            + " " * 8
            + "".join(("…" if step is None else str(step)).ljust(width) for step in columns)
            + "step"
        ]
        for slot, name in enumerate(slots):
            cells = [("" if s is None else self._at(slot, s)).ljust(width) for s in columns]
            lines.append(f"  {name:<8}" + "".join(cells).rstrip())
        lines.append("  Lk: load of iteration k issued, ·: in flight, Ck: consumed")
        return "\n".join(lines)

    def _at(self, slot: int, step: int) -> str:
        for it in self.iterations:
            if it.slot == slot and it.issue <= step < it.done:
                if step >= it.consume:
                    return f"C{it.k}"
                return f"L{it.k}" if step == it.issue else "·"
        return ""

    def shown_steps(self) -> Iterator[int | None]:
        """Steps that are drawn, in order, with one None where some are left out."""
        start, stop = self.left_out or (self.steps, self.steps)
        yield from range(start)
        if stop > start:
            yield None
        yield from range(stop, self.steps)

    def to_svg(self) -> str:
        """Producer, slots and consumer as rows over the steps, with waits as arrows."""
        return draw(self)


MECHANISMS = {
    "tma": "TMA loads by a producer role, mbarriers between the roles",
    "cp.async": "cp.async copies ahead in the same threads",
    "sync": "copy, barrier, compute: nothing overlaps",
}
BARRIER_HEAD = ("barriers", "count", "arrivals", "bytes", "arrived by", "waited by")


def flight(slots: int, prefetch: int) -> int:
    """Steps a load is under way: one slot of the ring is being read meanwhile."""
    return max(1, min(prefetch, slots - 1))


def schedule(trips: int, slots: int, prefetch: int) -> list[Iteration]:
    """Steps of every iteration: one issue and one consumption a step, a load in flight for as
    many steps as the ring can cover, no load into a slot that is still in use."""
    flying = flight(slots, prefetch)
    found: list[Iteration] = []
    for k in range(trips):
        issue = found[-1].issue + 1 if found else 0
        if k >= slots:
            issue = max(issue, found[k - slots].done)
        consume = max(issue + flying, prefetch)
        if found:
            consume = max(consume, found[-1].done)
        found.append(Iteration(k, k % slots, issue, consume, consume + 1, "steady"))
    last = found[-1].issue if found else 0
    return [replace(i, phase="drain") if i.consume > last else i for i in found]


def _left_out(steps: int, slots: int, known: bool) -> tuple[int, int] | None:
    """The middle of a long schedule; all after the beginning when the end is not known."""
    if not known:
        return (SHOWN_STEPS - 2, steps)
    tail = min(slots + 3, SHOWN_STEPS // 2)
    head = SHOWN_STEPS - 1 - tail
    return (head, steps - tail) if steps > SHOWN_STEPS + 2 else None


def _drawn(found: list[Iteration], left_out: tuple[int, int] | None) -> tuple[Iteration, ...]:
    start, stop = left_out or (0, 0)
    return tuple(i for i in found if not (start <= i.issue and i.done <= stop))


def _ops(side: str, ops: tuple[PlannedOp, ...]) -> list[OpRow]:
    return [
        OpRow(side, o.label, o.kind, o.engine, o.bytes, o.loc.line if o.loc else None) for o in ops
    ]


def pipeline_view(plan: PipelinePlan) -> PipelineView:
    """The schedule of a planned loop."""
    slots = max([1, *(b.versions for b in plan.buffers)])
    trips = UNKNOWN_TRIPS if plan.trip_count is None else plan.trip_count
    found = schedule(trips, slots, plan.prefetch)
    steps = found[-1].done if found else 0
    left_out = _left_out(steps, slots, plan.trip_count is not None)
    return PipelineView(
        title=f"Pipeline of loop {plan.loop}",
        loop=plan.loop,
        kernel=plan.kernel,
        mechanism=plan.mechanism,
        num_stages=plan.num_stages,
        slots=slots,
        prefetch=plan.prefetch,
        trip_count=plan.trip_count,
        ops=tuple(_ops("produce", plan.producers) + _ops("consume", plan.consumers)),
        roles=plan.roles,
        barriers=plan.barriers,
        buffers=tuple(
            SlotRow(b.buffer.root.name, b.versions, b.bytes_per_version) for b in plan.buffers
        ),
        iterations=_drawn(found, left_out),
        steps=steps,
        left_out=left_out,
        reason=plan.reason,
        line=plan.loc.line if plan.loc else None,
    )
