"""Barriers of a group of blocks: mbarriers with phases and bytes, and bar.sync barriers.

Hides that every block has its own state while one array operation serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer
from tilelab.sim.clocks import Clocks
from tilelab.sim.frame import Array


class MBarriers:
    """The mbarriers of one buffer: arrays (blocks, barriers)."""

    def __init__(self, buffer: Buffer, blocks: int, actors: int) -> None:
        self.buffer = buffer
        shape = (blocks, *(buffer.static_shape or (1,)))
        self.shape = shape[1:]
        size = int(np.prod(self.shape))
        self.handed_over = False  # whether a phase has ended since a strand last gave way
        self.ready = np.zeros((blocks, size), np.bool_)
        self.count = np.zeros((blocks, size), np.int64)
        self.pending = np.zeros((blocks, size), np.int64)
        self.bytes = np.zeros((blocks, size), np.int64)
        self.phase = np.zeros((blocks, size), np.int64)
        self.init_warp = np.zeros(size, np.int64)
        self.init_clock = np.zeros(size, np.int64)
        clocks = (blocks, size, actors)
        self.gathering = np.zeros(clocks, np.int32)  # clocks of arrivals of this phase
        self.released = np.zeros(clocks, np.int32)  # clocks of the phases that completed

    def init(self, rows: Array, which: Array, count: Array, warp: int, clock: int) -> None:
        """mbarrier.init by a warp at a point of its clock: a fresh phase 0."""
        self.init_warp[which], self.init_clock[which] = warp, clock
        self.ready[rows, which] = True
        self.count[rows, which] = self.pending[rows, which] = count
        self.bytes[rows, which] = self.phase[rows, which] = 0

    def arrive(
        self, rows: Array, which: Array, arrivals: Array, num_bytes: Array, clock: Array
    ) -> Array:
        """Expected bytes go up, then arrivals; which entries had no arrival left (misuse)."""
        self.bytes[rows, which] += num_bytes
        self.pending[rows, which] -= arrivals
        self._gather(rows, which, clock)
        surplus = self.pending[rows, which] < 0
        self._complete(rows, which)
        return surplus

    def complete_bytes(self, rows: Array, which: Array, num_bytes: int, clock: Array) -> None:
        """An asynchronous copy has brought its bytes."""
        self.bytes[rows, which] -= num_bytes
        self._gather(rows, which, clock)
        self._complete(rows, which)

    def _gather(self, rows: Array, which: Array, clock: Array) -> None:
        self.gathering[rows, which] = np.maximum(self.gathering[rows, which], clock)

    def _complete(self, rows: Array, which: Array) -> None:
        done = (self.pending[rows, which] <= 0) & (self.bytes[rows, which] == 0)
        if not done.any():
            return
        rows, which = rows[done], which[done]
        self.handed_over = True
        self.phase[rows, which] += 1
        self.pending[rows, which] = self.count[rows, which]
        gathered = self.gathering[rows, which]
        self.released[rows, which] = np.maximum(self.released[rows, which], gathered)

    def passed(self, rows: Array, which: Array, parity: Array) -> Array:
        """Where a wait for the phase of this parity would go on."""
        return (self.phase[rows, which] & 1) != parity

    def name(self, which: int) -> str:
        """The barrier as the program writes it."""
        index = np.unravel_index(which, self.shape)
        return f"{self.buffer.name}[{', '.join(str(int(i)) for i in index)}]"

    def index(self, which: int) -> tuple[int, ...]:
        """Where a barrier lies in its buffer."""
        return tuple(int(i) for i in np.unravel_index(which, self.shape))

    def state(self, row: int, which: int) -> str:
        """A sentence on one barrier of one block."""
        if not self.ready[row, which]:
            return f"{self.name(which)} was never initialised"
        missing, num_bytes = int(self.pending[row, which]), int(self.bytes[row, which])
        text = f"{self.name(which)} is in phase {int(self.phase[row, which])}, "
        text += f"{missing} of {int(self.count[row, which])} arrivals missing"
        if num_bytes > 0:
            text += f", {num_bytes} bytes still expected"
        elif num_bytes < 0:
            text += f", {-num_bytes} bytes more than expected have come"
        return text


@dataclass
class Arrivals:
    """Threads that have come to one bar.sync barrier: counts, how many they wait for (ALL: those
    that have not left the kernel), a generation; the warps that wait; of those that only arrive
    (bar.arrive) what they knew, and their times after it; of the last generation, the warps' times
    when it had passed (0: not among them). `uses`: where each number of threads was asked for
    first; `releases`: how often threads were let go."""

    threads: Array
    needs: Array
    generation: Array
    waiting: Array
    told: Array
    arrived: Array
    passed: Array
    uses: dict[int, Loc | None]
    releases: int = 0


ALL = 0


class BlockBarriers:
    """__syncthreads and named barriers (number 0 is __syncthreads)."""

    def __init__(self, blocks: int, threads: int, clocks: Clocks) -> None:
        self.live = np.full(blocks, threads, np.int64)  # threads that have not left the kernel
        self.blocks, self.clocks = blocks, clocks
        self._at: dict[int, Arrivals] = {}

    def at(self, number: int) -> Arrivals:
        """The state of one barrier."""
        found = self._at.get(number)
        if found is None:
            zeros = np.zeros(self.blocks, np.int64)
            waiting = np.zeros((self.blocks, self.clocks.warps), np.bool_)
            times = np.zeros(waiting.shape, np.int32)
            told = np.zeros((self.blocks, self.clocks.actors), np.int32)
            found = self._at[number] = Arrivals(
                zeros, zeros.copy(), zeros.copy(), waiting, told, times, times.copy(), {}
            )
        return found

    def arrive(
        self, number: int, rows: Array, warps: Array, lanes: int, needs: int,
        waits: bool = True,
    ) -> Array:  # fmt: skip
        """Count threads in; the generation that must pass for them to go on. Without `waits` they
        tell what they know now, and learn nothing."""
        state = self.at(number)
        state.threads[rows] += lanes
        if waits:
            state.waiting[rows[:, None], warps] = True
        else:
            told = self.clocks.publish(rows, warps)
            state.told[rows] = np.maximum(state.told[rows], told)
            state.arrived[rows[:, None], warps] = self.clocks.own(rows, warps)
        state.needs[rows] = needs
        before = state.generation[rows].copy()
        self.release(number)
        return before

    def release(self, number: int) -> None:
        """Let the threads go where all have come."""
        state = self.at(number)
        done = (state.threads >= self._wanted(state)) & (state.threads > 0)
        if not done.any():
            return
        state.threads[done] = 0
        state.generation[done] += 1
        state.releases += 1
        rows = np.flatnonzero(done)
        state.passed[rows] = state.arrived[rows]
        came = state.waiting[rows]
        if bool((came == came[0]).all()):
            self._pass(state, rows, np.flatnonzero(came[0]))
        else:
            patterns, numbers = np.unique(came, axis=0, return_inverse=True)
            for i, warps in enumerate(patterns):
                self._pass(state, rows[numbers.reshape(-1) == i], np.flatnonzero(warps))
        for kept in (state.waiting, state.told, state.arrived):
            kept[rows] = 0

    def _pass(self, state: Arrivals, rows: Array, warps: Array) -> None:
        if not len(warps):
            return
        told = state.told[rows]
        self.clocks.barrier(rows, warps, told if told.any() else None)
        state.passed[rows[:, None], warps] = self.clocks.own(rows, warps)

    def strangers(self, number: int, rows: Array, warps: Array) -> int | None:
        """A warp that used the barrier last, without an order before its use by one of `warps`:
        their arrivals may mix on the chip. None: there is none."""
        passed = self.at(number).passed[rows]
        used = passed > 0
        new = used.any(axis=1, keepdims=True) & ~used[:, warps]
        if not new.any():
            return None
        clocks, every = self.clocks, np.arange(self.clocks.warps)
        seen = clocks.now[clocks.column(rows)[..., None], warps[:, None], every]  # (rows, W, warps)
        knows = ((seen >= passed[:, None]) & used[:, None]).any(axis=-1)
        bad = new & ~knows
        return int(used[int(bad.any(axis=1).argmax())].argmax()) if bad.any() else None

    def leave(self, rows: Array, lanes: int) -> None:
        """Threads end: barriers no longer wait for them."""
        self.live[rows] -= lanes
        for number, state in self._at.items():
            if (state.needs == ALL).any():
                self.release(number)

    def missing(self, number: int, row: int) -> tuple[int, int]:
        """(threads that came, threads that must come) in one block."""
        state = self.at(number)
        return int(state.threads[row]), int(self._wanted(state)[row])

    def _wanted(self, state: Arrivals) -> Array:
        return np.where(state.needs == ALL, self.live, state.needs)

    def disagree(
        self, number: int, rows: Array, needs: int, loc: Loc | None
    ) -> tuple[int, int, Loc | None] | None:
        """The first row in which threads wait at a barrier for another number of threads than
        `needs`, that number, and where it is asked for; None: there is none."""
        state = self.at(number)
        state.uses.setdefault(needs, loc)
        its = self._wanted(state)[rows]
        bad = (state.threads[rows] > 0) & (its != (self.live[rows] if needs == ALL else needs))
        at = int(bad.argmax())
        loc = state.uses.get(int(its[at]), state.uses.get(ALL))
        return (at, int(its[at]), loc) if bad.any() else None

    def other_use(self, number: int, needs: int) -> tuple[str, Loc | None] | None:
        """Another number of threads than `needs` that a barrier has been used for, in words, and
        where."""
        uses = self.at(number).uses
        others = [n for n in uses if n != needs]
        return (str(others[0] or "all"), uses[others[0]]) if others else None
