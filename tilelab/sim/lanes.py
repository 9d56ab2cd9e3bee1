"""What instruction records may do with memory: the part of `Machine` that knows lanes and warps.

One per strand. Hides how lanes are grouped into warps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.sim import findings as f
from tilelab.sim import speech
from tilelab.sim.access import CheckedMemory
from tilelab.sim.frame import Array, Frame, varies
from tilelab.sim.group import BlockGroup
from tilelab.sim.meetings import LANE_BITS
from tilelab.sim.nans import check_product
from tilelab.sim.place import Place
from tilelab.sim.timeline import Clock
from tilelab.target import WARP
from tilelab.thread import Invoke

WHOLE = 0xFFFFFFFF


class BlocksStopped(Exception):
    """Raised inside a strand when none of its blocks goes on."""


class Lanes:
    """Memory and lanes of the instruction that runs; `frame` is set before each one."""

    frame: Frame

    def __init__(self, group: BlockGroup, clock: Clock, late: bool) -> None:
        self.group, self.clock, self.late = group, clock, late
        self.memory = CheckedMemory(group)
        self._multiplied: list[Array] = []  # of the matrix product that runs

    def load(self, place: Place, count: int, *, packed: bool = False) -> Array:
        """Consecutive elements, new first axis."""
        values = self.memory.load_run(place, count, self.frame)
        if self._multiplies():
            self._multiplied.append(values)
        return values

    def store(self, place: Place, values: Array, *, packed: bool = False) -> None:
        """Write consecutive elements, axis 0 of `values`."""
        values = values.astype(place.buffer.dtype.numpy, copy=False)
        if self._multiplies():
            operands, self._multiplied = self._multiplied, []
            check_product(self.memory, operands, values, self.frame)
        self.memory.store_run(place, values, self.frame)

    def _multiplies(self) -> bool:
        """Whether the instruction is a matrix product that is looked at for NaN."""
        if not self.group.findings.wants(f.NOT_A_NUMBER):
            return False
        stmt = self.memory.statement
        return isinstance(stmt, Invoke) and stmt.intrinsic.cost == "mma"

    def load_rows(self, place: Place, lanes: Array) -> Array:
        """The 16-byte rows whose addresses `lanes` of each warp hold: (rows, 8, ..., warps)."""
        frame, warps = self._row_frame(lanes)
        place = _narrowed_place(place, self.frame, frame)
        count = 16 // place.buffer.dtype.bytes
        values = self.memory.load_run(place, count, frame)
        shape = np.broadcast_shapes(values.shape[1:], frame.shape[-2:])
        values = np.broadcast_to(values, (count, *shape))
        split = values.reshape(*values.shape[:-1], warps, len(lanes))
        return np.moveaxis(split, -1, 0)

    def store_rows(self, place: Place, lanes: Array, values: Array) -> None:
        """Write such rows."""
        frame, _ = self._row_frame(lanes)
        place = _narrowed_place(place, self.frame, frame)
        merged = np.moveaxis(values, 0, -1)
        merged = merged.reshape(*merged.shape[:-2], len(frame.lanes))
        self.memory.store_run(place, merged.astype(place.buffer.dtype.numpy, copy=False), frame)

    def _row_frame(self, lanes: Array) -> tuple[Frame, int]:
        """A frame of the lanes of every warp whose addresses count, and the number of warps."""
        frame = self.frame
        warps = len(frame.lanes) // WARP
        if len(lanes) == WARP:
            return frame, warps
        return frame.narrowed(None, np.isin(frame.lanes % WARP, lanes), self.group.size), warps

    def whole(self, size: int, what: str) -> None:
        """Stop the blocks, with a finding, unless whole warps or warpgroups run this."""
        frame = self.frame
        if frame.mask is None and self._whole_warps(size):
            return
        unit = "warp" if size == WARP else "warpgroup"
        text = f"{what} needs all {size} threads of a {unit} together"
        self.report(f.PARTIAL_WARP, text)
        self.group.stop(frame.rows)
        raise BlocksStopped

    def _whole_warps(self, size: int) -> bool:
        """Whether the frame's lanes are whole groups of `size` threads."""
        if len(self.frame.lanes) % size:
            return False
        groups = self.frame.lanes.reshape(-1, size)
        starts = groups[:, 0]
        return not (starts % size).any() and bool((groups[:, -1] - starts == size - 1).all())

    def whole_block(self, what: str) -> None:
        """Stop the blocks, with a finding, unless all their threads run this."""
        frame, threads = self.frame, self.group.kernel.num_threads
        if frame.mask is None and len(frame.lanes) == threads:
            return
        self.report(f.PARTIAL_WARP, f"{what} needs all {threads} threads of the block together")
        self.group.stop(frame.rows)
        raise BlocksStopped

    def together(self, mask: Any, what: str) -> Array | None:
        """The masks of the lanes that act together in each warp; None: whole warps do."""
        frame, masks = self.frame, np.asarray(mask)
        every = frame.mask is None and len(frame.lanes) % WARP == 0
        if every and bool((masks == WHOLE).all()) and self._whole_warps(WARP):
            return None
        named, on = self.named(masks), self.by_warp(self.active())
        running = np.where(on, LANE_BITS, 0).sum(-1, keepdims=True, dtype=np.uint32)
        missing = np.where(on, (named & ~running) | (LANE_BITS & ~named), 0)
        if missing.any():
            at = np.unravel_index(int((missing != 0).argmax()), missing.shape)
            gone = [i for i in range(WARP) if int(missing[at]) >> i & 1]
            own = "" if gone != [at[-1]] else ", itself"
            text = f"lane {at[-1]} runs {what} without lane {gone[0]}{own}: "
            text += "the mask must name the lanes that run it, and no others"
            if bool((self.full(masks) == WHOLE).all()):
                text = f"{what} needs all {WARP} threads of a warp together"
            self.report(f.PARTIAL_WARP, text, int(at[-3]))
            self.group.stop(frame.rows)
            raise BlocksStopped
        return named

    def named(self, masks: Array) -> Array:
        """The lanes of the block that running lanes name (..., rows, warps, 32)."""
        named = self.by_warp(np.where(self.active(), self.full(masks), 0).astype(np.uint32))
        there = self.warps()[:, None] * WARP + np.arange(WARP) < self.group.kernel.num_threads
        return named & np.where(there, LANE_BITS, 0).sum(-1, keepdims=True, dtype=np.uint32)

    def takes_part(self, ok: Array, text: str) -> None:
        """Stop the blocks, with a finding, in which `ok` does not hold for a running lane."""
        speech.require(self.group, self.frame, self.memory.loc, ok, text, f.PARTIAL_WARP)

    def by_warp(self, values: Array) -> Array:
        """(..., rows, lanes) -> (..., rows, warps, 32), zeros for lanes that are not in the
        frame."""
        lanes = self.frame.lanes
        if not self._whole_warps(WARP):
            warps, number = np.unique(lanes // WARP, return_inverse=True)
            out = np.zeros((*values.shape[:-1], len(warps) * WARP), values.dtype)
            out[..., number * WARP + lanes % WARP] = values
            values = out
        return values.reshape(*values.shape[:-1], -1, WARP)

    def by_lane(self, values: Array) -> Array:
        """The reverse of `by_warp`."""
        flat, lanes = values.reshape(*values.shape[:-2], -1), self.frame.lanes
        if self._whole_warps(WARP):
            return flat
        _, number = np.unique(lanes // WARP, return_inverse=True)
        return flat[..., number * WARP + lanes % WARP]

    def full(self, value: Any) -> Array:
        """A value with an entry for every lane of every row."""
        return np.broadcast_to(np.asarray(value), self.frame.shape)

    def active(self) -> Array:
        """Where the mask is on; the lanes of a warp that are not in the frame are left out."""
        return self.full(True if self.frame.mask is None else self.frame.mask)

    def acting(self) -> Array | None:
        """Which threads of the group's blocks run this, those of stopped blocks included; None:
        all."""
        frame, group = self.frame, self.group
        threads = group.kernel.num_threads
        if frame.mask is None and frame.all_rows and len(frame.lanes) == threads:
            return None
        on = np.zeros((group.size, threads), np.bool_)
        on[np.ix_(frame.rows, frame.lanes)] = self.active()
        on[group.dead] = True
        return on

    def count(self, counter: str, per_lane: int) -> None:
        """Add work of every active lane to a counter."""
        self.group.counters.add(self.memory.loc, counter, per_lane * self.frame.active())

    def report(
        self, code: str, text: str, at: int = 0, hint: str = "", buffer: Any = None,
        index: tuple[int, ...] | None = None, other: Loc | None = None,
    ) -> None:  # fmt: skip
        """A finding about the first lane of a row of the frame."""
        frame = self.frame
        self.group.report(
            code, text, self.memory.loc, row=int(frame.rows[at]), thread=int(frame.lanes[0]),
            hint=hint, buffer=buffer, index=index, other=other,
        )  # fmt: skip

    def warps(self) -> Array:
        """Numbers of the warps that run."""
        return np.unique(self.frame.lanes // WARP)

    def per_row(self, value: Any) -> Array:
        """A value that lanes agree on, one for each row."""
        return at_lane(value, 0, len(self.frame.rows))

    def lanes_per_row(self) -> Array:
        """How many lanes are active in each row."""
        frame = self.frame
        if frame.mask is None:
            return np.full(len(frame.rows), len(frame.lanes))
        return np.broadcast_to(frame.mask, frame.shape).sum(axis=-1)


def at_lane(value: Any, lane: int, rows: int) -> Array:
    """A value's entries of one lane, for each row."""
    array = np.asarray(value)
    if array.ndim >= 2:
        array = array.reshape(array.shape[-2:])[:, lane if array.shape[-1] > 1 else 0]
    return np.broadcast_to(array, (rows,)).astype(np.int64)


def _narrowed_place(place: Place, old: Frame, new: Frame) -> Place:
    if old is new:
        return place
    chosen = np.isin(old.lanes, new.lanes)
    indices = tuple(
        i[..., chosen] if varies(i) and i.shape[-1] == len(old.lanes) > 1 else i
        for i in place.indices
    )
    return Place(place.buffer, indices)
