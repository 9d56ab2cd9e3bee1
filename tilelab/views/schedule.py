"""A planned loop with times: when each use of each slot was loaded, came, was used and set free.

The times are a simulator's (modelled) or a GPU's (measured); both come as `sim.Event`s. Hides how
events of barriers, copies and waits are put together into uses of a ring.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal

from tilelab.passes.plan import PipelinePlan
from tilelab.sim import Event
from tilelab.views import schedule_svg
from tilelab.views.base import View, register
from tilelab.views.table import plural, table

Source = Literal["modelled", "measured"]
SHOWN_USES = 24


@dataclass(frozen=True)
class TimedUse:
    """Use `k` of a ring: its load is issued at `issue` into `slot` and there at `arrived` (None:
    not known), the consumer asks for it at `asked`, has it from `consume` on, asks for the next
    one at `busy_until`, and gives the slot back at `done`. In cycles."""

    k: int
    slot: int
    issue: float
    arrived: float | None
    asked: float
    consume: float
    busy_until: float
    done: float

    @property
    def waited(self) -> float:
        """Cycles that the consumer's threads spent waiting for this load."""
        return self.consume - self.asked

    def moved(self, by: float) -> TimedUse:
        """The same, `by` cycles earlier."""
        there = None if self.arrived is None else self.arrived - by
        return replace(self, issue=self.issue - by, arrived=there, asked=self.asked - by,
                       consume=self.consume - by, busy_until=self.busy_until - by,
                       done=self.done - by)  # fmt: skip


@register
@dataclass(frozen=True)
class ScheduleView(View):
    """One ring of a pipelined loop in one block. `uses` are the first SHOWN_USES of `total`; the
    sums count all of them. `axis`: cycles that the picture has room for, where another beside it
    is longer."""

    kind: ClassVar[str] = "schedule"
    kernel: str
    loop: str
    tiles: tuple[str, ...]
    source: Source
    block: int
    clock_hz: float
    slots: int
    uses: tuple[TimedUse, ...]
    total: int
    cycles: float
    waited: float
    axis: float = 0.0

    @property
    def end(self) -> float:
        """The cycle at which the last use that is shown gives its slot back."""
        return max(use.done for use in self.uses)

    def headline(self) -> str:
        """How long the loop took, and how much of it the consumer waited."""
        share = self.waited / max(self.cycles, 1)
        return (
            f"{self.cycles:,.0f} cycles ({self.cycles / self.clock_hz * 1e6:.2f} us), "
            f"{self.source}; the consumer waits {self.waited:,.0f} of them ({share:.0%})"
        )

    def caption(self) -> str:
        """Which ring, which block, how many uses are shown."""
        first = f"the first {len(self.uses)} of " if self.total > len(self.uses) else ""
        counts = f"{first}{plural(self.total, 'use')} of {plural(self.slots, 'slot')}"
        return f"{', '.join(self.tiles)}: {counts} in block {self.block}"

    def to_text(self) -> str:
        """The headline, and a row a use."""
        head = ("use", "slot", "issued", "arrived", "asked for", "used from", "free at", "waited")
        rows = [
            (u.k, u.slot, f"{u.issue:,.0f}", "-" if u.arrived is None else f"{u.arrived:,.0f}",
             f"{u.asked:,.0f}", f"{u.consume:,.0f}", f"{u.done:,.0f}", f"{u.waited:,.0f}")
            for u in self.uses
        ]  # fmt: skip
        title = f"SCHEDULE  loop {self.loop} of {self.kernel}: {self.headline()}\n"
        return title + f"  {self.caption()}; in cycles\n" + table(head, rows) + "\n"

    def to_svg(self) -> str:
        """Slots as rows over time: in flight, lying ready, in use; the consumer's waits below."""
        return schedule_svg.draw(self)


def schedule_views(
    plans: Sequence[PipelinePlan], events: Sequence[Event], *, source: Source, block: int,
    clock_hz: float,
) -> list[ScheduleView]:  # fmt: skip
    """A view of each ring of each planned loop that the events tell of; none for loops in which
    nothing runs ahead. events: one block's, in cycles of `clock_hz`."""
    out: list[ScheduleView] = []
    for plan in plans:
        own = [e for e in events if plan.kernel in ("", e.kernel)]
        rings = [found for found in _RINGS[plan.mechanism](plan, own) if found[2]]
        # Rings of one loop are drawn on one clock, from the first load or wait for one.
        start = min((min(u.issue, u.asked) for _, _, uses in rings for u in uses), default=0.0)
        for tiles, slots, uses in rings:
            found = [u.moved(start) for u in _until_the_next(uses)]
            first, end = min(found[0].issue, found[0].asked), max(u.done for u in found)
            out.append(ScheduleView(
                f"Schedule of loop {plan.loop}", own[0].kernel, plan.loop, tiles, source, block,
                clock_hz, slots, tuple(found[:SHOWN_USES]), len(found), end - first,
                sum(u.waited for u in found),
            ))  # fmt: skip
    return out


def _until_the_next(uses: Sequence[TimedUse]) -> list[TimedUse]:
    """Uses in order, each busy until the next is asked for."""
    following = [*(u.asked for u in uses[1:]), uses[-1].done]
    return [
        replace(u, busy_until=max(end, u.consume)) for u, end in zip(uses, following, strict=True)
    ]


Found = tuple[tuple[str, ...], int, list[TimedUse]]


