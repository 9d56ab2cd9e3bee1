"""cp.async copies, and their arrivals at mbarriers (PTX ISA, "cp.async.mbarrier.arrive").

Hides that such an arrival comes later than the instruction: when the copies that its threads had
started have come. Only who waits for the barrier's phase sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer
from tilelab.sim import findings as f
from tilelab.sim.barriers import MBarriers
from tilelab.sim.frame import Array, Frame
from tilelab.sim.group import BlockGroup
from tilelab.sim.place import spread
from tilelab.sim.shadow import VALID
from tilelab.sim.timeline import Clock


@dataclass
class Copy:
    """One cp.async under way: values read, not yet in shared memory. `announced`: an mbarrier
    counts it; `parts`: what became of it when some of its threads waited."""

    group: BlockGroup
    buffer: Buffer
    address: Any
    values: Array
    frame: Frame
    num_bytes: int
    loc: Any
    announced: bool = False
    finished: bool = False
    parts: tuple[Copy, ...] = ()

    def apart(self, acting: Array) -> tuple[Copy | None, Copy | None]:
        """The part that the acting threads have started, and the rest."""
        frame = self.frame
        mine = acting[np.ix_(frame.rows, frame.lanes)]
        if frame.mask is not None:
            mine = mine & frame.mask
        rest = ~mine if frame.mask is None else frame.mask & ~mine
        if not rest.any():
            return self, None
        if not mine.any():
            return None, self
        own, left = (replace(self, frame=frame.masked(on)) for on in (mine, rest))
        self.parts = own, left
        return own, left

    def unfinished(self) -> Iterator[Copy]:
        """Its parts that are still under way."""
        for part in self.parts:
            yield from part.unfinished()
        if not self.parts and not self.finished:
            yield self

    def finish(self) -> None:
        """The threads have waited for it: the bytes are there, as if these had written them."""
        self._note_write(by_threads=True)
        self.land()

    def announce(self) -> None:
        """An mbarrier counts it from now on: only who waits there knows of it."""
        if not self.announced:
            self.announced = True
            self._note_write(by_threads=False)

    def _note_write(self, by_threads: bool) -> None:
        group = self.group
        if group.findings.wants(f.RACE):
            access = group.accessed(self.address, self.num_bytes, self.frame)
            access = access if by_threads else replace(access, threads=None)
            group.shadow.write(access, group.clocks, self.loc, ordinary=True, inserted=True)

    def land(self) -> None:
        """Shared memory changes."""
        self.finished = True
        group, size = self.group, self.buffer.dtype.bytes
        access = group.accessed(self.address, self.num_bytes, self.frame)
        group.shadow.set_state(access, VALID, group.shared.owner(self.buffer))
        where = self.address + spread(len(self.values), self.frame) * size
        group.shared.store(self.buffer.dtype, where, self.values, self.frame)


@dataclass
class Arrival:
    """Threads of the blocks `rows` arrive at the mbarriers `bar` when `copies` have come: `lanes`
    arrivals a block, with what they knew (`seen`); `thread` is the first of them. `done`: when, on
    the timeline of `clock`."""

    group: BlockGroup
    copies: Sequence[Copy]
    rows: Array
    bar: tuple[MBarriers, Array]
    lanes: Array
    seen: Array
    thread: int
    loc: Loc | None
    clock: Clock
    done: float

    def land(self) -> None:
        """The copies come, and the barriers count their threads in."""
        for copy in self.copies:
            for part in copy.unfinished():
                part.land()
        self.count_in("arrive")

    def count_in(self, kind: str, num_bytes: Any = 0) -> None:
        """The barriers count the threads in, which expect `num_bytes` more; too many are
        reported, and end their blocks."""
        group, rows, (barriers, which) = self.group, self.rows, self.bar
        surplus = barriers.arrive(rows, which, self.lanes, num_bytes, self.seen)
        if surplus.any():
            at = int(surplus.argmax())
            one, row = int(which[at]), int(rows[at])
            text = f"{barriers.name(one)} gets more arrivals in one phase than the "
            text += f"{int(barriers.count[row, one])} it was initialised with"
            group.report(
                f.BARRIER_MISUSE, text, self.loc, row=row, thread=self.thread,
                buffer=barriers.buffer, index=barriers.index(one),
            )  # fmt: skip
            group.stop(rows[surplus])
        self.clock.arrive(barriers, rows, which, self.loc, kind, self.done)
