"""Who has seen whose past: vector clocks of the warps of each block, and of lanes of one warp.

Hides that one row of clocks stands for all blocks of a group while they do the same; each block
gets a row of its own when they part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.target import WARP

Array = np.ndarray[Any, Any]


class Clocks:
    """One vector clock per actor: `now[row, w, u]` is how much of actor u's past actor w has seen.

    Actors are the warps, and after them a tensor core for each warp: the part of a wgmma that a
    warp has asked for reads shared memory beside it, and begins after what that warp knows.

    Lanes of one warp run in step in the simulator, on the chip they need not (CUDA C++ programming
    guide, "Independent Thread Scheduling"): `synced[row, t]` is its warp's time when thread t last
    took part in a barrier. What another lane did at that time or later has no order with it.
    """

    def __init__(self, warps: int, blocks: int = 1) -> None:
        self.warps, self.blocks = warps, blocks
        self.actors = 2 * warps
        self.now = np.zeros((1, self.actors, self.actors), np.int32)
        self.now[:, np.arange(self.actors), np.arange(self.actors)] = 1
        self.fenced = np.zeros((1, self.actors), np.int32)  # how much of its past is proxy-fenced
        self.fence_known = np.zeros((1, self.actors), np.int32)  # by whom ever knew of it
        self.init_fenced = np.zeros((1, self.actors), np.int32)  # as for barrier initialisation
        self.synced = np.zeros((1, warps * WARP), np.int32)
        # Threads that have not met a lane of their warp which waited at an mbarrier without them,
        # (1 or blocks, threads), and what their warps knew before that wait.
        self.unaware: Array | None = None
        self.before = np.zeros_like(self.now)
        self.heard: Array | None = None  # (1 or blocks, threads, 32 lanes): by flags

    @property
    def uniform(self) -> bool:
        """Whether one row stands for all blocks."""
        return len(self.now) == 1

    def part(self) -> None:
        """Blocks go apart: a row for each."""
        if not self.uniform or self.blocks == 1:
            return
        for name in ("now", "fenced", "fence_known", "init_fenced", "synced", "before"):
            setattr(self, name, np.repeat(getattr(self, name), self.blocks, axis=0))
        for name in ("heard", "unaware"):
            kept = getattr(self, name)
            setattr(self, name, None if kept is None else np.repeat(kept, self.blocks, axis=0))

    def rows(self, rows: Array) -> Array:
        """Where the clocks of these blocks of the group are, as a column; they part from the
        others if they are not all."""
        if self.uniform and len(rows) < self.blocks:
            self.part()
        return self.column(rows)

    def column(self, rows: Array) -> Array:
        """Where the clocks of these blocks are, as a column, for looking things up."""
        return np.zeros((1, 1), np.int64) if self.uniform else rows[:, None]

    def of(self, rows: Any) -> Any:
        """Where the clocks of the blocks `rows` are (None: all alike), for looking things up."""
        return 0 if self.uniform or rows is None else rows

    def unknown(self, at: Any, this: Array, that: Array, when: Array) -> Array:
        """Where threads `this` of blocks (`at`: where their clocks are) do not know of what
        threads `that` did at times `when` of their warps."""
        late: Array = when > self.now[at, this // WARP, that // WARP]
        beside = (this != that) & (this // WARP == that // WARP)
        if beside.any():
            late |= beside & (when >= self.met(at, this, that))
        return late

    def met(self, at: Any, this: Array, that: Array) -> Array:
        """The time from which on threads `this` know nothing of others of their warps."""
        since = np.minimum(self.synced[at, this], self.synced[at, that])
        return since if self.heard is None else np.maximum(since, self.heard[at, this, that % WARP])

    def hear(self, row: int, threads: Array, times: Array) -> None:
        """Threads of a warp come to know its lanes' pasts up to `times` (32) by an atomic."""
        at = self.rows(np.array([row]))[0]
        if self.heard is None:
            self.heard = np.zeros((len(self.now), self.synced.shape[1], WARP), np.int32)
        self.heard[at, threads] = np.maximum(self.heard[at, threads], times + 1)

    def alone(self, rows: Array, lanes: Array, threads: int) -> bool:
        """Whether lanes have waited without others of their warps, of a block of `threads`: these
        will not know what they `observe`."""
        others = np.setdiff1d(np.arange(threads), lanes)
        others = others[np.isin(others // WARP, lanes // WARP)]
        if not len(others):
            return False
        at = self.rows(rows)
        if self.unaware is None:
            self.unaware = np.zeros(self.synced.shape, np.bool_)
        unaware = self.unaware
        for warp in np.unique(others // WARP).tolist():
            mine = others[others // WARP == warp]
            known = np.any(unaware[at, warp * WARP + np.arange(WARP)], axis=1, keepdims=True)
            old = self.before[at, warp]
            self.before[at, warp] = np.where(known[..., None], old, self.now[at, warp])
            unaware[at, mine] |= ~known
        unaware[at, lanes] = False
        return True

    def seen_by(self, at: Any, warps: Array, threads: Array | None) -> Array:
        """What threads of some warps (None: copies of theirs) have seen, (entries, actors)."""
        seen: Array = self.now[at, warps]
        if self.unaware is None or threads is None:
            return seen
        deaf: Array = self.unaware[at, threads]
        if deaf.any():
            own = self.now[at, warps, warps]
            seen = np.where(deaf[:, None], self.before[at, warps], seen)
            seen[np.arange(len(seen)), warps] = own
        return seen

    def tensor_cores(self, warps: Array) -> Array:
        """The actors that run the wgmmas of some warps."""
        return self.warps + warps

    def name(self, actor: int) -> str:
        """An actor for a message."""
        return f"warp {actor}" if actor < self.warps else "a wgmma"

    def own(self, rows: Array, warps: Array) -> Array:
        """The warps' own times, (rows or 1, warps)."""
        return self.now[self.column(rows), warps, warps]

    def begin(self, rows: Array, warps: Array) -> None:
        """A wgmma is issued: each warp's part comes after what that warp knows and did."""
        at, cores = self.rows(rows), self.tensor_cores(warps)
        self.now[at, cores] = np.maximum(self.now[at, cores], self.now[at, warps])
        self.now[at, warps, warps] += 1

    def end(self, rows: Array, warps: Array) -> None:
        """The warps have waited for their wgmma: they know its reads, nothing more. Its four
        parts end together, so that one warp's wait is enough to give a tile back."""
        at, cores = self.rows(rows), self.tensor_cores(warps)
        ended = self.now[at, cores, cores]
        for known in (self.now, self.before):
            known[at[..., None], warps[:, None], cores] = ended[:, None, :]
        self.now[at, cores, cores] += 1

    def publish(self, rows: Array, warps: Array) -> Array:
        """What the warps have seen and done, joined, (rows or 1, actors); their later accesses
        are newer."""
        at = self.rows(rows)
        joined = self.now[at, warps].max(axis=1)
        self.now[at, warps, warps] += 1
        return joined

    def observe(self, rows: Array, warps: Array, seen: Array, alone: bool = False) -> None:
        """The warps (`alone`: lanes of theirs) come to know `seen`, (rows or 1, actors)."""
        if self.uniform and len(seen) > 1:
            if bool((seen == seen[0]).all()) and len(rows) == self.blocks:
                seen = seen[:1]
            else:
                self.part()
        at = self.rows(rows)
        own = self.now[at, warps, warps]
        if not alone and self.unaware is not None:
            self.before[at, warps] = np.maximum(self.before[at, warps], seen[:, None, :])
        self.now[at, warps] = np.maximum(self.now[at, warps], seen[:, None, :])
        self.now[at, warps, warps] = own

    def converge(self, rows: Array, threads: Array) -> None:
        """The threads, of whole warps or parts of them, have waited for each other."""
        at, warps = self.rows(rows), np.unique(threads // WARP)
        self.now[at, warps, warps] += 1
        self.synced[at, threads] = self.now[at, threads // WARP, threads // WARP]
        unaware = self.unaware
        if unaware is not None and unaware.any():
            for warp in warps.tolist():
                met = threads[threads // WARP == warp]
                unaware[at, met] &= unaware[at, met].all(axis=1, keepdims=True)

    def fence(self, rows: Array, warps: Array) -> None:
        """fence.proxy.async of the warps."""
        at = self.rows(rows)
        self.fenced[at, warps] = self.now[at, warps, warps]
        known = self.now[at, warps].max(axis=1)
        rows = at[:, 0]
        self.fence_known[rows] = np.maximum(self.fence_known[rows], known)
        self.now[at, warps, warps] += 1

    def fence_init(self, rows: Array, warps: Array) -> None:
        """fence.mbarrier_init of the warps."""
        at = self.rows(rows)
        self.init_fenced[at, warps] = self.now[at, warps, warps]

    def barrier(self, rows: Array, warps: Array, told: Array | None = None) -> None:
        """The warps wait for each other, and for others that have `told` (rows, actors)."""
        seen = self.publish(rows, warps)
        self.observe(rows, warps, seen if told is None else np.maximum(seen, told))
        self.converge(rows, (warps[:, None] * WARP + np.arange(WARP)).ravel())
