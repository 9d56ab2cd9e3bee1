"""What the blocks of a launch know of each other: only what atomics have told them.

A thread that fences and then updates an element by an atomic publishes there what it knew at its
fence; one that reads the element by an atomic whose value the program uses, and fences then, has
heard it (PTX ISA, "Memory Consistency Model": release and acquire patterns; a relaxed atomic alone
orders nothing, and passes on what others published). Memory orders stronger than relaxed are
made of these fences. Hides the clocks of every thread (of warps, where there are many blocks);
where those too would fill too much memory, blocks are taken to know all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.ir import Buffer, walk
from tilelab.sim.block_knowledge import Knowledge, by_warp
from tilelab.sim.clocks import Clocks
from tilelab.sim.frame import Array
from tilelab.target import WARP
from tilelab.thread import Invoke, ThreadKernel

_MOST = 1 << 25
"""Entries of all clocks together, beyond which blocks get one bit each."""


@dataclass
class _Told:
    """What the atomics on one element have published, as clocks; how often it has grown."""

    clocks: Array
    version: int = 0

    def add(self, published: Array) -> None:
        if (published > self.clocks).any():
            np.maximum(self.clocks, published, out=self.clocks)
            self.version += 1


class BlockOrder:
    """Knowledge of blocks 0 to `blocks` - 1 of one launch of a kernel. `fenced`: also of what lies
    before a proxy fence, for kernels with TMA loads of what they write."""

    def __init__(self, kernel: ThreadKernel, blocks: int, fenced: bool) -> None:
        calls = [n for n in walk(kernel.body) if isinstance(n, Invoke)]
        self.used = any(map(tells, calls)) and any(n.intrinsic.fences for n in calls)
        self._blocks = blocks
        threads = -(-kernel.num_threads // WARP) * WARP
        self._unit = 1 if (blocks + 1) ** 2 * threads <= _MOST else WARP
        self._shape = 2 if fenced else 1, blocks + 1, threads // self._unit
        self._known: dict[int, Knowledge] = {}
        self._told: dict[tuple[Buffer, int], _Told] = {}
        self._exact = (blocks + 1) ** 2 * self._shape[0] * self._shape[2] <= _MOST

    def _of(self, block: int) -> Knowledge:
        found = self._known.get(block)
        if found is None:
            found = self._known[block] = Knowledge(block, self._shape, self._unit)
        return found

    def exchange(
        self, buffer: Buffer, elements: Array, threads: tuple[Array, Array], clocks: Clocks,
        first_block: int, statement: Any,
    ) -> None:  # fmt: skip
        """Atomic accesses to `elements` (by number) by `threads` (their blocks, their numbers in
        them), one after another."""
        blocks, numbers = threads
        if not self._exact or not (self._told or any(k.fenced for k in self._known.values())):
            return
        reads = tells(statement)
        writes = any(p.role == "updates" for p in statement.intrinsic.operands)
        several, which = np.unique(np.stack([blocks, elements]), axis=1, return_inverse=True)
        for i, (block, element) in enumerate(several.T.tolist()):
            place, known, at = (buffer, element), self._of(block), clocks.of(block - first_block)
            for who in by_warp(numbers[which.reshape(-1) == i]):
                told = self._told.get(place)
                if reads and told is not None:
                    known.read((place, told.version), told.clocks, who, clocks, at)
                published = known.published(who, clocks, at) if writes else None
                if published is not None:
                    told = told or self._told.setdefault(place, _Told(np.zeros_like(published)))
                    told.add(published)
        size = int(np.prod(self._shape))
        self._exact = (len(self._told) + len(self._known)) * size <= _MOST

    def fence(self, blocks: Array, threads: Array, clocks: Clocks, first_block: int) -> None:
        """Threads (their blocks, their numbers in them) fence: what they have read is heard, what
        they know is for their later atomics to publish."""
        for block in np.unique(blocks).tolist() if self._exact else ():
            self._of(block).fence(threads[blocks == block], clocks, block - first_block)

    def fence_proxy(self, blocks: Array, threads: Array, clocks: Clocks, first_block: int) -> None:
        """Threads (their blocks, their numbers in them) fence for the asynchronous proxy, by which
        what they know of may be read from now on."""
        for block in np.unique(blocks).tolist() if self._exact and self._shape[0] > 1 else ():
            at = clocks.of(block - first_block)
            self._of(block).fence_proxy(threads[blocks == block], clocks, at)

    def unknown(
        self, by: tuple[Array, Array], other: tuple[Array, Array, Array], clocks: Clocks,
        first_block: int, whole: bool, plane: int = 0,
    ) -> Array:  # fmt: skip
        """Where threads `by` (numbers of their blocks, and theirs) do not know of accesses by
        `other`: block (a number of no block: of several), thread and time of its warp's clock (0:
        a copy, which barriers order). `whole`: what any thread of a block knows counts. `plane`:
        of the clocks."""
        blocks, threads = by
        bad = np.full(blocks.shape, self._exact)
        for block in np.unique(blocks).tolist() if self._exact else ():
            if block in self._known:
                on = blocks == block
                theirs = tuple(np.broadcast_to(o, bad.shape)[on] for o in other)
                mine = None if whole else np.broadcast_to(threads, bad.shape)[on]
                at = clocks.of(block - first_block)
                bad[on] = ~self._known[block].covers(mine, theirs, clocks, at, plane)
        return bad


def tells(n: Any) -> bool:
    """Whether a statement is an atomic whose value the program reads."""
    if not isinstance(n, Invoke) or n.intrinsic.cost != "atomic":
        return False
    return n.result is not None or n.intrinsic.name.startswith("atomic_load")
