"""The modelled timeline of one block, in cycles: when each role, copy and product runs.

Hides virtual time. Each strand has a `Clock`; engines (global memory, tensor cores) serve one
request after another; a wait sets the clock to the time at which what it waits for is complete.
Times follow from the program and the costs of `thread.costs` alone: in whichever order the
scheduler runs strands, a barrier's phase is complete when its last arrival is. The block has the
multiprocessor to itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.sim.barriers import BlockBarriers, MBarriers
from tilelab.sim.frame import Array, Frame
from tilelab.sim.work import Work
from tilelab.target import WARP
from tilelab.thread.costs import COSTS, SCHEDULERS, SHARED_BYTES_PER_CYCLE, Rates

MAX_EVENTS = 20_000
TMA, ASYNC_COPIES, TENSOR_CORES, TMA_STORES = "TMA", "cp.async", "tensor cores", "TMA stores"
ENGINES = (TMA, ASYNC_COPIES, TENSOR_CORES, TMA_STORES)


@dataclass(frozen=True)
class Event:
    """Something on the timeline of the modelled block; `start` and `end` in cycles.

    track: a warp role, or an engine (`ENGINES`). kind: "tma load", "tma store", "cp.async",
    "wgmma", "mma", "simt", "load", "store", "shared", "sync", "wait"; "arrive" and "expect" take
    no time. role: who issued it. stage: the slot or barrier number, phase: that barrier's phase.
    """

    kernel: str
    track: str
    kind: str
    start: float
    end: float
    role: str
    loc: Loc | None = None
    stage: int | None = None
    phase: int | None = None
    name: str = ""


class Engine:
    """A unit that serves requests one after another."""

    def __init__(self) -> None:
        self.free = 0.0

    def serve(self, at: float, cycles: float) -> tuple[float, float]:
        """(start, end) of a request that comes at a time."""
        start = max(at, self.free)
        self.free = start + cycles
        return start, self.free


@dataclass
class Groups:
    """When asynchronous work ends, and which slot it fills (None: none): since the last commit,
    and by committed group."""

    open: float = 0.0
    slot: int | None = None
    groups: list[tuple[float, int | None]] = field(default_factory=list[tuple[float, "int | None"]])

    def add(self, end: float, slot: int | None = None) -> None:
        self.open, self.slot = max(self.open, end), self.slot if slot is None else slot

    def commit(self) -> None:
        self.groups.append((self.open, self.slot))
        self.open, self.slot = 0.0, None

    def last(self) -> float:
        """When all of it is done."""
        return max([self.open, *(end for end, _ in self.groups)])

    def take(self, pending: int) -> tuple[float, int | None]:
        """When all groups but the newest `pending` are done, and the slot of the last of these;
        they are forgotten."""
        count = max(len(self.groups) - pending, 0)
        done, self.groups = self.groups[:count], self.groups[count:]
        return max((end for end, _ in done), default=0.0), done[-1][1] if done else None


class Timeline:
    """Events, engines and barriers' times of the block `row` of a group."""

    def __init__(self, kernel: str, row: int, rates: Rates) -> None:
        self.kernel, self.row, self.rates = kernel, row, rates
        self.events: list[Event] = []
        self.dropped = 0
        self.memory, self.tensor_cores = Engine(), Engine()
        self._gathering: dict[Any, float] = {}
        self._phases: dict[Any, int] = {}
        self.complete: dict[Any, float] = {}  # when a barrier's last phase was completed

    def add(self, event: Event) -> None:
        """Keep an event; a run of ordinary work of one role is one event."""
        last = self.events[-1] if self.events else None
        merges = event.kind in _MERGED and last is not None and last.end == event.start
        if last is not None and merges and (last.track, last.kind) == (event.track, event.kind):
            self.events[-1] = replace(last, end=event.end)
        elif len(self.events) < MAX_EVENTS:
            self.events.append(event)
        else:
            self.dropped += 1

    def contribute(self, key: Any, time: float, phase: int) -> None:
        """An arrival at a barrier, or bytes that came; `phase`: the barrier's, after it."""
        gathered = max(self._gathering.get(key, 0.0), time)
        if phase != self._phases.get(key, 0):
            self.complete[key], gathered = gathered, 0.0
            self._phases[key] = phase
        self._gathering[key] = gathered

    def position(self, rows: Array) -> int | None:
        """Where the block is among a frame's rows; None when it is not there."""
        at = int(np.searchsorted(rows, self.row))
        return at if at < len(rows) and rows[at] == self.row else None


_MERGED = frozenset({"simt", "load", "store", "shared", "mma", "sync"})


