"""What the blocks of a launch know of each other: only what atomics have told them.

An atomic whose value the program reads tells its block what others did before their atomics on
the same element, and what they knew. Hides the vector clocks: one per warp of every block, or,
where those would fill too much memory, one bit (a block that has read an atomic may know all).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.ir import Buffer, walk
from tilelab.sim.clocks import Clocks
from tilelab.sim.frame import Array
from tilelab.target import WARP
from tilelab.thread import Invoke, ThreadKernel

_MOST = 1 << 25
"""Entries of all clocks together, beyond which blocks get one bit each."""


class BlockOrder:
    """Knowledge of blocks 0 to `blocks` - 1 of one launch of a kernel."""

    def __init__(self, kernel: ThreadKernel, blocks: int) -> None:
        self.used = any(tells(n) for n in walk(kernel.body))
        self._blocks, self._warps = blocks, -(-kernel.num_threads // WARP)
        self._heard = np.zeros(blocks + 1, np.bool_)  # blocks that have read an atomic, from 1 on
        self._told: dict[tuple[Buffer, int], Array] = {}  # by element: clocks (blocks, warps)
        # [b + 1, c + 1, w]: how much of the past of warp w of block c block b knows.
        self._known: Array | None = None
        if self.used and (blocks + 1) ** 2 * self._warps <= _MOST:
            self._known = np.zeros((blocks + 1, blocks + 1, self._warps), np.int32)

    def exchange(
        self, buffer: Buffer, elements: Array, threads: tuple[Array, Array], clocks: Clocks,
        first_block: int, reads: bool,
    ) -> None:  # fmt: skip
        """Atomic accesses to `elements` (flat) by `threads` (their blocks, their numbers in them),
        one after another; `reads`: the program uses the values."""
        blocks, numbers = threads
        if reads:
            self._heard[np.minimum(blocks, self._blocks - 1) + 1] = True
        known = self._known
        if known is None:
            return
        everything = np.unique(np.stack([blocks, elements, numbers // WARP]), axis=1)
        if (len(self._told) + everything.shape[1]) * known[0].size > _MOST:
            self._known = None
            return
        for block, element, warp in everything.T.tolist():
            told = self._told.get((buffer, element))
            if told is None:
                told = self._told[buffer, element] = np.zeros_like(known[0])
            mine = known[block + 1]
            if reads:
                np.maximum(mine, told, out=mine)
            row = clocks.of(block - first_block)
            np.maximum(told, mine, out=told)
            seen = clocks.now[row, warp, : self._warps]
            told[block + 1] = np.maximum(told[block + 1], seen)

    def unknown(self, by: Array, block: Array, thread: Array, when: Array) -> Array:
        """Where blocks `by` - 1 do not know of accesses by a thread of `block` - 1 (a number of no
        block: of several) at a time of its warp's clock (0: a copy, which barriers order)."""
        bad: Array = ~self._heard[by]
        if self._known is None or bad.all():
            return bad
        one = block <= self._blocks
        at: Any = (by, np.where(one, block, 0))
        clock = self._known[(*at, thread // WARP)]
        return bad | (one & np.where(when > 0, when > clock, ~self._known[at].any(-1)))


def tells(n: Any) -> bool:
    """Whether a statement is an atomic whose value the program reads."""
    if not isinstance(n, Invoke) or n.intrinsic.cost != "atomic":
        return False
    return n.result is not None or n.intrinsic.name.startswith("atomic_load")
