"""Checked access to shared memory: validity, arrival, order between warps, bank conflicts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilelab.errors import Loc
from tilelab.ir import Buffer
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, Frame, Value, first_bad, rows_with
from tilelab.sim.place import CheckedBase, Place, differing, spread
from tilelab.sim.shadow import ARRIVING, VALID, Access, Clash
from tilelab.thread import Invoke

_WIDEST = 16  # bytes that a lane moves at once


class SharedAccess(CheckedBase):
    """Loads and stores of shared memory at physical addresses."""

    def address(self, place: Place) -> Value:
        return self.group.shared.address(place.buffer, place.indices)

    def fitted(self, buffer: Buffer, address: Value, width: int, frame: Frame) -> Value:
        """Start addresses of accesses of `width` bytes, moved back where one would reach past
        the buffer's end; an active lane's that does is reported."""
        last = max(self.group.shared.end(buffer) - width, 0)
        if int(np.max(address)) <= last:
            return address
        first = first_bad(np.asarray(address) > last, frame)
        if first is not None:
            found = self.group.shared.element(int(first.of(address)), buffer)
            index = None if found is None else found[1]
            text = f"an access of {width} bytes runs past the end of {buffer.said}"
            self.report(f.OUT_OF_BOUNDS, text, frame, first.lane, buffer, index)
            self.group.stop(frame.rows[rows_with(first.bad)])
        return np.minimum(address, last)

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
        data = values if count > 1 else values[0]

        def differs(access: Access) -> Array:
            found = differing(group.shared.load(buffer.dtype, where, frame), data, frame)
            return access.by_cell(found if count > 1 else found[None])

        clash = self.use_shared(buffer, address, count * size, frame, "written", differs)
        if clash is not None:
            self.report_clash(buffer, *clash, frame, "write")
        group.shared.store(buffer.dtype, where, data, frame)
        if group.findings.wants(f.RACE) and len(frame.lanes) * len(frame.loops or (1,)) > 1:
            lost = differing(group.shared.load(buffer.dtype, where, frame), data, frame)
            if lost.any():
                self._report_writers(buffer, where, lost, frame)

    def _report_writers(self, buffer: Buffer, where: Value, lost: Array, frame: Frame) -> None:
        shape = np.broadcast_shapes(lost.shape, np.shape(where), frame.shape)
        first = np.unravel_index(int(np.broadcast_to(lost, shape).argmax()), shape)
        found = self.group.shared.element(int(np.broadcast_to(where, shape)[first]), buffer)
        text = f"several threads write different values to one element of {buffer.said}"
        self.report(
            f.RACE, text, frame, first[-2:], buffer, found and found[1],
            hint="let one thread write it",
        )  # fmt: skip

    def use_shared(
        self, buffer: Buffer, address: Value, width: int, frame: Frame, what: str,
        differs: Callable[[Access], Array] | None = None,
    ) -> tuple[Access, Clash] | None:  # fmt: skip
        """Check, count and remember one access per lane; a write's clash is returned, for only
        the caller knows what it is. `differs`: as `Shadow.write` has it."""
        group, shadow = self.group, self.group.shadow
        self._count_shared(buffer, address, width, frame, what)
        if width > buffer.dtype.bytes:
            self.check_alignment(address, width, frame, buffer)
        if not group.watches:
            return None
        access = group.accessed(address, width, frame)
        if not len(access.cells):
            return None
        if what == "read":
            self.check_filled(buffer, access, frame)
            if group.findings.wants(f.RACE):
                clash = shadow.read(access, group.clocks, self.loc, self.inserted())
                if clash is not None:
                    self.report_clash(buffer, access, clash, frame, "read")
            return None
        self._check_unused(buffer, access, frame)
        shadow.set_state(access, VALID, group.shared.owner(buffer))
        if not group.findings.wants(f.RACE):
            return None
        by_write, by_read = shadow.write(
            access, group.clocks, self.loc, ordinary=True, inserted=self.inserted(),
            differs=differs,
        )  # fmt: skip
        found = by_read or by_write
        return None if found is None else (access, found)

    def use_atomic(self, buffer: Buffer, address: Value, frame: Frame) -> None:
        """Check, count and remember an atomic update of one element per lane: it is unordered
        with ordinary accesses, and never with other atomics."""
        group = self.group
        width = buffer.dtype.bytes
        self._count_shared(buffer, address, width, frame, "written")
        access = group.accessed(address, width, frame)
        if not len(access.cells):
            return
        self.check_filled(buffer, access, frame)
        if group.shadow.busy.any():
            self._check_unused(buffer, access, frame)
        if group.findings.wants(f.RACE):
            clashes = group.shadow.write(
                access, group.clocks, self.loc, ordinary=True, is_atomic=True
            )
            for clash in clashes:
                if clash is not None:
                    self.report_clash(buffer, access, clash, frame, "atomic update")

    def _check_unused(self, buffer: Buffer, access: Access, frame: Frame) -> None:
        """Report writing what a copy or product under way still uses."""
        busy = self.group.shadow.in_use(access)
        if busy is not None:
            text = f"{buffer.said} is overwritten while it is still being {busy[1]} "
            text += "by an asynchronous operation"
            self._report_cell(f.MISSING_WAIT, text, buffer, access, busy[0], frame)

    def check_filled(self, buffer: Buffer, access: Access, frame: Frame) -> None:
        """Report reading what was never written, or has not arrived."""
        bad = self.group.shadow.bad_state(access, self.group.shared.owner(buffer))
        if bad is None:
            return
        entry, state = bad
        if state == ARRIVING:
            text = f"{buffer.said} is read before the copy into it has been waited for"
            self._report_cell(f.MISSING_WAIT, text, buffer, access, entry, frame)
        else:
            text = f"{buffer.said} is read before it is written"
            self._report_cell(f.UNINITIALISED, text, buffer, access, entry, frame)

    def report_clash(
        self, buffer: Buffer, access: Access, clash: Clash, frame: Frame, what: str
    ) -> None:
        mine = int(access.warps[clash.entry])
        if clash.by_copy:
            text = f"the {what} of {buffer.said} does not wait for the copy into it"
            self._report_cell(
                f.MISSING_WAIT, text, buffer, access, clash.entry, frame, clash.other_loc
            )
            return
        other, beside = self.group.clocks.name(clash.other), mine == clash.other
        text = (
            f"warp {mine}'s {what} of {buffer.said} is not ordered after "
            f"{f'another lane of {other}' if beside else other} has {clash.kind} the same element"
        )
        hint = f.LANES_HINT if beside else ""
        hint = f.INSERTED_HINT if clash.inserted and self.inserted() else hint
        self._report_cell(f.RACE, text, buffer, access, clash.entry, frame, clash.other_loc, hint)

    def _report_cell(
        self, code: str, text: str, buffer: Buffer, access: Access, entry: int, frame: Frame,
        other: Loc | None = None, hint: str = "",
    ) -> None:  # fmt: skip
        at = access.place(entry)
        start = int(access.cells[entry]) * self.group.shadow.granule
        found = self.group.shared.element(start, buffer)
        index = found[1] if found is not None else None
        self.report(code, text, frame, at, buffer, index, other, hint)

    def _count_shared(
        self, buffer: Buffer, address: Value, width: int, frame: Frame, what: str
    ) -> None:
        site = self.statement if self.site is None else self.site
        access = self.group.counters.access(
            site, self.loc, "shared", what, buffer.root.name, width
        )  # fmt: skip
        access.num_bytes += frame.active() * width
        if width > _WIDEST or not access.due():
            return
        shape = np.broadcast_shapes(np.shape(address), frame.shape)
        lanes = np.broadcast_to(np.asarray(address), shape)[..., 0, :]
        mask = None if frame.mask is None else np.broadcast_to(frame.mask, shape)[..., 0, :]
        # Matrix instructions fetch rows phase by phase; only plain loads merge phases.
        merges = what == "read" and not isinstance(self.statement, Invoke)
        access.look(lanes, mask, frame.lanes, merges)
