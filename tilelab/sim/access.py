"""Checked access to buffers: one front for registers, global and shared memory.

A check that finds something reports it and goes on with a harmless value, or stops the block
where it cannot.
"""

from __future__ import annotations

import numpy as np

from tilelab.ir import Buffer, Load, Scope, Select
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, Frame, Value, first_bad, varies
from tilelab.sim.global_access import GlobalAccess
from tilelab.sim.group import BlockGroup
from tilelab.sim.guards import note_selected
from tilelab.sim.place import Place, first_of, spread
from tilelab.sim.registers import Run
from tilelab.sim.shared_access import SharedAccess
from tilelab.sim.wgmma import InUse


class CheckedMemory(SharedAccess, GlobalAccess):
    """The memory of a group as one strand sees it."""

    def __init__(self, group: BlockGroup) -> None:
        super().__init__(group)
        self.in_flight: list[InUse] = []  # registers of unfinished wgmmas
        self.touched: set[Buffer] = set()  # registers written since the last wgmma.fence
        self.fenced = False  # whether any wgmma.fence has run

    # ---- entry points -------------------------------------------------------------------------

    def read(self, load: Load, indices: tuple[Value, ...], frame: Frame) -> Value:
        """A Load in an expression."""
        self.site = load
        value = self.load(Place(load.buffer, indices), frame)
        self.site = None
        return value

    def guarded(self, e: Select, cond: Value, frame: Frame) -> None:
        """A load under the compiler's guard happens where `cond` holds only."""
        note_selected(self, e, cond, frame)

    def load(self, place: Place, frame: Frame) -> Array:
        """One element per lane."""
        place = self.bounded(place, frame, "read")
        scope = place.buffer.scope
        if scope is Scope.LOCAL:
            return self._load_local(place, frame)
        if scope is Scope.GLOBAL:
            self.count_global(place, frame, 1, "read")
            return self.load_global(place, frame)
        return self.load_shared(place.buffer, self.address(place), 1, frame)[0]

    def store(self, place: Place, values: Array, frame: Frame) -> None:
        """One element per lane, where the mask allows."""
        place = self.bounded(place, frame, "write")
        scope = place.buffer.scope
        if scope is Scope.LOCAL:
            self._store_local(place, values, frame)
        elif scope is Scope.GLOBAL:
            self.count_global(place, frame, 1, "written")
            self.store_global(place, values, frame)
        else:
            self.store_shared(place.buffer, self.address(place), values[None], frame)

    def load_run(self, place: Place, count: int, frame: Frame) -> Array:
        """`count` consecutive elements as one access, aligned to its size; new first axis."""
        buffer = place.buffer
        run = self._register_run(place, count, frame)
        if run is not None:
            return self._load_local(run, frame)
        inner = frame.looped_axis(count)
        whole = self.bounded(place.plus(spread(count, frame)), inner, "read")
        if buffer.scope is Scope.LOCAL:
            return self._load_local(whole, inner)
        if buffer.scope is Scope.GLOBAL:
            self.count_global(first_of(whole), frame, count, "read")
            return self.load_global(whole, inner)
        width = count * buffer.dtype.bytes
        start = self.fitted(buffer, self.address(first_of(whole)), width, frame)
        return self.load_shared(buffer, start, count, frame)

    def store_run(self, place: Place, values: Array, frame: Frame) -> None:
        """Write consecutive elements, axis 0 of `values`, as one access."""
        buffer, count = place.buffer, len(values)
        run = self._register_run(place, count, frame)
        if run is not None:
            self._store_local(run, values, frame)
            return
        inner = frame.looped_axis(count)
        whole = self.bounded(place.plus(spread(count, frame)), inner, "write")
        if buffer.scope is Scope.LOCAL:
            self._store_local(whole, values, inner)
        elif buffer.scope is Scope.GLOBAL:
            self.count_global(first_of(whole), frame, count, "written")
            self.store_global(whole, values, inner)
        else:
            width = count * buffer.dtype.bytes
            start = self.fitted(buffer, self.address(first_of(whole)), width, frame)
            self.store_shared(buffer, start, values, frame)

    def check_start(self, place: Place, width: int, frame: Frame) -> None:
        """Report a run of `width` bytes in memory that starts at no multiple of it."""
        if place.buffer.scope is Scope.GLOBAL:
            address = np.asarray(sum(self._address_parts(place)))
            self.check_alignment(address, width, frame, place.buffer, place.indices)
        else:
            self.check_alignment(self.address(place), width, frame, place.buffer)

    def _register_run(self, place: Place, count: int, frame: Frame) -> Place | None:
        """Neighbouring registers that are the same in all lanes, as a slice: the common case."""
        if place.buffer.scope is not Scope.LOCAL or frame.loops or frame.mask is not None:
            return None
        first = place.indices[0] if place.indices else 0
        if varies(first) or not 0 <= first <= self.extents(place.buffer)[0] - count:
            return None
        return Place(place.buffer, (Run(int(first), int(first) + count),))

    # ---- registers ----------------------------------------------------------------------------

    def _load_local(self, place: Place, frame: Frame) -> Array:
        buffer, index = place.buffer, place.indices[0]
        busy = bool(self.in_flight) and self._check_in_flight(buffer, index, frame, reads=True)
        if not busy and self.group.findings.wants(f.UNINITIALISED):
            bad = self.group.registers.invalid(buffer, index, frame)
            first = None if bad is None else first_bad(bad, frame)
            if first is not None:
                start = index.first + first.place[0] if isinstance(index, Run) else index
                at = int(first.of(start))
                text = f"{buffer.said} (register {at}) is read before it is written"
                self.report(f.UNINITIALISED, text, frame, first.lane, buffer, (at,))
        return self.group.registers.load(buffer, index, frame)

    def _store_local(self, place: Place, values: Array, frame: Frame) -> None:
        if self.in_flight:
            self._check_in_flight(place.buffer, place.indices[0], frame, reads=False)
        self.touched.add(place.buffer)
        self.group.registers.store(place.buffer, place.indices[0], values, frame)

    def _check_in_flight(self, buffer: Buffer, index: Value, frame: Frame, reads: bool) -> bool:
        """Report registers that an unfinished wgmma uses; whether there are any."""
        if isinstance(index, Run):
            low, high = index.first, index.stop - 1
        else:
            low, high = int(np.min(index)), int(np.max(index))
        for use in self.in_flight:
            if use.buffer is not buffer or not (low < use.stop and high >= use.first):
                continue
            if (reads and use.may_read) or not np.isin(use.lanes, frame.lanes).any():
                continue
            text = f"{buffer.said} is {'used' if reads else 'written'} while a wgmma that it "
            text += "takes part in still runs"
            self.report(f.MISSING_WAIT, text, frame, (0, 0), buffer, (max(low, use.first),),
                         hint="wait for the wgmma group first")  # fmt: skip
            return True
        return False
