"""What is known about shared memory beside its bytes: validity, arrival, last accesses.

Hides the granularity and the trick that keeps it cheap: while all blocks of a group do the same,
one row of metadata stands for all of them; it is copied to a row per block when they part.
Orders are vector clocks (`clocks`): barriers join them, accesses remember them and their thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.sim.clocks import Clocks
from tilelab.sim.writers import Unordered, Writers

Array = np.ndarray[Any, Any]
UNWRITTEN, VALID, ARRIVING = 0, 1, 2
# Who touched a cell last: a thread, no thread, or several lanes of warp w (_SEVERAL + w).
_NOBODY, _SEVERAL = -1, 2048
_THREAD_AT = 32
"""Where a write's mark (`writers`) has its thread; below is the time of its warp."""


@dataclass(frozen=True)
class Access:
    """Cells touched by lanes: `cells` and `warps` of equal length, `span` cells in a row for each
    lane; `rows` the block of each entry (None: all blocks alike). `chosen` numbers the entries'
    (iteration, block, lane) in `shape` when a mask left some out. `threads` who touched them;
    None: an asynchronous unit."""

    cells: Array
    warps: Array
    rows: Array | None
    span: int
    shape: tuple[int, ...]
    chosen: Array | None
    threads: Array | None = None

    def by_cell(self, values: Array) -> Array:
        """Flags of elements, (elements of a lane, ...), for each entry: of any element in its
        cell, and of any place that one stands for."""
        count, extra = len(values), values.ndim - 1 - len(self.shape)
        if extra < 0:
            values = values.reshape(count, *(1,) * -extra, *values.shape[1:])
        shape = (1,) * extra + self.shape
        folded = tuple(i + 1 for i, n in enumerate(shape) if n == 1)
        values = np.logical_or.reduce(values, axis=folded, keepdims=True)
        lanes = np.moveaxis(np.broadcast_to(values, (count, *shape)), 0, -1).reshape(-1, count)
        lanes = lanes if self.chosen is None else lanes[self.chosen]
        if self.span >= count:
            return np.repeat(lanes, self.span // count, axis=1).reshape(-1)
        return lanes.reshape(len(lanes), self.span, -1).any(axis=2).reshape(-1)

    def place(self, entry: int) -> tuple[int, int]:
        """(block position, lane position) in the frame of an entry."""
        number = entry // self.span
        if self.chosen is not None:
            number = int(self.chosen[number])
        *_, row, lane = np.unravel_index(number, self.shape)
        return int(row), int(lane)


@dataclass(frozen=True)
class Clash:
    """A violation: which entry of the access, and with whom."""

    entry: int
    other: int
    other_loc: Loc | None
    kind: str
    inserted: bool  # whether the compiler made the other access out of a copy, a product, ...
    by_copy: bool = False  # whether an asynchronous copy has written


_ROWS = (
    "state", "write_warp", "write_clock", "read_clock", "write_loc", "read_loc", "unfenced", "busy",
    "by_atomic", "owner", "write_thread", "read_thread",
)  # fmt: skip


class Cells:
    """Metadata of `granules` cells of shared memory for a group of blocks: what they hold."""

    def __init__(self, blocks: int, num_bytes: int, granule: int, actors: int) -> None:
        self.granule = granule
        self.blocks = blocks
        cells = -(-num_bytes // granule)
        self.state = np.zeros((1, cells), np.uint8)
        self.write_warp = np.zeros((1, cells), np.int16)
        self.write_clock = np.zeros((1, cells), np.int32)
        self.read_clock = np.zeros((1, actors, cells), np.int32)
        self.unfenced = np.zeros((1, cells), np.bool_)  # written by ordinary stores
        self.by_atomic = np.zeros((1, cells), np.bool_)  # last written by an atomic update
        self.owner = np.zeros((1, cells), np.int16)  # whose value it holds, where buffers share
        self.busy = np.zeros((1, cells), np.uint8)  # asynchronous reads under way
        self.write_loc = np.zeros((1, cells), np.int16)
        self.read_loc = np.zeros((1, cells), np.int16)  # below 0: of a value that was before
        self.write_thread = np.full((1, cells), _NOBODY, np.int16)
        self.read_thread = np.full((1, cells), _NOBODY, np.int16)
        self.writers = Writers((1, cells), _THREAD_AT)
        self.locs: list[tuple[Loc | None, bool]] = [(None, False)]
        self._loc_number: dict[tuple[int, bool], int] = {}

    @property
    def uniform(self) -> bool:
        """Whether one row stands for all blocks."""
        return len(self.state) == 1

    def expand(self) -> None:
        """Blocks part: a row of metadata for each."""
        if not self.uniform or self.blocks == 1:
            return
        for name in _ROWS:
            setattr(self, name, np.repeat(getattr(self, name), self.blocks, axis=0))
        self.writers.expand(self.blocks)

    def number(self, loc: Loc | None, inserted: bool = False) -> int:
        """A small number for a place (and whether the compiler made the statement there), to be
        kept per cell."""
        if loc is None:
            return 0
        key = (id(loc), inserted)
        found = self._loc_number.get(key)
        if found is None:
            found = self._loc_number[key] = len(self.locs)
            self.locs.append((loc, inserted))
        return found

    def _key(self, access: Access) -> tuple[Any, Any]:
        return (0 if access.rows is None else access.rows, access.cells)

    def bad_state(self, access: Access, owner: int = 0) -> tuple[int, int] | None:
        """(position, state) of the first cell that holds no value of `owner` yet (0: a buffer
        that shares its bytes with none); None when all do."""
        key = self._key(access)
        state = self.state[key]
        bad = state != VALID
        if owner:
            others = self.owner[key] != owner
            state, bad = np.where(others, UNWRITTEN, state), bad | others
        if not bad.any():
            return None
        first = int(bad.argmax())
        return first, int(state[first])

    def set_state(self, access: Access, state: int, owner: int = 0) -> None:
        """The cells hold (or await) a value of `owner`."""
        self.state[self._key(access)] = state
        if owner:
            self.owner[self._key(access)] = owner

    def in_use(self, access: Access) -> tuple[int, str] | None:
        """(position, by what) of the first cell that an asynchronous operation still uses."""
        key = self._key(access)
        uses = (self.state[key] == ARRIVING, "written"), (self.busy[key] > 0, "read")
        return next(((int(bad.argmax()), what) for bad, what in uses if bad.any()), None)

    def hold(self, access: Access, change: int) -> None:
        """An asynchronous read of the cells begins (+1) or ends (-1)."""
        key = self._key(access)
        self.busy[key] = self.busy[key] + np.int8(change).astype(np.uint8)

    def proxy_gap(self, access: Access, clocks: Clocks) -> int | None:
        """Position of the first cell whose ordinary write no fence.proxy.async followed: the
        writer's own one, or of whoever waited for the cp.async that arrived at an mbarrier."""
        key = self._key(access)
        at = clocks.of(access.rows), self.write_warp[key]
        copied = self.write_thread[key] == _NOBODY
        fenced = np.where(copied, clocks.fence_known[at], clocks.fenced[at])
        bad = self.unfenced[key] & (self.write_clock[key] > fenced)
        return int(bad.argmax()) if bad.any() else None


class Shadow(Cells):
    """The same, with the order of accesses."""

    def read(
        self, access: Access, clocks: Clocks, loc: Loc | None, inserted: bool = False
    ) -> Clash | None:
        """Record a read; the first write it is not ordered after."""
        key = self._key(access)
        when, who = self.write_clock[key], self.write_warp[key]
        at, row = clocks.of(access.rows), key[0]
        bad = when > clocks.now[at, access.warps, who]
        if clocks.unaware is not None:
            seen = clocks.seen_by(at, access.warps, access.threads)
            bad = when > seen[np.arange(len(who)), who]
        if access.threads is not None:
            bad |= beside(self.write_thread[key], when, access, access.threads, clocks)
            self._mark_reader(key, access, access.threads, clocks)
            if bad.any() and self.writers.of is not None:
                sets, unordered = self.writers.of[key], _unordered(access, clocks)
                marks = access.threads << _THREAD_AT
                bad &= ~self.writers.harmless(sets, marks, bad, unordered)
        own = clocks.now[at, access.warps, access.warps]
        self.read_clock[row, access.warps, access.cells] = own
        self.read_loc[key] = self.number(loc, inserted)
        if not bad.any():
            return None
        return self._clash(access, bad, who, self.write_loc[key], "written")

    def _mark_reader(self, key: Any, access: Access, mine: Array, clocks: Clocks) -> None:
        """Keep which lane of a warp read each cell, or that several did since they last met."""
        warps, old = access.warps, self.read_thread[key]
        again = (old != mine) & names(old, warps)
        again &= self.read_clock[key[0], warps, access.cells] >= _since(old, mine, access, clocks)
        self.read_thread[key] = np.where(again, _SEVERAL + warps, mine)
        now = self.read_thread[key]
        near = (now != mine) & names(now, warps)
        if near.any():
            where = key[0] if isinstance(key[0], int) else key[0][near]
            self.read_thread[where, access.cells[near]] = _SEVERAL + warps[near]

    def read_together(
        self, access: Access, actors: Array, clocks: Clocks, loc: Loc | None, inserted: bool
    ) -> Clash | None:
        """Record that each of the actors reads all cells; the first write that one of them is
        not ordered after."""
        key, at = self._key(access), clocks.of(access.rows)
        who = self.write_warp[key]
        known = clocks.now[0, actors] if isinstance(at, int) else clocks.now[at[:, None], actors]
        least = known.min(axis=-2)
        seen = least[who] if isinstance(at, int) else least[np.arange(len(who)), who]
        bad = self.write_clock[key] > seen
        own = clocks.now[at, actors[:, None], actors[:, None]]
        self.read_clock[key[0], actors[:, None], access.cells] = own
        self.read_loc[key] = self.number(loc, inserted)
        return self._clash(access, bad, who, self.write_loc[key], "written") if bad.any() else None

    def write(
        self, access: Access, clocks: Clocks, loc: Loc | None, ordinary: bool,
        is_atomic: bool = False, inserted: bool = False,
        differs: Callable[[Access], Array] | None = None,
    ) -> tuple[Clash | None, Clash | None]:  # fmt: skip
        """Record a write; the first unordered (write, read) before it. Atomic updates need no
        order among themselves. `differs`: which entries bring another value than what is there
        (None: all): the others do no harm to writes, and to reads by those who wrote the value."""
        key, at = self._key(access), clocks.of(access.rows)
        seen = clocks.seen_by(at, access.warps, access.threads)
        when, who = self.write_clock[key], self.write_warp[key]
        bad = when > seen[np.arange(len(who)), who]
        if access.threads is not None:
            bad |= beside(self.write_thread[key], when, access, access.threads, clocks)
        if is_atomic:
            bad &= ~self.by_atomic[key]

        @cache
        def equal() -> Array:
            return np.zeros_like(bad) if differs is None else ~differs(access)

        old, follows = self._rewritten(key, access), ~bad
        readers = self.read_loc[key]
        if bad.any() or old.any() or bool((readers > 0).any()):
            bad, old = bad & ~equal(), np.where(equal(), old, 0)
        if self.writers.of is not None and not bad.any():
            bad, who = self._strays(key, access, equal, clocks, who)
        by_write = None
        if bad.any():
            by_write = self._clash(access, bad, who, self.write_loc[key], "written")
        by_read = self._unordered_read(access, seen, clocks, equal)
        if bool((readers > 0).any()):
            self.read_loc[key] = np.where(equal(), readers, -np.abs(readers))
        self.write_warp[key] = access.warps
        now = clocks.now[at, access.warps, access.warps]
        self.write_clock[key] = now
        self.write_loc[key] = self.number(loc, inserted)
        self.unfenced[key] = ordinary
        self.by_atomic[key] = is_atomic
        self._mark_writer(key, access, now, is_atomic, old, follows)
        return by_write, by_read

    def _rewritten(self, key: Any, access: Access) -> Array:
        """The marks of ordinary writes that an access finds, where another thread made them (or
        several did); else 0."""
        if access.threads is None:
            return np.zeros(len(access.cells), np.int64)
        thread = self.write_thread[key]
        other = (thread != access.threads) | (self.writers.sets(key) != 0)
        other &= (thread >= 0) & (thread < _SEVERAL) & ~self.by_atomic[key]
        if not other.any():
            return np.zeros(len(thread), np.int64)
        return np.where(other, _mark(thread, self.write_clock[key]), 0)

    def _strays(
        self, key: Any, access: Access, equal: Callable[[], Array], clocks: Clocks, who: Array
    ) -> tuple[Array, Array]:
        """Where an access brings another value and comes not after all who wrote what is there,
        and of which warp such a writer is."""
        sets = self.writers.sets(key)
        asked = sets != 0
        if not asked.any():
            return asked, who
        found = self.writers.strays(sets, asked & ~equal(), _unordered(access, clocks))
        return found != 0, np.where(found != 0, found >> _THREAD_AT + 5, who)

    def _mark_writer(
        self, key: Any, access: Access, now: Array, is_atomic: bool, old: Array, follows: Array
    ) -> None:
        mine = access.threads
        self.write_thread[key] = _NOBODY if mine is None else mine
        lost = np.False_ if mine is None else self.write_thread[key] != mine
        if is_atomic and lost.any():
            where = key[0] if isinstance(key[0], int) else key[0][lost]
            self.write_thread[where, access.cells[lost]] = _SEVERAL + access.warps[lost]
        several = lost | (old != 0)
        if mine is None or is_atomic or not several.any():
            self.writers.forget(key)
            return
        where = (np.broadcast_to(key[0], access.cells.shape), access.cells)
        self.writers.wrote(where, _mark(mine, now), several, old, follows)

    def _unordered_read(
        self, access: Access, seen: Array, clocks: Clocks, equal: Callable[[], Array]
    ) -> Clash | None:
        key = self._key(access)
        reads = self.read_clock[key[0], :, access.cells]  # (entries, actors)
        late: Array = reads > seen
        entries = np.arange(len(late))
        late[entries, access.warps] = False
        if access.threads is not None:
            own = reads[entries, access.warps]
            readers = self.read_thread[key]
            late[entries, access.warps] = beside(readers, own, access, access.threads, clocks)
        if late.any():
            asked = late.any(axis=1) & equal() & (self.read_loc[key] > 0)
            late &= ~self._own_reads(key, asked, late.shape[1])
        if not late.any():
            return None
        bad: Array = np.any(late, axis=1)
        return self._clash(access, bad, late.argmax(axis=1), np.abs(self.read_loc[key]), "read")

    def _own_reads(self, key: Any, asked: Array, actors: int) -> Array:
        """Whose reads, (entries, actors), are of a value that they wrote themselves."""
        found = np.zeros((len(asked), actors), np.bool_)
        if asked.any() and self.writers.of is not None:
            found = self.writers.warps(self.writers.of[key], asked, actors)
        writer = self.write_thread[key]
        alone = asked & (writer >= 0) & (writer == self.read_thread[key])
        found[alone, writer[alone] >> 5] = True
        return found

    def _clash(self, access: Access, bad: Array, who: Array, locs: Array, kind: str) -> Clash:
        i = int(bad.argmax())
        loc, inserted = self.locs[int(locs[i])]
        cell = (0 if access.rows is None else int(access.rows[i]), int(access.cells[i]))
        by_copy = kind == "written" and int(self.write_thread[cell]) == _NOBODY
        return Clash(i, int(who[i]), loc, kind, inserted, by_copy)


def _mark(threads: Array, times: Array) -> Array:
    """Writes as `writers` keeps them."""
    return threads.astype(np.int64) << _THREAD_AT | times


def _unordered(access: Access, clocks: Clocks) -> Unordered:
    """Asks whether entries of an access come not after writes."""

    def ask(entries: Array, marks: Array) -> Array:
        at = clocks.of(None if access.rows is None else access.rows[entries])
        that, when = marks >> _THREAD_AT, marks & ((1 << _THREAD_AT) - 1)
        if access.threads is None:
            late: Array = when > clocks.now[at, access.warps[entries], that >> 5]
            return late
        return clocks.unknown(at, access.threads[entries], that, when)

    return ask


def lane_of(marks: Array) -> Array:
    """The lanes that marks name; -1: more than one."""
    return np.where(marks < _SEVERAL, marks & 31, -1)


def names(marks: Array, warps: Any) -> Array:
    """Where marks of threads are of these warps."""
    found: Array = (marks >> 5 == warps) | (marks == _SEVERAL + warps)
    return found


def beside(marks: Array, when: Array, access: Access, mine: Array, clocks: Clocks) -> Array:
    """Where another lane of the same warp touched a cell, at time `when`, and both lanes have not
    met since."""
    near = (marks != mine) & names(marks, access.warps)
    if not near.any():
        return near
    return near & (when >= _since(marks, mine, access, clocks))


def _since(marks: Array, mine: Array, access: Access, clocks: Clocks) -> Array:
    """The time from which on threads know nothing of those that marks name."""
    at, one = clocks.of(access.rows), (marks >= 0) & (marks < _SEVERAL)
    return np.where(one, clocks.met(at, mine, np.where(one, marks, mine)), clocks.synced[at, mine])
