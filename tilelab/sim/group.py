"""The state of a group of blocks that are simulated together.

Hides where blocks of a launch are: `rows` count blocks of the group, coordinates come from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer, Scope
from tilelab.layout.digits import unravel
from tilelab.sim.barriers import BlockBarriers, MBarriers
from tilelab.sim.clocks import Clocks
from tilelab.sim.counters import KernelCounters
from tilelab.sim.findings import Finding, Findings
from tilelab.sim.frame import Array, Frame
from tilelab.sim.global_order import GlobalOrder
from tilelab.sim.global_written import GlobalWritten
from tilelab.sim.meetings import Meetings
from tilelab.sim.model import target_of
from tilelab.sim.pools import Pools
from tilelab.sim.register_pool import RegisterPool
from tilelab.sim.registers import Registers
from tilelab.sim.shadow import Access, Shadow
from tilelab.sim.shared import SharedMemory
from tilelab.sim.speech import Speech
from tilelab.sim.timeline import Timeline
from tilelab.target import WARP
from tilelab.thread import ThreadKernel


class BlockGroup:
    """Blocks `numbers` (linear, x fastest) of one launch of a kernel."""

    def __init__(
        self,
        kernel: ThreadKernel,
        grid: tuple[int, ...],
        numbers: Array,
        arrays: Mapping[Buffer, Array],
        findings: Findings,
        counters: KernelCounters,
        order: GlobalOrder,
        written: GlobalWritten,
        timeline: Timeline | None = None,
    ) -> None:
        self.kernel, self.grid, self.numbers = kernel, grid, numbers
        self.arrays, self.findings, self.counters = arrays, findings, counters
        self.order, self.written, self.timeline = order, written, timeline
        # Whether anything asks who touched shared memory, and when.
        self.watches = bool(findings.checks & {"async", "races", "uninitialised"})
        self.size = len(numbers)
        warps = -(-kernel.num_threads // WARP)
        self.clocks = Clocks(warps, self.size)
        self.registers = Registers(self.size, kernel.num_threads)
        self.shared = SharedMemory(kernel, self.size)
        granule = min((s.buffer.dtype.bytes for s in kernel.shared), default=4)
        self.shadow = Shadow(
            self.size, self.shared.bytes.shape[1], min(granule, 4), self.clocks.actors
        )
        self.barriers = BlockBarriers(self.size, kernel.num_threads, self.clocks)
        self.meetings = Meetings(self.size, warps * WARP)
        self.mbarriers = {
            s.buffer: MBarriers(s.buffer, self.size, self.clocks.actors)
            for s in kernel.shared
            if s.buffer.scope is Scope.BARRIER
        }
        self.dead = np.zeros(self.size, np.bool_)
        self.epoch = 0
        self.idle = 0  # turns of loops that ask, since anybody did anything else
        self.asking = 0  # how many strands do, when no other can go on
        self.hung = False  # whether some have been given up
        self.strands: list[Any] = []  # that have not ended, of the scheduler
        self.transfers: list[Any] = []  # TMA loads under way
        self.landing: list[Any] = []  # TMA stores that have not written global memory
        self.speech = Speech()
        self.pools: Pools | None = None  # of the launch
        self._pool: RegisterPool | None = None

    @property
    def register_pool(self) -> RegisterPool:
        """What setmaxnreg shares out."""
        if self._pool is None:
            limits = target_of(self.kernel).limits
            self._pool = RegisterPool(self.kernel, limits.registers_per_sm, self.size)
        return self._pool

    def coordinates(self, row: int) -> tuple[int, ...]:
        """blockIdx of a row, x first."""
        return unravel(int(self.numbers[row]), self.grid[::-1])[::-1]

    def handed_over(self) -> bool:
        """Whether a phase of an mbarrier has ended since this was last asked."""
        ended = [b for b in self.mbarriers.values() if b.handed_over]
        for barriers in ended:
            barriers.handed_over = False
        return bool(ended)

    def stop(self, rows: Array) -> None:
        """End blocks in which going on makes no sense."""
        self.dead[rows] = True
        self.epoch += 1

    def report(
        self,
        code: str,
        message: str,
        loc: Loc | None,
        *,
        row: int | None = None,
        thread: int | None = None,
        buffer: Buffer | None = None,
        index: tuple[int, ...] | None = None,
        other: Loc | None = None,
        hint: str = "",
        level: str = "error",
    ) -> None:
        """Record a finding, unless its block has stopped already."""
        if row is not None and self.dead[row]:
            return
        warp, lane = (None, None) if thread is None else (thread // WARP, thread % WARP)
        name = "" if buffer is None else buffer.said
        block = None if row is None else self.coordinates(row)
        self.findings.add(
            Finding(code, message, loc, name, index, block, warp, lane, hint, other, level=level)
        )

    def accessed(self, addresses: Any, num_bytes: int, frame: Frame) -> Access:
        """The shadow cells of one access: `num_bytes` from each address, where the mask allows."""
        shadow = self.shadow
        array = np.asarray(addresses)
        array = array.reshape(1, 1) if array.ndim == 0 else array
        shaped = [array.shape] if frame.mask is None else [array.shape, frame.mask.shape]
        uniform = frame.all_rows and all(s[-2] == 1 for s in shaped) and self.clocks.uniform
        if not uniform:
            shadow.expand()
        blocks = 1 if shadow.uniform else len(frame.rows)
        shape = np.broadcast_shapes(*shaped, (blocks, len(frame.lanes)))
        where = np.broadcast_to(array, shape)
        threads = np.broadcast_to(frame.lanes, shape)
        rows = None if shadow.uniform else np.broadcast_to(frame.rows[:, None], shape)
        chosen = None
        if frame.mask is not None:
            chosen = np.flatnonzero(np.broadcast_to(frame.mask, shape))
        return self._cells(where, threads, rows, num_bytes, chosen)

    def _cells(
        self, where: Array, threads: Array, rows: Array | None, num_bytes: int, chosen: Array | None
    ) -> Access:
        granule = self.shadow.granule
        span = max(num_bytes // granule, 1)
        flat, who = where.ravel(), threads.ravel()
        which = None if rows is None else rows.ravel()
        if chosen is not None:
            flat, who = flat[chosen], who[chosen]
            which = None if which is None else which[chosen]
        cells = flat // granule
        if span > 1:
            cells = (cells[:, None] + np.arange(span)).ravel()
            who = np.repeat(who, span)
            which = None if which is None else np.repeat(which, span)
        return Access(cells, who // WARP, which, span, where.shape, chosen, who)

    def chunk_access(self, chunks: Array, warps: Array, rows: Array | None) -> Access:
        """The cells of 16-byte pieces as an asynchronous unit touches them, for each of `warps`.

        `rows` None: all blocks of the group alike.
        """
        if rows is not None or not self.clocks.uniform:
            self.shadow.expand()
        span = 16 // self.shadow.granule
        cells = (chunks.reshape(-1, 1) * span + np.arange(span)).ravel()
        blocks = None if self.shadow.uniform else (np.arange(self.size) if rows is None else rows)
        count = 1 if blocks is None else len(blocks)
        total = count * len(warps)
        who = np.tile(np.repeat(warps, len(cells)), count)
        which = None if blocks is None else np.repeat(blocks, len(cells) * len(warps))
        return Access(np.tile(cells, total), who, which, span, (count, 1), None)
