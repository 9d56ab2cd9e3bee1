"""What is known about shared memory beside its bytes: validity, arrival, last accesses.

Hides the granularity and the trick that keeps it cheap: while all blocks of a group do the same,
one row of metadata stands for all of them; it is copied to a row per block when they part.
Orders between warps are vector clocks (`Clocks`): barriers join them, accesses remember them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.errors import Loc

Array = np.ndarray[Any, Any]
UNWRITTEN, VALID, ARRIVING = 0, 1, 2


class Clocks:
    """One vector clock per actor: `now[w, u]` is how much of actor u's past actor w has seen.

    Actors are the warps, and after them a tensor core for each warp: the part of a wgmma that a
    warp has asked for reads shared memory beside it, and begins after what that warp knows.
    """

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.actors = 2 * warps
        self.now = np.zeros((self.actors, self.actors), np.int32)
        np.fill_diagonal(self.now, 1)
        self.fenced = np.zeros(self.actors, np.int32)  # how much of its past is proxy-fenced
        self.init_fenced = np.zeros(self.actors, np.int32)  # the same for barrier initialisation

    def tensor_cores(self, warps: Array) -> Array:
        """The actors that run the wgmmas of some warps."""
        return self.warps + warps

    def name(self, actor: int) -> str:
        """An actor for a message."""
        return f"warp {actor}" if actor < self.warps else "a wgmma"

    def begin(self, warps: Array) -> None:
        """A wgmma is issued: each warp's part comes after what that warp knows and did."""
        cores = self.tensor_cores(warps)
        self.now[cores] = np.maximum(self.now[cores], self.now[warps])
        self.now[warps, warps] += 1

    def end(self, warps: Array) -> None:
        """The warps have waited for their wgmma: they know its reads, nothing more. Its four
        parts end together, so that one warp's wait is enough to give a tile back."""
        cores = self.tensor_cores(warps)
        self.now[np.ix_(warps, cores)] = self.now[cores, cores]
        self.now[cores, cores] += 1

    def publish(self, warps: Array) -> Array:
        """What the warps have seen and done, joined; their later accesses are newer."""
        joined = self.now[warps].max(axis=0)
        self.now[warps, warps] += 1
        return joined

    def observe(self, warps: Array, seen: Array) -> None:
        """The warps come to know `seen`."""
        own = self.now[warps, warps]
        self.now[warps] = np.maximum(self.now[warps], seen)
        self.now[warps, warps] = own

    def fence(self, warps: Array) -> None:
        """fence.proxy.async of the warps."""
        self.fenced[warps] = self.now[warps, warps]
        self.now[warps, warps] += 1

    def fence_init(self, warps: Array) -> None:
        """fence.mbarrier_init of the warps."""
        self.init_fenced[warps] = self.now[warps, warps]

    def barrier(self, warps: Array) -> None:
        """The warps wait for each other."""
        self.observe(warps, self.publish(warps))


@dataclass(frozen=True)
class Access:
    """Cells touched by lanes: `cells` and `warps` of equal length, `span` cells in a row for each
    lane; `rows` the block of each entry (None: all blocks alike). `chosen` numbers the entries'
    (iteration, block, lane) in `shape` when a mask left some out."""

    cells: Array
    warps: Array
    rows: Array | None
    span: int
    shape: tuple[int, ...]
    chosen: Array | None

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


_ROWS = (
    "state", "write_warp", "write_clock", "read_clock", "write_loc", "read_loc", "unfenced", "busy",
    "by_atomic", "owner",
)  # fmt: skip


class Shadow:
    """Metadata of `granules` cells of shared memory for a group of blocks."""

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
        self.read_loc = np.zeros((1, cells), np.int16)
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
        for bad, what in ((self.state[key] == ARRIVING, "written"), (self.busy[key] > 0, "read")):
            if bad.any():
                return int(bad.argmax()), what
        return None

    def hold(self, access: Access, change: int) -> None:
        """An asynchronous read of the cells begins (+1) or ends (-1)."""
        key = self._key(access)
        self.busy[key] = self.busy[key] + np.int8(change).astype(np.uint8)

    def proxy_gap(self, access: Access, clocks: Clocks) -> int | None:
        """Position of the first cell whose ordinary write no fence.proxy.async followed."""
        key = self._key(access)
        bad = self.unfenced[key] & (self.write_clock[key] > clocks.fenced[self.write_warp[key]])
        return int(bad.argmax()) if bad.any() else None

    def read(
        self, access: Access, clocks: Clocks, loc: Loc | None, inserted: bool = False
    ) -> Clash | None:
        """Record a read; the first write it is not ordered after."""
        key = self._key(access)
        when, who = self.write_clock[key], self.write_warp[key]
        bad = when > clocks.now[access.warps, who]
        row = key[0]
        self.read_clock[row, access.warps, access.cells] = clocks.now[access.warps, access.warps]
        self.read_loc[key] = self.number(loc, inserted)
        if not bad.any():
            return None
        return self._clash(access, bad, who, self.write_loc[key], "written")

    def read_together(
        self, access: Access, actors: Array, clocks: Clocks, loc: Loc | None, inserted: bool
    ) -> Clash | None:
        """Record that each of the actors reads all cells; the first write that one of them is
        not ordered after."""
        key = self._key(access)
        who = self.write_warp[key]
        bad = self.write_clock[key] > clocks.now[actors].min(axis=0)[who]
        self.read_clock[key[0], actors[:, None], access.cells] = clocks.now[actors, actors][:, None]
        self.read_loc[key] = self.number(loc, inserted)
        return self._clash(access, bad, who, self.write_loc[key], "written") if bad.any() else None

    def write(
        self,
        access: Access,
        clocks: Clocks,
        loc: Loc | None,
        ordinary: bool,
        is_atomic: bool = False,
        inserted: bool = False,
    ) -> tuple[Clash | None, Clash | None]:
        """Record a write; the first unordered (write, read) before it. Atomic updates need no
        order among themselves."""
        key = self._key(access)
        seen = clocks.now[access.warps]  # (entries, warps)
        when, who = self.write_clock[key], self.write_warp[key]
        bad = when > seen[np.arange(len(who)), who]
        if is_atomic:
            bad &= ~self.by_atomic[key]
        by_write = None
        if bad.any():
            by_write = self._clash(access, bad, who, self.write_loc[key], "written")
        by_read = self._unordered_read(access, seen)
        self.write_warp[key] = access.warps
        self.write_clock[key] = clocks.now[access.warps, access.warps]
        self.write_loc[key] = self.number(loc, inserted)
        self.unfenced[key] = ordinary
        self.by_atomic[key] = is_atomic
        return by_write, by_read

    def _unordered_read(self, access: Access, seen: Array) -> Clash | None:
        row = 0 if access.rows is None else access.rows
        reads = self.read_clock[row, :, access.cells]  # (entries, warps)
        late: Array = reads > seen
        late[np.arange(len(late)), access.warps] = False
        if not late.any():
            return None
        bad: Array = np.any(late, axis=1)
        return self._clash(
            access, bad, late.argmax(axis=1), self.read_loc[self._key(access)], "read"
        )

    def _clash(self, access: Access, bad: Array, who: Array, locs: Array, kind: str) -> Clash:
        i = int(bad.argmax())
        loc, inserted = self.locs[int(locs[i])]
        return Clash(i, int(who[i]), loc, kind, inserted)
