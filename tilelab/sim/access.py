"""Checked access to buffers: bounds, validity, arrival, order, alignment, counters.

Hides the three kinds of memory from expressions and instructions. A check that finds something
reports it and goes on with a harmless value, or stops the block where it cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer, Load, Scope
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, Frame, Value
from tilelab.sim.group import BlockGroup
from tilelab.sim.shadow import ARRIVING, VALID, Access, Clash


@dataclass(frozen=True)
class Place:
    """An evaluated Ref: a buffer and the values of its indices."""

    buffer: Buffer
    indices: tuple[Value, ...]

    def plus(self, offset: Value) -> Place:
        """So many elements further along the last axis."""
        if not self.indices:
            return self
        return Place(self.buffer, (*self.indices[:-1], self.indices[-1] + offset))


def spread(count: int, frame: Frame) -> Array:
    """0 .. count-1 as a new first axis."""
    return np.arange(count, dtype=np.int32).reshape(-1, *(1,) * (len(frame.loops) + 2))


class CheckedMemory:
    """The memory of a group as one strand sees it. `loc` and `statement` are what runs now."""

    def __init__(self, group: BlockGroup) -> None:
        self.group = group
        self.loc: Loc | None = None
        self.statement: Any = None
        self.in_flight: list[tuple[Buffer, int, int]] = []  # accumulators of unfinished wgmmas
        self.touched: set[Buffer] = set()  # registers written since the last wgmma.fence

    # ---- entry points -------------------------------------------------------------------------

    def read(self, load: Load, indices: tuple[Value, ...], frame: Frame) -> Value:
        """A Load in an expression."""
        return self.load(Place(load.buffer, indices), frame)

    def load(self, place: Place, frame: Frame) -> Array:
        """One element per lane."""
        place = self.bounded(place, frame, "read")
        scope = place.buffer.scope
        if scope is Scope.LOCAL:
            return self._load_local(place, frame)
        if scope is Scope.GLOBAL:
            self._count_global(place, frame, 1, "read")
            return self.load_global(place)
        return self.load_shared(place.buffer, self._address(place), 1, frame)[0]

    def store(self, place: Place, values: Array, frame: Frame) -> None:
        """One element per lane, where the mask allows."""
        place = self.bounded(place, frame, "write")
        scope = place.buffer.scope
        if scope is Scope.LOCAL:
            self._store_local(place, values, frame)
        elif scope is Scope.GLOBAL:
            self._count_global(place, frame, 1, "written")
            self.store_global(place, values, frame)
        else:
            self.store_shared(place.buffer, self._address(place), values[None], frame)

    def load_run(self, place: Place, count: int, frame: Frame) -> Array:
        """`count` consecutive elements as one access, aligned to its size; new first axis."""
        buffer = place.buffer
        inner = frame.looped_axis(count)
        whole = self.bounded(place.plus(spread(count, frame)), inner, "read")
        if buffer.scope is Scope.LOCAL:
            return self._load_local(whole, inner)
        if buffer.scope is Scope.GLOBAL:
            self._count_global(first_of(whole), frame, count, "read")
            return self.load_global(whole)
        return self.load_shared(buffer, self._address(first_of(whole)), count, frame)

    def store_run(self, place: Place, values: Array, frame: Frame) -> None:
        """Write consecutive elements, axis 0 of `values`, as one access."""
        buffer, count = place.buffer, len(values)
        inner = frame.looped_axis(count)
        whole = self.bounded(place.plus(spread(count, frame)), inner, "write")
        if buffer.scope is Scope.LOCAL:
            self._store_local(whole, values, inner)
        elif buffer.scope is Scope.GLOBAL:
            self._count_global(first_of(whole), frame, count, "written")
            self.store_global(whole, values, inner)
        else:
            self.store_shared(buffer, self._address(first_of(whole)), values, frame)

    # ---- bounds -------------------------------------------------------------------------------

    def extents(self, buffer: Buffer) -> tuple[int, ...]:
        """The shape as numbers."""
        if buffer.scope is Scope.GLOBAL:
            return self.group.arrays[buffer].shape
        return buffer.static_shape or (1,)

    def bounded(self, place: Place, frame: Frame, what: str) -> Place:
        """The place with every index inside its axis; what was outside is reported."""
        extents = self.extents(place.buffer)
        indices = place.indices or (0,)
        inside = all(_inside(i, n) for i, n in zip(indices, extents, strict=True))
        if inside:
            return place if place.indices else Place(place.buffer, indices)
        bad: Any = np.False_
        for index, extent in zip(indices, extents, strict=True):
            array = np.asarray(index)
            bad = bad | (array < 0) | (array >= extent)
        if frame.mask is not None:
            bad = bad & frame.mask
        if np.any(bad):
            self._report_bounds(place.buffer, indices, extents, np.asarray(bad), frame, what)
        clipped = tuple(np.clip(i, 0, n - 1) for i, n in zip(indices, extents, strict=True))
        return Place(place.buffer, clipped)

    def _report_bounds(
        self,
        buffer: Buffer,
        indices: tuple[Value, ...],
        extents: tuple[int, ...],
        bad: Array,
        frame: Frame,
        what: str,
    ) -> None:
        bad = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, frame.shape))
        first = np.unravel_index(int(bad.argmax()), bad.shape)
        at = tuple(int(np.broadcast_to(np.asarray(i), bad.shape)[first]) for i in indices)
        axis = next(a for a, (i, n) in enumerate(zip(at, extents, strict=True)) if not 0 <= i < n)
        where = "[" + ", ".join(map(str, at)) + "]"
        message = f"{what} of {buffer.root.name}{where} is outside axis {axis}, whose extent is {extents[axis]}"
        self._report(f.OUT_OF_BOUNDS, message, frame, first[-2:], buffer, at)
        rows = bad.any(axis=tuple(a for a in range(bad.ndim) if a != bad.ndim - 2))
        self.group.stop(frame.rows[rows])

    def _report(
        self,
        code: str,
        message: str,
        frame: Frame,
        at: Any,
        buffer: Buffer | None = None,
        index: tuple[int, ...] | None = None,
        other: Loc | None = None,
        hint: str = "",
    ) -> None:
        self.group.report(
            code, message, self.loc, row=int(frame.rows[int(at[0])]),
            thread=int(frame.lanes[int(at[1])]), buffer=buffer, index=index, other=other, hint=hint,
        )  # fmt: skip

    # ---- registers ----------------------------------------------------------------------------

    def _load_local(self, place: Place, frame: Frame) -> Array:
        buffer, index = place.buffer, place.indices[0]
        if self.in_flight:
            self._check_in_flight(buffer, index, frame)
        if self.group.findings.wants(f.UNINITIALISED):
            bad = self.group.registers.invalid(buffer, index, frame)
            if bad is not None:
                bad = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, frame.shape))
                first = np.unravel_index(int(bad.argmax()), bad.shape)
                at = int(np.broadcast_to(np.asarray(index), bad.shape)[first])
                text = f"{buffer.root.name} (register {at}) is read before it is written"
                self._report(f.UNINITIALISED, text, frame, first[-2:], buffer, (at,))
        return self.group.registers.load(buffer, index, frame)

    def _store_local(self, place: Place, values: Array, frame: Frame) -> None:
        if self.in_flight:
            self._check_in_flight(place.buffer, place.indices[0], frame)
        self.touched.add(place.buffer)
        self.group.registers.store(place.buffer, place.indices[0], values, frame)

    def _check_in_flight(self, buffer: Buffer, index: Value, frame: Frame) -> None:
        array = np.asarray(index)
        low, high = int(array.min()), int(array.max())
        for other, first, stop in self.in_flight:
            if other is buffer and low < stop and high >= first:
                text = f"{buffer.root.name} is used while a wgmma that it takes part in still runs"
                self._report(f.MISSING_WAIT, text, frame, (0, 0), buffer, (max(low, first),),
                             hint="wait for the wgmma group first")  # fmt: skip
                return

    # ---- global memory ------------------------------------------------------------------------

    def load_global(self, place: Place) -> Array:
        """Elements at in-range indices."""
        out = np.asarray(self.group.arrays[place.buffer][place.indices])
        return out.reshape(1, 1) if out.ndim == 0 else out

    def store_global(self, place: Place, values: Array, frame: Frame) -> None:
        """Write where the mask allows and the block still runs."""
        array, mask = self.group.arrays[place.buffer], frame.mask
        if self.group.dead[frame.rows].any():
            alive = ~self.group.dead[frame.rows][:, None]
            mask = alive if mask is None else mask & alive
        if mask is None:
            shape = np.broadcast_shapes(values.shape, *(np.shape(i) for i in place.indices))
            array[place.indices] = values if values.shape == shape or shape else values.reshape(())
            return
        shaped = [np.asarray(i) for i in place.indices]
        shape = np.broadcast_shapes(values.shape, mask.shape, *(i.shape for i in shaped))
        on = np.broadcast_to(mask, shape)
        where = tuple(np.broadcast_to(i, shape)[on] for i in shaped)
        array[where] = np.broadcast_to(values, shape)[on]

    def _count_global(self, place: Place, frame: Frame, count: int, what: str) -> None:
        counters, width = self.group.counters, count * place.buffer.dtype.bytes
        counters.add(self.loc, f"global_bytes_{what}", frame.active() * width)
        array = self.group.arrays[place.buffer]
        sampled = counters.due((self.statement, what))
        if not sampled and count == 1:
            return
        address: Any = 0
        for index, stride in zip(place.indices, array.strides, strict=True):
            address = address + np.asarray(index, np.int64) * stride
        address = np.asarray(address)
        if count > 1:
            self._check_alignment(address, width, frame, place.buffer)
        shape = np.broadcast_shapes(np.shape(address), frame.shape)
        lanes = np.broadcast_to(address, shape)[..., 0, :]
        mask = None if frame.mask is None else np.broadcast_to(frame.mask, shape)[..., 0, :]
        if sampled:
            counters.sample_global(self.loc, lanes, width, mask)

    def _check_alignment(self, address: Any, width: int, frame: Frame, buffer: Buffer) -> None:
        bad = np.asarray(address) % width != 0
        if frame.mask is not None:
            bad = bad & frame.mask
        if not bad.any():
            return
        bad = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, frame.shape))
        first = np.unravel_index(int(bad.argmax()), bad.shape)
        text = f"an access of {width} bytes to {buffer.root.name} does not start at a multiple of {width}"
        self._report(f.MISALIGNED, text, frame, first[-2:], buffer)

    # ---- shared memory ------------------------------------------------------------------------

    def _address(self, place: Place) -> Value:
        return self.group.shared.address(place.buffer, place.indices)

    def load_shared(self, buffer: Buffer, address: Value, count: int, frame: Frame) -> Array:
        """`count` physically consecutive elements from a byte address; new first axis."""
        size = buffer.dtype.bytes
        self.use_shared(buffer, address, count * size, frame, "read")
        where = address if count == 1 else address + spread(count, frame) * size
        out = self.group.shared.load(buffer.dtype, where, frame)
        return out if count > 1 else out[None]

    def store_shared(self, buffer: Buffer, address: Value, values: Array, frame: Frame) -> None:
        """Write axis 0 of `values` to physically consecutive elements."""
        group, size, count = self.group, buffer.dtype.bytes, len(values)
        where = address if count == 1 else address + spread(count, frame) * size
        clash = self.use_shared(buffer, address, count * size, frame, "written")
        data = values if count > 1 else values[0]
        if clash is not None:
            access, problem = clash
            old = group.shared.load(buffer.dtype, where, frame)
            if problem.kind == "read" or not _same(old, data, frame):
                self.report_clash(buffer, access, problem, frame, "write")
        group.shared.store(buffer.dtype, where, data, frame)
        if group.findings.wants(f.RACE) and len(frame.lanes) * len(frame.loops or (1,)) > 1:
            now = group.shared.load(buffer.dtype, where, frame)
            if not _same(now, data, frame):
                text = f"several threads write different values to one element of {buffer.root.name}"
                self._report(f.RACE, text, frame, (0, 0), buffer, hint="let one thread write it")

    def use_shared(
        self, buffer: Buffer, address: Value, width: int, frame: Frame, what: str
    ) -> tuple[Access, Clash] | None:
        """Check, count and remember one access per lane; a write's clash is returned because
        equal values make it harmless."""
        group, shadow = self.group, self.group.shadow
        self._count_shared(address, width, frame, what)
        if width > buffer.dtype.bytes:
            self._check_alignment(address, width, frame, buffer)
        access = group.accessed(address, width, frame)
        if not len(access.cells):
            return None
        if what == "read":
            self.check_filled(buffer, access, frame)
            if group.findings.wants(f.RACE):
                clash = shadow.read(access, group.clocks, self.loc)
                if clash is not None:
                    self.report_clash(buffer, access, clash, frame, "read")
            return None
        busy = shadow.in_use(access)
        if busy is not None:
            text = f"{buffer.root.name} is overwritten while an asynchronous operation has it {busy[1]}"
            self._report_cell(f.MISSING_WAIT, text, buffer, access, busy[0], frame)
        shadow.set_state(access, VALID)
        if not group.findings.wants(f.RACE):
            return None
        by_write, by_read = shadow.write(access, group.clocks, self.loc, ordinary=True)
        found = by_read or by_write
        return None if found is None else (access, found)

    def check_filled(self, buffer: Buffer, access: Access, frame: Frame) -> None:
        """Report reading what was never written, or has not arrived."""
        bad = self.group.shadow.bad_state(access)
        if bad is None:
            return
        entry, state = bad
        if state == ARRIVING:
            text = f"{buffer.root.name} is read before the copy into it has been waited for"
            self._report_cell(f.MISSING_WAIT, text, buffer, access, entry, frame)
        else:
            text = f"{buffer.root.name} is read before it is written"
            self._report_cell(f.UNINITIALISED, text, buffer, access, entry, frame)

    def report_clash(
        self, buffer: Buffer, access: Access, clash: Clash, frame: Frame, what: str
    ) -> None:
        mine = int(access.warps[clash.entry])
        text = (
            f"warp {mine}'s {what} of {buffer.root.name} is not ordered after "
            f"{self.group.clocks.name(clash.other)} has {clash.kind} the same element"
        )
        self._report_cell(f.RACE, text, buffer, access, clash.entry, frame, clash.other_loc)

    def _report_cell(
        self,
        code: str,
        text: str,
        buffer: Buffer,
        access: Access,
        entry: int,
        frame: Frame,
        other: Loc | None = None,
    ) -> None:
        at = access.place(entry)
        found = self.group.shared.element(int(access.cells[entry]) * self.group.shadow.granule)
        index = found[1] if found is not None else None
        self._report(code, text, frame, at, buffer, index, other)

    def _count_shared(self, address: Value, width: int, frame: Frame, what: str) -> None:
        counters = self.group.counters
        counters.add(self.loc, f"shared_bytes_{what}", frame.active() * width)
        if not counters.due((self.statement, what)):
            return
        shape = np.broadcast_shapes(np.shape(address), frame.shape)
        lanes = np.broadcast_to(np.asarray(address), shape)[..., 0, :]
        mask = None if frame.mask is None else np.broadcast_to(frame.mask, shape)[..., 0, :]
        if width <= 16:
            counters.sample_shared(self.loc, lanes, width, mask)


def first_of(place: Place) -> Place:
    """The first element of a run: axis 0 of the last index dropped."""
    last = np.asarray(place.indices[-1])[0]
    others = place.indices[:-1]
    return Place(place.buffer, (*others, last))


def _inside(index: Value, extent: int) -> bool:
    if isinstance(index, np.ndarray):
        return index.size == 0 or (int(index.min()) >= 0 and int(index.max()) < extent)
    return 0 <= index < extent


def _same(a: Array, b: Array, frame: Frame) -> bool:
    """Whether two arrays of values agree bit by bit where the mask is on."""
    bits = np.dtype(f"u{a.dtype.itemsize}")
    differ = np.ascontiguousarray(a).view(bits) != np.ascontiguousarray(b).view(bits)
    if frame.mask is not None:
        differ = differ & frame.mask
    return not differ.any()
