"""The registers of a block that its warpgroups share out: setmaxnreg (PTX ISA, setmaxnreg).

Every thread is launched with an equal part of what the block may have; setmaxnreg.dec gives some
back to the block's pool, setmaxnreg.inc waits until the pool holds what it asks for. Hides how
many that are: `__launch_bounds__(threads, blocks)` lets the assembler take all that fit.
"""

from __future__ import annotations

import numpy as np

from tilelab.sim.frame import Array
from tilelab.target import WARPGROUP
from tilelab.thread import ThreadKernel

_STEP, _MOST = 8, 256  # registers a thread are handed out in eights, up to 256


class RegisterPool:
    """Registers a thread of each warpgroup, and those that were given back, of a group's blocks."""

    def __init__(self, kernel: ThreadKernel, registers_per_sm: int, blocks: int) -> None:
        share = registers_per_sm // (kernel.num_threads * max(kernel.min_blocks, 1))
        self.launched = min(share // _STEP * _STEP, _MOST)
        warpgroups = -(-kernel.num_threads // WARPGROUP)
        self.held = np.full((blocks, warpgroups), self.launched, np.int64)
        self.free = np.zeros(blocks, np.int64)  # a thread of one warpgroup

    def wanted(self, rows: Array, warpgroups: Array, count: int) -> Array:
        """What the warpgroups of each block lack of `count` registers a thread."""
        return np.maximum(count - self.held[np.ix_(rows, warpgroups)], 0).sum(axis=1)

    def give_back(self, rows: Array, warpgroups: Array, count: int) -> None:
        """Keep at most `count` registers a thread."""
        held = self.held[np.ix_(rows, warpgroups)]
        self.free[rows] += np.maximum(held - count, 0).sum(axis=1)
        self.held[np.ix_(rows, warpgroups)] = np.minimum(held, count)

    def take(self, rows: Array, warpgroups: Array, count: int) -> None:
        """Have at least `count` registers a thread, out of what is free."""
        self.free[rows] -= self.wanted(rows, warpgroups, count)
        held = self.held[np.ix_(rows, warpgroups)]
        self.held[np.ix_(rows, warpgroups)] = np.maximum(held, count)
