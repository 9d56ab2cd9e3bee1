"""The simulator's side of the `Machine` protocol, complete: with wgmma."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilelab.ir import Buffer
from tilelab.sim import findings as f
from tilelab.sim import speech
from tilelab.sim.frame import Array, Frame, varies
from tilelab.sim.group import BlockGroup
from tilelab.sim.lane_atomics import AtomicLanes
from tilelab.sim.lanes import at_lane
from tilelab.sim.place import Place
from tilelab.sim.timeline import Clock
from tilelab.sim.wgmma import Descriptor, Product, TensorCore
from tilelab.target import WARPGROUP

_REGISTER_BYTES = 16  # of A that a thread holds for one instruction


class LaneMachine(AtomicLanes):
    """What the lanes of one strand can do."""

    def __init__(self, group: BlockGroup, clock: Clock, late: bool) -> None:
        super().__init__(group, clock, late)
        self.tensor_core = TensorCore(group)

    def wgmma(
        self, n: int, d: Place, a: Any, b: Any, accumulate: Any, trans: tuple[bool, bool], k: int
    ) -> None:
        """Queue a product for every warpgroup that runs."""
        frame = self.frame
        values = held = None
        if isinstance(a, Place):
            self._check_fenced(a.buffer)
            slots = _REGISTER_BYTES // a.buffer.dtype.bytes
            shape = (slots, len(frame.rows), len(frame.lanes))
            values = np.broadcast_to(self.memory.load_run(a, slots, frame), shape)
            start = int(at_lane(a.indices[0], 0, 1)[0])
            held = (a.buffer, start, start + slots)
        self._check_fenced(d.buffer)
        register = int(at_lane(d.indices[0], 0, 1)[0])
        for first in range(0, len(frame.lanes), WARPGROUP):
            for rows, left, right in self._operands(a, b, values, first):
                part = self._warpgroup(first, rows)
                keep = _kept(accumulate, first, rows)
                self.tensor_core.issue(
                    Product(n, k, (d.buffer, register), left, right, keep, trans, part,
                            self.memory.loc, held=held)
                )  # fmt: skip
                self.clock.product(2 * 64 * n * k, part.rows, self.memory.loc)
        self.memory.in_flight = self.tensor_core.unfinished()
        self.count("mma_flops", 2 * 64 * n * k // WARPGROUP)

    def _check_fenced(self, buffer: Buffer) -> None:
        """PTX ISA, wgmma.fence: before the first wgmma, and after accesses to its registers."""
        if self.memory.fenced and buffer not in self.memory.touched:
            return
        text = f"registers of {buffer.said} were written and no wgmma.fence "
        if buffer not in self.memory.touched:
            text = "it is the first one, and no wgmma.fence "
        self.report(f.MISSING_WAIT, text + "(warpgroup_arrive) stands before this wgmma")

    def _operands(
        self, a: Any, b: Descriptor, values: Array | None, first: int
    ) -> Iterator[tuple[Array | None, Any, Any]]:
        """The operands of one warpgroup, for each set of rows that agree on addresses."""
        count = len(self.frame.rows)
        starts = [at_lane(b.start, first, count)]
        if values is None:
            starts.append(at_lane(a.start, first, count))
        for rows in _agreeing(np.stack(starts)):
            at = 0 if rows is None else int(np.flatnonzero(rows)[0])
            if values is None:
                left: Any = (a, int(starts[1][at]))
            else:
                left = values[..., first : first + WARPGROUP]
                left = left if rows is None else left[:, rows]
            yield rows, left, (b, int(starts[0][at]))

    def _warpgroup(self, first: int, rows: Array | None) -> Frame:
        frame = self.frame
        if len(frame.lanes) == WARPGROUP and rows is None:
            return frame
        chosen = np.zeros(len(frame.lanes), np.bool_)
        chosen[first : first + WARPGROUP] = True
        return frame.narrowed(rows, chosen, self.group.size)

    def wgmma_commit(self) -> None:
        """Close the group of products."""
        self.tensor_core.commit()
        self.clock.products.commit()

    def wgmma_wait(self, pending: int) -> Iterator[Any]:
        """Products of all but the newest `pending` groups take effect."""
        self.tensor_core.wait(pending, self.acting())
        self.memory.in_flight = self.tensor_core.unfinished()
        self.clock.finish(self.clock.products, pending, self.frame.rows, self.memory.loc, "wgmma")
        return self._no_wait()

    def say(self, text: str, values: Sequence[Any]) -> None:
        """Print for every active lane."""
        speech.say(self.group, self.frame, self.memory.loc, text, values)

    def require(self, ok: Any, text: str) -> None:
        """A failed assertion ends its blocks."""
        speech.require(self.group, self.frame, self.memory.loc, ok, text)

    def inherit(self, other: LaneMachine) -> None:
        """Begin with the work that another strand has under way."""
        self.inherit_copies(other)
        self.tensor_core.queue = other.tensor_core.queue.copy()
        self.memory.in_flight = list(other.memory.in_flight)
        self.memory.touched = set(other.memory.touched)
        self.memory.fenced = other.memory.fenced

    def adopt(self, other: LaneMachine) -> None:
        """Take over the work that an ended strand has under way."""
        self.adopt_copies(other)
        self.tensor_core.queue.adopt(other.tensor_core.queue)
        self.memory.in_flight = self.tensor_core.unfinished()
        self.memory.touched |= other.memory.touched
        self.memory.fenced |= other.memory.fenced

    def finish(self) -> None:
        """The kernel ends: what is under way still happens."""
        self.finish_stores()
        self.tensor_core.commit()
        self.tensor_core.wait(0)
        self.memory.in_flight = []


def _kept(accumulate: Any, first: int, rows: Array | None) -> Any:
    """The accumulate operand of one warpgroup; a bool when its lanes agree."""
    if not varies(accumulate):
        return accumulate
    keep = accumulate
    if keep.shape[-1] > 1:
        keep = keep[..., first : first + WARPGROUP]
    if rows is not None and keep.shape[-2] > 1:
        keep = keep[..., rows, :]
    one = keep.reshape(-1)[0]
    return bool(one) if bool((keep == one).all()) else keep != 0


def _agreeing(starts: Array) -> list[Array | None]:
    """Selections of rows that have equal columns; [None] when all rows have."""
    if bool((starts == starts[:, :1]).all()):
        return [None]
    _, numbers = np.unique(starts, axis=1, return_inverse=True)
    numbers = numbers.reshape(-1)
    return [numbers == n for n in range(int(numbers.max()) + 1)]
