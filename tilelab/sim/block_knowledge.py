"""What the threads of one block know of others, and what their fences let atomics publish.

Hides that knowledge has a place in the block: it begins with lanes of one warp, at a time of that
warp's clock, and reaches the other threads by the barriers that reach them after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.sim.clocks import Clocks
from tilelab.sim.frame import Array
from tilelab.target import WARP

FENCED = 1
"""The plane of clocks that tells what lies before a proxy fence."""
_MOST = 32
"""What lanes have heard is kept apart of so many times; before that, all are taken to know it."""


@dataclass
class _Heard:
    """Clocks of others that lanes of a warp have learnt at a time of that warp's clock."""

    warp: int
    lanes: Array  # (32,)
    time: int
    clocks: Array  # (planes, blocks + 1, units)

    def reaches(self, threads: Array, clocks: Clocks, at: Any) -> Array:
        """Which threads of the block know it now; `at`: where the block's clocks are."""
        warps = threads // WARP
        known: Array = clocks.now[at, warps, self.warp] >= self.time
        beside = (warps == self.warp) & ~self.lanes[threads % WARP]
        if beside.any():
            synced = clocks.synced[at]
            own = synced[self.warp * WARP + np.flatnonzero(self.lanes)].max()
            known &= ~beside | (self.time < np.minimum(own, synced[threads]))
        return known


