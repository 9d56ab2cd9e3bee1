"""Lanes of a warp that wait for each other from different places of the program.

bar.warp.sync (PTX ISA) counts a lane wherever it runs one with the same mask, so the sides of a
branch may each hold theirs. Hides which lanes have come, and that parts of a warp meet by
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilelab.ir import If, Node, walk
from tilelab.sim.clocks import Clocks
from tilelab.sim.frame import Array
from tilelab.target import WARP
from tilelab.thread import Invoke
from tilelab.thread.intrinsics.exchange import SYNCWARP

_BITS = np.left_shift(np.uint32(1), np.arange(WARP, dtype=np.uint32))


def parted(body: Node) -> Iterator[Invoke]:
    """The warp barriers of branches that hold some on both sides: others may wait at another."""
    for n in walk(body):
        if isinstance(n, If) and n.orelse is not None:
            sides = [list(_warp_barriers(side)) for side in (n.then, n.orelse)]
            if all(sides):
                yield from (call for side in sides for call in side)


def _warp_barriers(body: Node) -> Iterator[Invoke]:
    return (n for n in walk(body) if isinstance(n, Invoke) and n.intrinsic is SYNCWARP)


class Meetings:
    """Who waits at a warp barrier, for a group of `blocks`: arrays (blocks, threads)."""

    def __init__(self, blocks: int, clocks: Clocks) -> None:
        self.clocks = clocks
        shape = (blocks, clocks.warps * WARP)
        self.asked = np.zeros(shape, np.uint32)  # the mask that a lane waits with; 0: it does not
        self.ended = np.zeros(shape, np.int64)  # how many of its waits are over

    def arrive(self, rows: Array, lanes: Array, masks: Array) -> Array:
        """Lanes come, each with the lanes that it names (rows, lanes); their counts before."""
        at = np.ix_(rows, lanes)
        before = self.ended[at]
        self.asked[at] = masks
        self._end(rows)
        return before

    def _end(self, rows: Array) -> None:
        """Let those go on whose mask names nobody who has not come with the same mask."""
        asked = self.asked[rows].reshape(len(rows), -1, WARP)
        same = asked[..., :, None] == asked[..., None, :]
        came = np.where(same, _BITS, 0).sum(-1, dtype=np.uint32)
        done = ((asked != 0) & (asked & ~came == 0)).reshape(len(rows), -1)
        patterns, numbers = np.unique(done, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            threads, over = np.flatnonzero(pattern), rows[numbers.reshape(-1) == number]
            if len(threads):
                at = np.ix_(over, threads)
                self.asked[at] = 0
                self.ended[at] += 1
                self.clocks.converge(over, threads)

    def absent(self, row: int, thread: int) -> list[int]:
        """The lanes that a thread waits for."""
        first = thread // WARP * WARP
        asked, mask = self.asked[row, first : first + WARP], int(self.asked[row, thread])
        return [i for i in range(WARP) if mask >> i & 1 and int(asked[i]) != mask]
