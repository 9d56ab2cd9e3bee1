"""Barrier instructions: the part of `Machine` that arrives, waits and fences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tilelab.sim import findings as f
from tilelab.sim.arrivals import Arrival, Copy
from tilelab.sim.barriers import ALL, MBarriers
from tilelab.sim.clocks import Clocks
from tilelab.sim.frame import Array, agreeing
from tilelab.sim.lanes import BlocksStopped, Lanes
from tilelab.sim.parts import hold_back
from tilelab.sim.place import Place
from tilelab.sim.register_pool import WARPGROUP
from tilelab.sim.waits import BarrierWait, PhaseWait, RegisterWait
from tilelab.sim.work import Work
from tilelab.target import NAMED_BARRIERS, WARP
from tilelab.thread.costs import COSTS

_SYNC = Work("sync", COSTS["sync"].issue, COSTS["sync"].latency)


class BarrierLanes(Lanes):
    """Arrivals and waits of one strand."""

    def sync_threads(self, barrier: Any, threads: Any) -> Iterator[Any]:
        """bar.sync; `threads` None: all threads of the block."""
        frame = self.frame
        number, before = self._count_in(barrier, ALL if threads is None else threads)
        yield from self.waiting(BarrierWait(number, frame.rows, before, self.memory.loc))
        self.clock.observe_block(number, frame.rows, self.memory.loc)

    def arrive_threads(self, barrier: Any, threads: Any) -> None:
        """bar.arrive: count in, and go on."""
        whole = self.frame
        parts = agreeing(whole, (barrier, threads), self.group.size)
        for self.frame, (number, needs) in parts:
            self._count_in(number, needs, waits=False)
        self.frame = whole

    def _count_in(self, barrier: Any, threads: Any, waits: bool = True) -> tuple[int, Array]:
        """Arrive at a barrier, in which all running threads agree: its number, and the generation
        that must pass for them to go on."""
        frame, barriers = self.frame, self.group.barriers
        number, needs = int(self.per_row(barrier)[0]), int(self.per_row(threads)[0])
        self._fits(number, needs)
        lanes = len(frame.lanes)
        before = barriers.arrive(number, frame.rows, self.warps(), lanes, needs, waits)
        self.clock.arrive_block(barriers, number, frame.rows)
        return number, before

    def _fits(self, number: int, needs: int) -> None:
        """Report what is no barrier, one at which others wait for another number of threads, and
        one that other warps use at the same time."""
        rows, barriers, name = self.frame.rows, self.group.barriers, f"named barrier {number}"
        text, place, other = "", 0, None
        if not 0 <= number < NAMED_BARRIERS or needs % WARP or needs < 0:
            text = f"{name} of {needs} threads: numbers are 0 to {NAMED_BARRIERS - 1}, and threads "
            text += "whole warps"
        elif found := barriers.disagree(number, rows, needs, self.memory.loc):
            place, count, other = found
            text = f"{name} is waited for here by {needs or 'all'} threads, and by {count} "
            text += "elsewhere, at the same time"
        if text:
            self.report(f.BARRIER_MISUSE, text, place, hint=f.COUNTS_HINT, other=other)
            self.group.stop(rows)
            raise BlocksStopped
        stranger = barriers.strangers(number, rows, self.warps())
        if stranger is not None:
            use = barriers.other_use(number, needs) or ("", None)
            counts = f" for {needs or 'all'} threads, elsewhere for {use[0]}," if use[0] else ""
            text = f"{name} is used here{counts} and by warp {stranger}, without an order between "
            text += "the two uses: their arrivals may be counted together"
            hint = f.COUNTS_HINT if counts else "give each set of threads its own barrier"
            self.report(f.BARRIER_MISUSE, text, hint=hint, other=use[1])

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
        hold_back(group, frame)
        return Arrival(
            group, copies, frame.rows, which, self.lanes_per_row(), seen, int(frame.lanes[0]),
            self.memory.loc, self.clock, done,
        )  # fmt: skip

    def mbarrier_expect(self, bar: Place, num_bytes: Any) -> None:
        """Expect bytes, for every active lane; no arrival."""
        barriers, which = self.which(bar)
        self.usable(barriers, which)
        total = self.per_row(num_bytes) * self.lanes_per_row()
        late = barriers.pending[self.frame.rows, which] <= 0
        if late.any():
            at = int(late.argmax())
            name, index = barriers.name(int(which[at])), barriers.index(int(which[at]))
            text = f"bytes are expected at {name} when all arrivals of its phase have come: the "
            text += "phase may end before, with the copies already under way"
            hint = "expect the bytes before the last arrival"
            self.report(f.BARRIER_MISUSE, text, at, hint, barriers.buffer, index)
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
        alone = group.clocks.alone(rows, frame.lanes, group.kernel.num_threads)
        group.clocks.observe(rows, warps, barriers.released[rows, which], alone)
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