class Knowledge:
    """One block's; clocks of others are (planes, blocks + 1, units), a unit being `unit` threads:
    what it knows of, and, where that plane is kept, the part that is known to lie before a
    fence.proxy.async (FENCED)."""

    def __init__(self, block: int, shape: tuple[int, int, int], unit: int) -> None:
        self._block, self._shape, self._unit = block, shape, unit
        self._all = np.zeros(shape, np.int32)  # what every thread knows
        self._some: list[_Heard] = []
        self._read: list[_Heard] = []  # what has been read, with no fence behind it yet
        self._seen: dict[tuple[int, bytes], Any] = {}  # what each set of lanes read last
        # Of each thread of the block, the time of its last fence; of lanes, what they knew then.
        self._fences = np.zeros(shape[2], np.int32)
        self._fenced: dict[int, list[tuple[Array, Array]]] = {}

    @property
    def fenced(self) -> bool:
        """Whether any thread has fenced."""
        return bool(self._fenced)

    def read(self, key: Any, told: Array, who: tuple[int, Array], clocks: Clocks, at: Any) -> None:
        """Lanes of a warp read an element that tells `told`; `key` says which, and what."""
        warp, lanes = who
        if self._seen.get((warp, lanes.tobytes())) == key:
            return
        self._seen[warp, lanes.tobytes()] = key
        time = int(clocks.now[at, warp, warp])
        self._read.append(_Heard(warp, lanes, time, told.copy()))

    def fence(self, threads: Array, clocks: Clocks, row: int) -> None:
        """Threads fence; `row`: the block in its group."""
        done: list[_Heard] = []
        for heard in self._read:
            reached = threads[heard.reaches(threads, clocks, clocks.of(row))]
            for warp, lanes in by_warp(reached):
                time = int(clocks.now[clocks.of(row), warp, warp])
                self._hear(_Heard(warp, lanes, time, heard.clocks), clocks, row)
                if heard.warp == warp and not (heard.lanes & ~lanes).any():
                    done.append(heard)
        self._read = [h for h in self._read if not any(h is d for d in done)]
        at: Any = clocks.of(row)
        for warp, lanes in by_warp(threads):
            seen = self._own(warp, lanes, clocks, at)
            before = ((on & ~lanes, was) for on, was in self._fenced.get(warp, ()))
            self._fenced[warp] = [(on, was) for on, was in before if on.any()]
            self._fenced[warp].append((lanes, seen))
        self._fences[threads // self._unit] = clocks.now[at, threads // WARP, threads // WARP]

    def _hear(self, heard: _Heard, clocks: Clocks, row: int) -> None:
        at: Any = clocks.of(row)
        own = heard.clocks[0, self._block + 1].reshape(-1, WARP // self._unit).max(1)
        if (own > clocks.now[at, heard.warp, : len(own)]).any():  # warps of this very block
            seen = np.zeros((1, clocks.actors), np.int32)
            seen[0, : len(own)] = own
            clocks.observe(np.array([row]), np.array([heard.warp]), seen)
            at = clocks.of(row)
        if self._unit == 1:
            first = heard.warp * WARP
            times = heard.clocks[0, self._block + 1, first : first + WARP]
            clocks.hear(row, first + np.flatnonzero(heard.lanes), times)
        everyone = np.arange(self._shape[2] * self._unit)
        self._some.append(heard)
        for i, one in enumerate(self._some):
            if i < len(self._some) - _MOST or bool(one.reaches(everyone, clocks, at).all()):
                np.maximum(self._all, one.clocks, out=self._all)
        self._some = [o for o in self._some if (o.clocks > self._all).any()]

    def _own(self, warp: int, lanes: Array, clocks: Clocks, at: Any) -> Array:
        """What lanes of a warp know of the units of their own block."""
        warps = self._shape[2] * self._unit // WARP
        seen = np.repeat(clocks.now[at, warp, :warps], WARP // self._unit)
        if self._unit == 1:
            own = slice(warp * WARP, (warp + 1) * WARP)
            synced = clocks.synced[at, own]
            met = np.minimum(synced, synced[lanes].max()) - 1
            if clocks.heard is not None:
                met = np.maximum(met, clocks.heard[at, own][lanes].max(0) - 1)
            seen[own] = np.where(lanes, seen[own], np.maximum(met, 0))
        return seen

    def published(self, who: tuple[int, Array], clocks: Clocks, at: Any) -> Array | None:
        """What an atomic of lanes of a warp tells; None: nothing, for nobody has fenced.

        That is what they knew at their own fence, and what other threads fenced before a barrier
        that these have passed (cumulativity as hardware and libraries have it)."""
        if not self._fenced:
            return None
        warp, lanes = who
        own = np.minimum(self._own(warp, lanes, clocks, at), self._fences)
        fenced = False
        for on, seen in self._fenced.get(warp, ()):
            if (on & lanes).any():
                own, fenced = np.maximum(own, seen), True
        if not own.any():
            return None
        out = self._all.copy()
        threads = warp * WARP + np.flatnonzero(lanes)
        for heard in self._some if fenced else ():
            if heard.reaches(threads, clocks, at).any():
                np.maximum(out, heard.clocks, out=out)
        mine = out[:, self._block + 1]
        np.maximum(mine[0], own, out=mine[0])
        if len(mine) > 1:
            fenced = np.repeat(clocks.fence_known[at, : clocks.warps], WARP // self._unit)
            np.maximum(mine[FENCED], np.minimum(own, fenced), out=mine[FENCED])
        return out

    def fence_proxy(self, threads: Array, clocks: Clocks, at: Any) -> None:
        """Threads fence for the asynchronous proxy what they know of other blocks."""
        np.maximum(self._all[0], self._all[FENCED], out=self._all[FENCED])
        for heard in self._some:
            if heard.reaches(threads, clocks, at).any():
                heard.clocks = np.maximum(heard.clocks[:1], heard.clocks)

    def covers(
        self, threads: Array | None, other: tuple[Array, ...], clocks: Clocks, at: Any, plane: int
    ) -> Array:
        """Whether threads (None: any) know of accesses of `other` blocks, as BlockOrder has it."""
        block, thread, when = other
        one = block < self._shape[1] - 1
        place: Any = (np.where(one, block + 1, 0), thread // self._unit)
        known = _holds(self._all[plane], place, one, when)
        for heard in self._some:
            held = _holds(heard.clocks[plane], place, one, when)
            known |= held if threads is None else held & heard.reaches(threads, clocks, at)
        return known


def _holds(clocks: Array, place: Any, one: Array, when: Array) -> Array:
    """Where clocks cover an access: at its time; of copies and of several blocks, any of it."""
    some = clocks[place[0]].any(-1) if bool((when == 0).any()) else False
    covered = np.where(when > 0, when <= clocks[place], some)
    return np.asarray(np.where(one, covered, bool(clocks.any())))


def by_warp(threads: Array) -> Iterator[tuple[int, Array]]:
    """Numbers of threads of a block as warps with their lanes, (32,) flags."""
    for warp in np.unique(threads // WARP).tolist():
        lanes = np.zeros(WARP, np.bool_)
        lanes[threads[threads // WARP == warp] % WARP] = True
        yield warp, lanes