def _barrier_rings(plan: PipelinePlan, events: Sequence[Event]) -> Iterable[Found]:
    """Rings of mbarriers: full at 0..S-1 and empty at S..2S-1 of one array each (`passes.ring`)."""
    full = [b for b in plan.barriers if b.name.split(" ")[0] == "full"]
    for barrier in full:
        named = barrier.name.removeprefix("full").strip()
        tiles = tuple(named.split(", ")) if named else _tiles(plan)
        array = f"mbarrier_{tiles[0]}" if named else "mbarrier"
        yield tiles, barrier.count, _uses(array, barrier.count, tiles, events)


def _tiles(plan: PipelinePlan) -> tuple[str, ...]:
    return tuple(b.buffer.root.name for b in plan.buffers)


def _uses(
    array: str, slots: int, tiles: tuple[str, ...], events: Sequence[Event]
) -> list[TimedUse]:
    """The uses of a ring, slot by slot, then in order. Each role's n-th wait for what a slot holds
    and its n-th arrival there are about use n * slots + slot."""
    out: list[TimedUse] = []
    end = max((e.end for e in events), default=0.0)
    for slot in range(slots):
        full, empty = f"{array}[{slot}]", f"{array}[{slot + slots}]"
        expects = _sorted(e for e in events if e.name == full and e.kind == "expect")
        loads = _sorted(
            e for e in events if e.kind == "tma load" and e.stage == slot and e.name in tiles
        )
        each = len(loads) // max(len(expects), 1)
        roles = _by_role(events, full, empty)
        for n, expect in enumerate(expects):
            asked = [waits[n] for waits, _ in roles if n < len(waits)]
            if not asked:
                break  # the consumer left the loop before
            done = [frees[n].end for _, frees in roles if n < len(frees)]
            later = [waits[n + 1].start for waits, _ in roles if n + 1 < len(waits)]
            came = [e.end for e in loads[n * each : (n + 1) * each]]
            consume = min(e.end for e in asked)
            out.append(TimedUse(
                n * slots + slot, slot, expect.start, max(came, default=None),
                min(e.start for e in asked), consume, consume,
                max([consume, *(done or later[:1] or [end])]),
            ))  # fmt: skip
    return sorted(out, key=lambda u: u.k)


def _by_role(
    events: Sequence[Event], full: str, empty: str
) -> list[tuple[list[Event], list[Event]]]:  # fmt: skip
    """Each role's waits for a slot to be full, and its arrivals there when it is done, in order. A
    role that waits again before it is done asks for the same tiles: only its first wait counts."""
    out: list[tuple[list[Event], list[Event]]] = []
    told = [e for e in events if (e.name, e.kind) in ((full, "wait"), (empty, "arrive"))]
    for role in dict.fromkeys(e.role for e in told):
        waits: list[Event] = []
        frees: list[Event] = []
        for event in _sorted(e for e in told if e.role == role):
            in_use = len(waits) > len(frees)
            if event.kind == "arrive" and in_use:
                frees.append(event)
            if event.kind == "wait" and not in_use:
                waits.append(event)
        out.append((waits, frees))
    return out


def _sorted(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda e: (e.start, e.end))


def _group_rings(plan: PipelinePlan, events: Sequence[Event]) -> Iterable[Found]:
    """cp.async: one group of copies an iteration, and a wait for the oldest before its use."""
    tiles, slots = _tiles(plan), max((b.versions for b in plan.buffers), default=1)
    line = plan.loc.line if plan.loc else None
    waits = [e for e in events if e.kind == "wait" and e.name == "cp.async" and _line(e) == line]
    copies = _sorted(e for e in events if e.kind == "cp.async" and e.name in tiles)
    commits = _sorted(e for e in events if e.kind == "commit")  # on a GPU: when a group was closed
    # Where fragments come ahead, the last iteration waits once more, for nothing.
    counts = [n for n in (len(waits), len(waits) - 1) if n > 0 and len(copies) % n == 0]
    if not counts or not (copies or len(commits) >= counts[0]):
        return  # copies at the edge are left out by some iterations: no group is known by count
    each = len(copies) // counts[0]
    lines = {op.loc.line for op in plan.consumers if op.loc}
    last = max((e.end for e in events if _line(e) in lines), default=waits[-1].end)
    syncs = _sorted(e for e in events if e.kind == "wait" and e.name == "__syncthreads")
    uses: list[TimedUse] = []
    for k, wait in enumerate(waits[: counts[0]]):
        group = copies[k * each : (k + 1) * each]
        consume = next((e.end for e in syncs if e.start >= wait.end), wait.end)
        done = waits[k + 1].start if k + 1 < len(waits) else max(last, consume)
        issue = group[0].start if group else commits[k].start
        arrived = max((e.end for e in group), default=None)
        uses.append(
            TimedUse(k, k % slots, issue, arrived, wait.start, consume, consume, done)
        )  # fmt: skip
    if all(a.consume <= b.asked for a, b in pairwise(uses)):  # else a wait is not one use's
        yield tiles, slots, uses


def _line(event: Event) -> int | None:
    return event.loc.line if event.loc else None


def _no_rings(plan: PipelinePlan, events: Sequence[Event]) -> Iterable[Found]:
    return ()


_RINGS = {"tma": _barrier_rings, "cp.async": _group_rings, "sync": _no_rings}
