"""Lanes of a warp that act together from different places of the program.

bar.warp.sync, shfl.sync, vote.sync and match.sync (PTX ISA) count a lane wherever it runs one with
the same mask, so the sides of a branch may each hold theirs. Hides who has come and with which
values, and that parts of a warp meet by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilelab.ir import If, Node, walk
from tilelab.sim.frame import Array
from tilelab.target import WARP
from tilelab.thread import Intrinsic, Invoke
from tilelab.thread.intrinsics.exchange import by_mask

LANE_BITS = np.left_shift(np.uint32(1), np.arange(WARP, dtype=np.uint32))
"""The bit of each lane in a mask."""


def parted(body: Node) -> Iterator[Invoke]:
    """The instructions that lanes on the other side of a branch may run, too, at their place."""
    for n in walk(body):
        if isinstance(n, If) and n.orelse is not None:
            sides = [list(_by_mask(side)) for side in (n.then, n.orelse)]
            both = {c.intrinsic for c in sides[0]} & {c.intrinsic for c in sides[1]}
            yield from (c for side in sides for c in side if c.intrinsic in both)


def _by_mask(body: Node) -> Iterator[Invoke]:
    return (n for n in walk(body) if isinstance(n, Invoke) and by_mask(n.intrinsic))


class Meeting:
    """Who waits at one instruction, and with what: arrays (blocks, threads)."""

    def __init__(self, name: str, shape: tuple[int, int], types: Sequence[Any]) -> None:
        self.name = name
        self.asked = np.zeros(shape, np.uint32)  # the mask that a lane waits with; 0: it does not
        self.ended = np.zeros(shape, np.int64)  # how many of its waits are over
        self.operands = [np.zeros(shape, t) for t in types]
        self._values: Array | None = None

    def arrive(self, rows: Array, lanes: Array, masks: Array, operands: Sequence[Array]) -> Array:
        """Lanes come, each with those that it names (rows, lanes); how many waits of each were
        over before."""
        at = np.ix_(rows, lanes)
        self.asked[at] = masks
        for kept, new in zip(self.operands, operands, strict=True):
            kept[at] = new
        return self.ended[at]

    def complete(self, rows: Array) -> list[tuple[Array, Array]]:
        """The (blocks, threads) of which none names one that has not come with the same mask:
        their waits are over."""
        asked = self.asked[rows].reshape(len(rows), -1, WARP)
        same = asked[..., :, None] == asked[..., None, :]
        came = np.where(same, LANE_BITS, 0).sum(-1, dtype=np.uint32)
        done = ((asked != 0) & (asked & ~came == 0)).reshape(len(rows), -1)
        patterns, numbers = np.unique(done, axis=0, return_inverse=True)
        found: list[tuple[Array, Array]] = []
        for number, pattern in enumerate(patterns):
            if pattern.any():
                found.append((rows[numbers.reshape(-1) == number], np.flatnonzero(pattern)))
                at = np.ix_(*found[-1])
                self.asked[at] = 0
                self.ended[at] += 1
        return found

    def give(self, rows: Array, threads: Array, values: Array) -> None:
        """What the instruction gave to threads."""
        if self._values is None:
            self._values = np.zeros(self.asked.shape, values.dtype)
        self._values[np.ix_(rows, threads)] = values

    def given(self, rows: Array, lanes: Array) -> Array | None:
        """What it gave to lanes; None: it gives no values."""
        return None if self._values is None else self._values[np.ix_(rows, lanes)]

    def absent(self, row: int, thread: int) -> list[int]:
        """The lanes that a thread waits for."""
        first = thread // WARP * WARP
        asked, mask = self.asked[row, first : first + WARP], int(self.asked[row, thread])
        return [i for i in range(WARP) if mask >> i & 1 and int(asked[i]) != mask]


class Meetings:
    """The meetings of a group of blocks: one for each instruction, and types of its operands."""

    def __init__(self, blocks: int, threads: int) -> None:
        self._shape = (blocks, threads)
        self._open: dict[Any, Meeting] = {}

    def at(self, record: Intrinsic, operands: Sequence[Array]) -> Meeting:
        """Where the lanes that run an instruction meet."""
        types = tuple(o.dtype for o in operands)
        found = self._open.get((record, types))
        if found is None:
            name = "T.sync_warp" if record.name == "syncwarp" else f"T.{record.name}"
            found = self._open[record, types] = Meeting(name, self._shape, types)
        return found
