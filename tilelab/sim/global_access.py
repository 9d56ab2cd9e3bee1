"""Checked access to global memory: traffic, and order between blocks and warps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tilelab.ir import Buffer, Pool
from tilelab.sim import findings as f
from tilelab.sim.block_order import tells
from tilelab.sim.frame import Array, Frame, bits_differ
from tilelab.sim.global_boxes import still_stored
from tilelab.sim.global_order import UPDATED, WRITTEN, Marks, block_of, same_thread, thread_of
from tilelab.sim.place import CheckedBase, Place, aligned
from tilelab.sim.regular import regular
from tilelab.sim.speech import coordinates
from tilelab.target import WARP

UPDATE = "atomic update"


@dataclass(frozen=True)
class _Entries:
    """The active elements of one access, flat: their indices, and who touches them."""

    where: tuple[Array, ...]
    mine: Array
    shape: tuple[int, ...]
    on: Array | None  # which of `shape` are active; None: all

    def flat(self, values: Array) -> Array:
        """Values of the access, one for each entry."""
        full = np.broadcast_to(values, self.shape)
        return full.reshape(-1) if self.on is None else full[self.on]

    def place(self, entry: int) -> tuple[int, int]:
        """(block position, lane position) in the frame of an entry."""
        number = entry if self.on is None else int(np.flatnonzero(self.on)[entry])
        *_, row, lane = np.unravel_index(number, self.shape)
        return int(row), int(lane)


class GlobalReports(CheckedBase):
    """What can be wrong with an access, as findings."""

    def _meet(
        self, place: Place, marks: Marks, entries: _Entries, frame: Frame, kind: str,
        differs: Callable[[], Array] | None = None,
    ) -> None:  # fmt: skip
        """Report the first earlier access that one of a `kind` has no order with. `differs`: where
        a write brings another value than what is there; an equal one does no harm."""
        for all_old, what in marks.earlier(kind == "read", kind == UPDATE):
            old = all_old[entries.where]
            if not old.any():
                continue
            bad = self._unordered(marks, old, what, entries)
            if differs is not None and what != UPDATED and bad.any():
                harmless = ~differs()
                if what == "read" and marks.current is not None:
                    harmless &= marks.current[entries.where]
                bad &= ~harmless
            if what == WRITTEN and marks.writers.of is not None:
                bad, old = self._by_several(marks, bad, old, entries, kind, differs)
            if bad.any():
                self._report_race(place.buffer, entries, bad, old, frame, (kind, what))
                return

    def _by_several(
        self, marks: Marks, bad: Array, old: Array, entries: _Entries, kind: str,
        differs: Callable[[], Array] | None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """What is bad, and why, when all threads count that wrote the value which is there."""
        group, mine, sets = self.group, entries.mine, marks.writers.sets(entries.where)

        def unordered(i: Array, other: Array) -> Array:
            first = int(group.numbers[0])
            return group.order.unordered(other, mine[i], group.clocks, first)

        if kind == "read":
            return bad & ~marks.writers.harmless(sets, mine, bad, unordered), old
        asked = sets != 0
        if bad.any() or not asked.any():
            return bad, old
        found = marks.writers.strays(
            sets, asked if differs is None else asked & differs(), unordered
        )
        return found != 0, found

    def _landed(self, place: Place, frame: Frame, what: str) -> None:
        """Report touching what a TMA store of the same block has not written yet, and reading what
        one of any block has not, where blocks know of each other."""
        group = self.group
        if not group.landing or not group.findings.wants(f.MISSING_WAIT):
            return
        shaped = [np.asarray(i) for i in place.indices]
        shape = np.broadcast_shapes(frame.shape, *(i.shape for i in shaped))
        where = [np.broadcast_to(i, shape) for i in shaped]
        every = what == "read" and group.order.told
        rows = None if every else np.broadcast_to(frame.rows[:, None], shape)
        bad = still_stored(group.landing, place.buffer, where, rows)
        mask = self._effective_mask(frame)
        if bad is None or not (bad if mask is None else bad & mask).any():
            return
        bad = np.broadcast_to(bad if mask is None else bad & mask, shape)
        first = np.unravel_index(int(bad.argmax()), shape)
        index = tuple(int(i[first]) for i in where)
        name = place.buffer.said
        text = (
            f"{name}[{', '.join(map(str, index))}] is {what} before the TMA store to it is complete"
        )
        self.report(
            f.MISSING_WAIT, text, frame, first[-2:], place.buffer, index, hint=f.STORED_HINT
        )

    def _unordered(self, marks: Marks, old: Array, what: str, entries: _Entries) -> Array:
        group, mine = self.group, entries.mine
        first = int(group.numbers[0])
        bad = group.order.unordered(old, mine, group.clocks, first)
        if what == UPDATED and marks.observed is not None and bad.any():
            seen = marks.observed[entries.where]
            bad &= (seen == 0) | group.order.unordered(seen, mine, group.clocks, first)
        return bad

    def _missing(self, place: Place) -> Array | None:
        group = self.group
        if not group.findings.wants(f.UNINITIALISED):
            return None
        return group.written.missing(place.buffer, place.indices)

    def _report_missing(self, place: Place, bad: Array, frame: Frame) -> None:
        mask = self._effective_mask(frame)
        shape = np.broadcast_shapes(np.shape(bad), frame.shape)
        bad = np.broadcast_to(bad if mask is None else bad & mask, shape)
        if not bad.any():
            return
        first = np.unravel_index(int(bad.argmax()), shape)
        index = tuple(int(np.broadcast_to(np.asarray(i), shape)[first]) for i in place.indices)
        text = f"{place.buffer.said}[{', '.join(map(str, index))}] is read before it is "
        text += "written: the tensor begins without values"
        self.report(f.UNINITIALISED, text, frame, first[-2:], place.buffer, index)

    def _effective_mask(self, frame: Frame) -> Array | None:
        dead = self.group.dead[frame.rows]
        if not dead.any():
            return frame.mask
        alive = ~dead[:, None]
        return alive if frame.mask is None else frame.mask & alive

    def _report_crowd(self, buffer: Buffer, entries: _Entries, lost: Array, frame: Frame) -> None:
        entry = int(lost.argmax())
        index = tuple(int(i[entry]) for i in entries.where)
        text = f"several threads write different values to one element of {buffer.said}"
        self.report(f.RACE, text, frame, entries.place(entry), buffer, index,
                    hint="let one thread write it")  # fmt: skip

    def _report_race(
        self,
        buffer: Buffer,
        entries: _Entries,
        bad: Array,
        others: Array,
        frame: Frame,
        kinds: tuple[str, str],
    ) -> None:
        entry = int(bad.argmax())
        index = tuple(int(i[entry]) for i in entries.where)
        mine, other = int(entries.mine[entry]), int(others[entry])
        loc, inserted = self.group.order.place(other)
        block, what = block_of(other), f"{buffer.said}[{', '.join(map(str, index))}]"
        if block == block_of(mine):
            text = (
                f"warp {thread_of(mine) // 32}'s {kinds[0]} of {what} is not ordered after warp "
                f"{thread_of(other) // 32} has {kinds[1]} the same element"
            )
            hint = f.INSERTED_HINT if inserted and self.inserted() else ""
        else:
            who = "another block"
            if block is not None:
                who = f"block {coordinates(block, self.group.grid)}"
            text = f"a {kinds[0]} of {what}, which {who} has {kinds[1]} in the same launch"
            hint = self.group.order.hint(other)
        self.report(f.RACE, text, frame, entries.place(entry), buffer, index, loc, hint)


class GlobalAccess(GlobalReports):
    """Loads and stores of tensors at in-range indices."""

    def load_global(self, place: Place, frame: Frame) -> Array:
        """Elements, one per lane."""
        self._landed(place, frame, "read")
        marks = self._watched(place.buffer)
        if marks is not None and marks.reads is not None:
            self._note_read(place, marks, frame)
        missing = self._missing(place)
        if missing is not None:
            self._report_missing(place, missing, frame)
        array = self.group.arrays[place.buffer]
        shape = np.broadcast_shapes(*(np.shape(i) for i in place.indices))
        plain = regular(array, place.indices, shape)
        out = np.asarray(array[place.indices]) if plain is None else plain.load(array)
        return out.reshape(1, 1) if out.ndim == 0 else out

    def store_global(self, place: Place, values: Array, frame: Frame) -> None:
        """Write where the mask allows and the block still runs."""
        array = self.group.arrays[place.buffer]
        self._landed(place, frame, "written")
        marks = self._watched(place.buffer)
        if marks is not None:
            self._watched_store(place, array, values, marks, frame)
            return
        mask, written = self._effective_mask(frame), self.group.written
        shaped = [np.asarray(i) for i in place.indices]
        shape = np.broadcast_shapes(values.shape, *(i.shape for i in shaped))
        plain = None if mask is not None else regular(array, shaped, shape)
        if plain is not None and plain.distinct:
            plain.store(array, values)
            written.mark_regular(place.buffer, plain)
            return
        if mask is None:
            array[tuple(np.broadcast_to(i, shape) for i in shaped)] = values
            written.mark(place.buffer, place.indices)
            return
        shape = np.broadcast_shapes(shape, mask.shape)
        on = np.broadcast_to(mask, shape)
        where = tuple(np.broadcast_to(i, shape)[on] for i in shaped)
        array[where] = np.broadcast_to(values, shape)[on]
        written.mark(place.buffer, where)

    def use_global_atomic(self, buffer: Buffer, where: tuple[Array, ...], frame: Frame) -> None:
        """Check that atomically updated elements have a value."""
        place = Place(buffer, where)
        missing = self._missing(place)
        if missing is not None:
            self._report_missing(place, missing, frame)
        marks = self._watched(buffer)
        if marks is None or marks.atomics is None:
            return
        entries = self._entries(place, frame)
        if len(entries.mine):
            self._meet(place, marks, entries, frame, UPDATE)
            marks.atomics.note(entries.where, entries.mine)
            if marks.observed is not None:
                marks.observed[entries.where] = entries.mine if tells(self.statement) else 0

    def _watched(self, buffer: Buffer) -> Marks | None:
        return self.group.order.marks(buffer) if self.group.findings.wants(f.RACE) else None

    def _stamps(self, frame: Frame) -> Array:
        """What is kept of an access that all of a frame's threads make now."""
        group = self.group
        times = group.clocks.own(frame.rows, frame.lanes // WARP)
        return group.order.stamp(
            group.numbers[frame.rows], frame.lanes, times, (self.loc, self.inserted())
        )

    def _entries(self, place: Place, frame: Frame) -> _Entries:
        stamps = self._stamps(frame)
        shaped = [np.asarray(i) for i in place.indices]
        shape = np.broadcast_shapes(frame.shape, *(i.shape for i in shaped))
        mask = self._effective_mask(frame)
        on = None if mask is None else np.broadcast_to(mask, shape)
        full = [np.broadcast_to(i, shape) for i in (*shaped, stamps)]
        *where, mine = [i.reshape(-1) if on is None else i[on] for i in full]
        return _Entries(tuple(where), mine, shape, on)

    def _note_read(self, place: Place, marks: Marks, frame: Frame) -> None:
        entries = self._entries(place, frame)
        if not len(entries.mine) or marks.reads is None:
            return
        self._meet(place, marks, entries, frame, "read")
        marks.reads.note(entries.where, entries.mine)
        if marks.current is not None:
            marks.current[entries.where] = True

    def _watched_store(
        self, place: Place, array: Array, values: Array, marks: Marks, frame: Frame
    ) -> None:
        if self._first_store(place, array, values, marks, frame):
            return
        entries = self._entries(place, frame)
        where, mine = entries.where, entries.mine
        if not len(mine):
            return
        data = np.ascontiguousarray(entries.flat(values)).astype(array.dtype, copy=False)

        @cache
        def differs() -> Array:
            return bits_differ(array[where], data)

        self._meet(place, marks, entries, frame, "write", differs)
        if marks.current is not None and marks.current[where].any():
            marks.current[where] &= ~differs()
        same = follows = marks.rewritten(where, mine)
        if same.any():
            same = np.where(differs(), 0, same)
            follows = ~self._unordered(marks, same, WRITTEN, entries)
        array[where] = data
        self.group.written.mark(place.buffer, where)
        marks.wrote(where, mine, same, follows & (same != 0))
        lost = bits_differ(array[where], data)
        if lost.any():
            lost &= ~same_thread(marks.writes[where], mine)
        if lost.any():
            self._report_crowd(place.buffer, entries, lost, frame)

    def _first_store(
        self, place: Place, array: Array, values: Array, marks: Marks, frame: Frame
    ) -> bool:
        """Make a store that is the first access of each of its elements, which lie at constant
        steps: there is nothing to compare. False: nothing is done."""
        if self._effective_mask(frame) is not None:
            return False
        shape = np.broadcast_shapes(frame.shape, *(np.shape(i) for i in place.indices))
        plain = regular(array, place.indices, shape)
        if plain is None or not plain.distinct:
            return False
        if any(plain.of(old).any() for old, _ in marks.earlier(reading=False)):
            return False
        plain.store(array, values)
        self.group.written.mark_regular(place.buffer, plain)
        plain.store(marks.writes, self._stamps(frame))
        return True

    def count_global(self, place: Place, frame: Frame, count: int, what: str) -> None:
        """Count and sample an access of `count` consecutive elements per lane."""
        counters, width = self.group.counters, count * place.buffer.dtype.bytes
        site = self.statement if self.site is None else self.site
        access = counters.access(site, self.loc, "global", what, place.buffer.root.name, width)
        access.num_bytes += frame.active() * width
        sampled = access.due()
        if not sampled and count == 1:
            return
        parts = self._address_parts(place)
        if not sampled and all(aligned(part, width).all() for part in parts):
            return
        address = np.asarray(sum(parts))
        if count > 1:
            self.check_alignment(address, width, frame, place.buffer, place.indices)
        shape = np.broadcast_shapes(np.shape(address), frame.shape)
        lanes = np.broadcast_to(address, shape)[..., 0, :]
        mask = None if frame.mask is None else np.broadcast_to(frame.mask, shape)[..., 0, :]
        if sampled:
            access.look(lanes, mask, frame.lanes, merges=False)

    def _address_parts(self, place: Place) -> list[Array]:
        """Parts whose sum are the byte addresses, from the tensor's start."""
        pools = self.group.pools
        if isinstance(place.buffer, Pool) and pools is not None:
            return pools.address_parts(place.buffer, place.indices)
        strides = self.group.arrays[place.buffer].strides
        pairs = zip(place.indices, strides, strict=True)
        return [np.asarray(index, np.int64) * stride for index, stride in pairs]
