"""Barrier instructions: the part of `Machine` that arrives, waits and fences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tilelab.sim import findings as f
from tilelab.sim.arrivals import Arrival, Copy
from tilelab.sim.barriers import MBarriers
from tilelab.sim.clocks import Clocks
from tilelab.sim.frame import Array
from tilelab.sim.lanes import Lanes
from tilelab.sim.place import Place
from tilelab.sim.register_pool import WARPGROUP
from tilelab.sim.waits import BarrierWait, PhaseWait, RegisterWait
from tilelab.sim.work import Work
from tilelab.thread.costs import COSTS

_SYNC = Work("sync", COSTS["sync"].issue, COSTS["sync"].latency)


class BarrierLanes(Lanes):
    """Arrivals and waits of one strand."""

    def sync_threads(self, barrier: Any, threads: Any) -> Iterator[Any]:
        """bar.sync; `threads` None: all threads of the block."""
        frame, group = self.frame, self.group
        number = int(self.per_row(barrier)[0])
        needs = None if threads is None else int(self.per_row(threads)[0])
        lanes = len(frame.lanes)
        self._only_these(number)
        before = group.barriers.arrive(number, frame.rows, self.warps(), lanes, needs)
        self.clock.arrive_block(group.barriers, number, frame.rows)
        yield from self.waiting(BarrierWait(number, frame.rows, before, self.memory.loc))
        self.clock.observe_block(number, frame.rows, self.memory.loc)

    def arrive_threads(self, barrier: Any, threads: Any) -> None:
        """bar.arrive: count in, and go on."""
        frame = self.frame
        number, needs = int(self.per_row(barrier)[0]), int(self.per_row(threads)[0])
        self._only_these(number)
        self.group.barriers.arrive(number, frame.rows, self.warps(), len(frame.lanes), needs)
        self.clock.arrive_block(self.group.barriers, number, frame.rows)

    def _only_these(self, number: int) -> None:
        """Report a named barrier that other warps use at the same time."""
        other = self.group.barriers.strangers(number, self.frame.rows, self.warps())
        if other is not None:
            text = f"named barrier {number} is used here and by warp {other}, without an order "
            text += "between the two uses: their arrivals may be counted together"
            self.report(f.BARRIER_MISUSE, text, hint="give each set of threads its own barrier")

    def set_registers(self, count: int, raises: bool) -> Iterator[Any]:
        """setmaxnreg: wait for registers of the block's pool, or give some back."""
        frame, pool = self.frame, self.group.register_pool
        own = np.unique(frame.lanes // WARPGROUP)
        self.clock.spend(_SYNC, frame, self.memory.loc, 1.0)
        if raises:
            wait = RegisterWait(pool, frame.rows, own, count, self.memory.loc)
            yield from self.waiting(wait)
            pool.take(wait.rows, own, count)
        else:
            pool.give_back(frame.rows, own, count)

    def waiting(self, wait: Any) -> Iterator[Any]:
        """Count a wait, and give way to other strands where it holds."""
        memory, group = self.memory, self.group
        loc, statement = memory.loc, memory.statement
        group.counters.add(loc, "waits", len(wait.rows))
        if len(wait.blocked(group)):
            group.counters.add(loc, "blocked_waits", len(wait.rows))
            yield wait
        memory.loc, memory.statement = loc, statement

    def which(self, bar: Place) -> tuple[MBarriers, Array]:
        """The barriers of a buffer and the number of the one that each row means."""
        bar = self.memory.bounded(bar, self.frame, "use")
        barriers = self.group.mbarriers[bar.buffer]
        flat: Any = 0
        for index, extent in zip(bar.indices, barriers.shape, strict=True):
            flat = flat * extent + np.asarray(index)
        return barriers, self.per_row(flat)

    def mbarrier_init(self, bar: Place, count: Any) -> None:
        """A fresh barrier that expects `count` arrivals a phase."""
        barriers, which = self.which(bar)
        warp = int(self.warps()[0])
        when = int(self.group.clocks.own(self.frame.rows, np.array([warp]))[0, 0])
        barriers.init(self.frame.rows, which, self.per_row(count), warp, when)

    def mbarrier_arrive(self, bar: Place, expect_bytes: Any) -> None:
        """Expect bytes, then arrive, once for every active lane."""
        arrival = self.arrival(bar, self.clock.now)
        num_bytes = self.per_row(expect_bytes) * arrival.lanes
        arrival.count_in("expect" if np.any(num_bytes) else "arrive", num_bytes)

    def arrival(self, bar: Place, done: float, copies: Sequence[Copy] = ()) -> Arrival:
        """What the active lanes know and did, for others to learn at an mbarrier."""
        group, frame = self.group, self.frame
        which = self.which(bar)
        self.usable(*which)
        seen = group.clocks.publish(frame.rows, self.warps())
        return Arrival(
            group, copies, frame.rows, which, self.lanes_per_row(), seen, int(frame.lanes[0]),
            self.memory.loc, self.clock, done,
        )  # fmt: skip

    def mbarrier_expect(self, bar: Place, num_bytes: Any) -> None:
        """Expect bytes, for every active lane; no arrival."""
        barriers, which = self.which(bar)
        self.usable(barriers, which)
        total = self.per_row(num_bytes) * self.lanes_per_row()
        barriers.bytes[self.frame.rows, which] += total

    def usable(self, barriers: MBarriers, which: Array, by_copy: bool = False) -> None:
        """Report barriers that are not initialised, or not known here (or to async copies) yet."""
        rows, clocks = self.frame.rows, self.group.clocks
        bad = ~barriers.ready[rows, which]
        if bad.any():
            at = int(bad.argmax())
            name = barriers.name(int(which[at]))
            text = f"{name} is used before it is initialised"
            index = barriers.index(int(which[at]))
            self.report(f.BARRIER_MISUSE, text, at, buffer=barriers.buffer, index=index)
            self.group.stop(rows[bad])
            return
        one = int(which[0])
        seen = clocks.now[clocks.column(rows), self.warps(), barriers.init_warp[one]]
        if (seen < barriers.init_clock[one]).any():
            text = f"warp {barriers.init_warp[one]} initialises {barriers.name(one)}, and no "
            text += "barrier lets this warp know before it uses it"
            self.report(f.RACE, text, buffer=barriers.buffer, index=barriers.index(one))
        fenced = clocks.init_fenced[clocks.column(rows), barriers.init_warp[one]]
        if by_copy and (fenced < barriers.init_clock[one]).any():
            text = f"{barriers.name(one)} is initialised without a fence (mbarrier_init_fence) "
            text += "before an asynchronous copy completes at it"
            self.report(f.RACE, text, buffer=barriers.buffer, index=barriers.index(one))

    def mbarrier_wait(self, bar: Place, parity: Any) -> Iterator[Any]:
        """Wait for the phase of a parity to complete."""
        group, frame, warps = self.group, self.frame, self.warps()
        barriers, which = self.which(bar)
        self.usable(barriers, which)
        wait = PhaseWait(barriers, frame.rows, which, self.per_row(parity) & 1, self.memory.loc)
        yield from self.waiting(wait)
        rows, which = wait.rows, wait.which
        group.clocks.observe(rows, warps, barriers.released[rows, which])
        group.clocks.converge(rows, frame.lanes)
        self.clock.observe(barriers, frame.rows, which, self.memory.loc)

    def sync_warp(self) -> None:
        """The running lanes of each warp have waited for each other."""
        self.group.clocks.converge(self.frame.rows, self.frame.lanes)

    def fence(self, kind: str) -> None:
        """Order accesses of this thread for another proxy."""
        if kind == "proxy_async":
            self.group.clocks.fence(self.frame.rows, self.warps())
            self._fence_between(self.group.order.between.fence_proxy)
        elif kind == "mbarrier_init":
            self.group.clocks.fence_init(self.frame.rows, self.warps())
        elif kind == "memory":
            self._fence_between(self.group.order.between.fence)
            if self.group.order.told:
                self.group.clocks.publish(self.frame.rows, self.warps())
        else:
            self.memory.touched.clear()
            self.memory.fenced = True

    def _fence_between(self, fence: Callable[[Array, Array, Clocks, int], None]) -> None:
        """A fence of the active threads, by what blocks know of each other."""
        group, frame = self.group, self.frame
        if not group.order.told:
            return
        on = self.active() & ~group.dead[frame.rows][:, None]
        rows, lanes = np.nonzero(on.reshape(-1, *frame.shape[-2:]).any(0))
        blocks, threads = group.numbers[frame.rows][rows], frame.lanes[lanes]
        fence(blocks, threads, group.clocks, int(group.numbers[0]))
