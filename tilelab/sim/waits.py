"""What a strand can wait for. A wait knows when it is over and can say what is missing.

Blocks that have stopped never hold up a wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tilelab.errors import Loc
from tilelab.sim.barriers import MBarriers
from tilelab.sim.frame import Array
from tilelab.sim.group import BlockGroup
from tilelab.sim.meetings import Meeting
from tilelab.sim.register_pool import RegisterPool
from tilelab.target import WARP


class Wait(Protocol):
    """Yielded by a strand; it is resumed when `blocked` is empty."""

    loc: Loc | None

    def blocked(self, group: BlockGroup) -> Array:
        """Rows of the group that still hold it up."""
        ...

    def missing(self, group: BlockGroup, row: int) -> str:
        """What is missing in one block."""
        ...


@dataclass
class PhaseWait:
    """mbarrier.try_wait: the phase of a parity has completed."""

    barriers: MBarriers
    rows: Array
    which: Array
    parity: Array
    loc: Loc | None

    def blocked(self, group: BlockGroup) -> Array:
        passed = self.barriers.passed(self.rows, self.which, self.parity)
        return self.rows[~passed & ~group.dead[self.rows]]

    def barrier(self, row: int) -> int:
        """The number of the barrier that one block waits at."""
        return int(self.which[int(np.flatnonzero(self.rows == row)[0])])

    def missing(self, group: BlockGroup, row: int) -> str:
        at = int(np.flatnonzero(self.rows == row)[0])
        which, parity = self.barrier(row), int(self.parity[at])
        state = self.barriers.state(row, which)
        return f"waits for parity {parity} of {self.barriers.name(which)}; {state}"


@dataclass
class BarrierWait:
    """bar.sync: the generation of a block-wide or named barrier has passed."""

    number: int
    rows: Array
    before: Array
    loc: Loc | None
    _known: tuple[tuple[int, int], Array] | None = None  # who is blocked, and when that was so

    def blocked(self, group: BlockGroup) -> Array:
        state = group.barriers.at(self.number)
        when = state.releases, group.epoch
        if self._known is None or self._known[0] != when:
            held = (state.generation[self.rows] == self.before) & ~group.dead[self.rows]
            self._known = when, self.rows[held]
        return self._known[1]

    def missing(self, group: BlockGroup, row: int) -> str:
        came, needs = group.barriers.missing(self.number, row)
        name = "__syncthreads" if self.number == 0 else f"named barrier {self.number}"
        return f"waits at {name}, where {came} of {needs} threads have come"


@dataclass
class MeetingWait:
    """bar.warp.sync, shfl.sync, vote.sync, match.sync: the lanes that a lane's mask names have
    come, wherever they are."""

    meeting: Meeting
    rows: Array
    lanes: Array
    before: Array
    loc: Loc | None

    def blocked(self, group: BlockGroup) -> Array:
        waits = self.meeting.ended[np.ix_(self.rows, self.lanes)] == self.before
        return self.rows[waits.any(axis=1) & ~group.dead[self.rows]]

    def missing(self, group: BlockGroup, row: int) -> str:
        at = int(np.flatnonzero(self.rows == row)[0])
        held = self.meeting.ended[row, self.lanes] == self.before[at]
        thread = int(self.lanes[held][0])
        absent = self.meeting.absent(row, thread)
        return (
            f"lane {thread % WARP} waits at {self.meeting.name} for lane {absent[0]}, which its "
            "mask names and which runs none with this mask"
        )


@dataclass
class RegisterWait:
    """setmaxnreg.inc: the block's pool holds what the warpgroups ask for."""

    pool: RegisterPool
    rows: Array
    warpgroups: Array
    count: int
    loc: Loc | None

    def blocked(self, group: BlockGroup) -> Array:
        lacks = self.pool.wanted(self.rows, self.warpgroups, self.count)
        return self.rows[(lacks > self.pool.free[self.rows]) & ~group.dead[self.rows]]

    def missing(self, group: BlockGroup, row: int) -> str:
        pool = self.pool
        lacks = int(pool.wanted(np.array([row]), self.warpgroups, self.count)[0])
        which = " and ".join(map(str, self.warpgroups.tolist()))
        held = "/".join(map(str, pool.held[row].tolist()))
        return (
            f"waits for {self.count} registers a thread (setmaxnreg) of warpgroup {which}: {lacks} "
            f"more than it has, and {int(pool.free[row])} are given back (the kernel starts with "
            f"{pool.launched} a thread, its warpgroups hold {held} now)"
        )


@dataclass
class HandOver:
    """No wait: a phase has ended, and those who waited for it get their turn."""

    rows: Array
    loc: Loc | None

    def blocked(self, group: BlockGroup) -> Array:
        return self.rows[:0]

    def missing(self, group: BlockGroup, row: int) -> str:
        return "can go on"


@dataclass
class Turn(HandOver):
    """No wait: a loop asks for what others must do first, and they get their turn."""


@dataclass
class JoinWait:
    """The sides of a branch have ended."""

    strands: Sequence[Any]
    loc: Loc | None

    def blocked(self, group: BlockGroup) -> Array:
        if all(s.done for s in self.strands):
            return np.zeros(0, np.int64)
        return np.concatenate([s.frame.rows for s in self.strands if not s.done])

    def missing(self, group: BlockGroup, row: int) -> str:
        return "waits for the other side of a branch"