class Clock:
    """The time of one strand, and its asynchronous work. Without a timeline it stands still."""

    def __init__(self, timeline: Timeline | None, role: str, now: float = 0.0) -> None:
        self.timeline, self.role, self.now = timeline, role, now
        self.copies, self.products, self.stores = Groups(), Groups(), Groups()

    def fork(self, role: str) -> Clock:
        """The clock of a strand that begins now."""
        return Clock(self.timeline, role, self.now)

    def join(self, clocks: Iterable[Clock]) -> None:
        """Go on when the last of the others has ended."""
        self.now = max([self.now, *(c.now for c in clocks)])

    def note(self, kind: str, start: float, end: float, loc: Loc | None, **facts: Any) -> None:
        """Add an event of this role; `track` (an engine) may be given."""
        t = self.timeline
        if t is not None:
            track = facts.pop("track", self.role)
            t.add(Event(t.kernel, track, kind, start, end, self.role, loc, **facts))

    # ---- ordinary work ------------------------------------------------------------------------

    def spend(self, work: Work, frame: Frame, loc: Loc | None, conflicts: float) -> None:
        """Run a statement: issue its instructions, wait for what it loads. `conflicts`: the bank
        conflict degree of the line."""
        t = self.timeline
        if t is None or not work.kind:
            return
        active = _active(t, frame)
        if not active:
            return
        instructions = -(-active // WARP)
        warps = min(-(-len(frame.lanes) // WARP), instructions)
        start = self.now
        done = issued = start + instructions * work.issue / min(warps, SCHEDULERS)
        if work.shared_bytes:
            cycles = active * work.shared_bytes / SHARED_BYTES_PER_CYCLE * conflicts
            done = max(done, start + cycles + (COSTS["shared"].latency if work.loads_shared else 0))
        if work.global_bytes:
            served = t.memory.serve(start, active * work.global_bytes / t.rates.global_bytes)[1]
            if work.loads_global:
                done = max(done, served + COSTS["global"].latency)
        if work.flops:
            cycles = instructions * work.flops / t.rates.tensor_flops
            done = max(done, t.tensor_cores.serve(start, cycles)[1])
        self.now = max(done, issued) + work.latency
        self.note(work.kind, start, self.now, loc)

    # ---- asynchronous work --------------------------------------------------------------------

    def copy(self, num_bytes: float, rows: Array, loc: Loc | None, **facts: Any) -> float:
        """Start a copy between global and shared memory (`kind`, `track` and what else its event
        says); when it is done."""
        t = self.timeline
        if t is None or t.position(rows) is None:
            return 0.0
        start = self.now
        served = t.memory.serve(start, num_bytes / t.rates.global_bytes)[1]
        end = served + COSTS["async"].latency
        self.note(facts.pop("kind"), start, end, loc, **facts)
        self.now += COSTS["async"].issue
        return end

    def product(self, flops: float, rows: Array, loc: Loc | None) -> None:
        """Queue a wgmma at the tensor cores."""
        t = self.timeline
        if t is None or t.position(rows) is None:
            return
        self.now += COSTS["wgmma"].issue
        start, end = t.tensor_cores.serve(self.now, flops / t.rates.tensor_flops)
        self.products.add(end)
        self.note("wgmma", start, end, loc, track=TENSOR_CORES)

    # ---- barriers and waits -------------------------------------------------------------------

    def arrive(
        self, barriers: MBarriers, rows: Array, which: Array, loc: Loc | None, kind: str,
        time: float,
    ) -> None:  # fmt: skip
        """Arrivals at mbarriers, at `time`."""
        if contribute(self.timeline, barriers, rows, which, time):
            one = _at(self.timeline, rows, which)
            self.note(kind, time, time, loc, stage=one, name=barriers.name(one))

    def observe(self, barriers: MBarriers, rows: Array, which: Array, loc: Loc | None) -> None:
        """A wait at mbarriers is over."""
        t = self.timeline
        if t is None or t.position(rows) is None:
            return
        one = _at(t, rows, which)
        self._wait(t.complete.get((barriers.buffer, one), 0.0), loc, stage=one,
                   phase=int(barriers.phase[t.row, one]), name=barriers.name(one))  # fmt: skip

    def arrive_block(self, barriers: BlockBarriers, number: int, rows: Array) -> None:
        """Threads come to __syncthreads or a named barrier."""
        t = self.timeline
        if t is not None and t.position(rows) is not None:
            generation = int(barriers.at(number).generation[t.row])
            t.contribute(number, self.now, generation)

    def observe_block(self, number: int, rows: Array, loc: Loc | None) -> None:
        """A wait there is over."""
        t = self.timeline
        if t is not None and t.position(rows) is not None:
            name = "__syncthreads" if number == 0 else f"named barrier {number}"
            self._wait(t.complete.get(number, 0.0), loc, name=name)

    def finish(
        self, groups: Groups, pending: int, rows: Array, loc: Loc | None, name: str
    ) -> None:  # fmt: skip
        """Wait for committed groups of asynchronous work."""
        if self.timeline is not None and self.timeline.position(rows) is not None:
            until, slot = groups.take(pending)
            self._wait(until, loc, stage=slot, name=name)

    def _wait(self, until: float, loc: Loc | None, **facts: Any) -> None:
        start, self.now = self.now, max(self.now, until) + COSTS["wait"].latency
        self.note("wait", start, self.now, loc, **facts)


def contribute(
    timeline: Timeline | None, barriers: MBarriers, rows: Array, which: Array, time: float
) -> bool:
    """An arrival or bytes at one of the mbarriers, if the timeline's block is among `rows`."""
    if timeline is None or timeline.position(rows) is None:
        return False
    one = _at(timeline, rows, which)
    timeline.contribute((barriers.buffer, one), time, int(barriers.phase[timeline.row, one]))
    return True


def _at(timeline: Timeline | None, rows: Array, which: Array) -> int:
    assert timeline is not None
    at = timeline.position(rows)
    return int(which[at or 0])


def _active(timeline: Timeline, frame: Frame) -> int:
    """How many (lane, iteration) of the block take part."""
    at = timeline.position(frame.rows)
    if at is None:
        return 0
    if frame.mask is None:
        return int(np.prod([*frame.loops, len(frame.lanes)]))
    return int(np.count_nonzero(np.broadcast_to(frame.mask, frame.shape)[..., at, :]))
