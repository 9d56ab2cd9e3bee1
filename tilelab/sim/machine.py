"""The simulator's side of the `Machine` protocol: what instruction records may do.

One per strand. Hides how lanes are grouped into warps and where asynchronous work is queued.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelab.ir import Buffer
from tilelab.sim import findings as f
from tilelab.sim import tma
from tilelab.sim.access import CheckedMemory, Place
from tilelab.sim.barriers import MBarriers
from tilelab.sim.frame import Array, Frame
from tilelab.sim.group import WARP, BlockGroup
from tilelab.sim.shadow import ARRIVING, VALID
from tilelab.sim.waits import BarrierWait, PhaseWait
from tilelab.sim.wgmma import Descriptor, Product, TensorCore


@dataclass
class Copy:
    """One cp.async under way: values read, not yet in shared memory."""

    buffer: Buffer
    address: Any
    values: Array
    frame: Frame
    num_bytes: int
    loc: Any


@dataclass
class Queues:
    """Asynchronous work of one strand."""

    copies: list[Copy] = field(default_factory=list[Copy])
    copy_groups: list[list[Copy]] = field(default_factory=list[list[Copy]])
    stores: list[tma.Transfer] = field(default_factory=list[tma.Transfer])
    store_groups: list[list[tma.Transfer]] = field(default_factory=list[list[tma.Transfer]])


class LaneMachine:
    """The machine as the lanes of one strand see it; `frame` is set before each instruction."""

    def __init__(self, group: BlockGroup, role: str, late: bool) -> None:
        self.group, self.role, self.late = group, role, late
        self.memory = CheckedMemory(group)
        self.tensor_core = TensorCore(group)
        self.queues = Queues()
        self.frame: Frame = None  # type: ignore[assignment]  # set before each use

    # ---- memory -------------------------------------------------------------------------------

    def load(self, place: Place, count: int, *, packed: bool = False) -> Array:
        return self.memory.load_run(place, count, self.frame)

    def store(self, place: Place, values: Array, *, packed: bool = False) -> None:
        values = values.astype(place.buffer.dtype.numpy, copy=False)
        self.memory.store_run(place, values, self.frame)

    def _row_frame(self, lanes: Array) -> tuple[Frame, int]:
        """A frame of the lanes of every warp whose addresses count, and the number of warps."""
        frame = self.frame
        chosen = np.isin(frame.lanes % WARP, lanes)
        if chosen.all():
            return frame, len(frame.lanes) // WARP
        return frame.narrowed(None, chosen, self.group.size), len(frame.lanes) // WARP

    def load_rows(self, place: Place, lanes: Array) -> Array:
        frame, warps = self._row_frame(lanes)
        place = _narrowed_place(place, self.frame, frame)
        count = 16 // place.buffer.dtype.bytes
        values = self.memory.load_run(place, count, frame)  # (8, ..., blocks, warps * rows)
        values = np.broadcast_to(values, (count, *np.broadcast_shapes(values.shape[1:], frame.shape[-2:])))
        split = values.reshape(*values.shape[:-1], warps, len(lanes))
        return np.moveaxis(split, -1, 0)

    def store_rows(self, place: Place, lanes: Array, values: Array) -> None:
        frame, _ = self._row_frame(lanes)
        place = _narrowed_place(place, self.frame, frame)
        merged = np.moveaxis(values, 0, -1)
        merged = merged.reshape(*merged.shape[:-2], len(frame.lanes))
        self.memory.store_run(place, merged.astype(place.buffer.dtype.numpy, copy=False), frame)

    def whole(self, size: int, what: str) -> None:
        lanes, frame = self.frame.lanes, self.frame
        full = len(lanes) % size == 0 and frame.mask is None
        if full and int(lanes[0]) % size == 0 and bool((lanes.reshape(-1, size)[:, -1] - lanes.reshape(-1, size)[:, 0] == size - 1).all()):
            return
        text = f"{what} needs all {size} threads of a {'warp' if size == WARP else 'warpgroup'} together"
        self.group.report(f.PARTIAL_WARP, text, self.memory.loc, row=int(frame.rows[0]), thread=int(lanes[0]))
        self.group.stop(frame.rows)
        raise BlocksStopped

    def count(self, counter: str, per_lane: int) -> None:
        self.group.counters.add(self.memory.loc, counter, per_lane * self.frame.active())

    # ---- barriers -----------------------------------------------------------------------------

    def sync_threads(self, barrier: Any, threads: Any) -> Iterator[Any]:
        frame, group = self.frame, self.group
        number = int(np.asarray(barrier).reshape(-1)[0])
        needs = None if threads is None else int(np.asarray(threads).reshape(-1)[0])
        warps = np.unique(frame.lanes // WARP)
        lanes = len(frame.lanes)
        before = group.barriers.arrive(number, frame.rows, warps, lanes, needs)
        yield from self._waiting(BarrierWait(number, frame.rows, before, self.memory.loc))

    def _waiting(self, wait: Any) -> Iterator[Any]:
        self.group.counters.add(self.memory.loc, "waits", len(wait.rows))
        loc, statement = self.memory.loc, self.memory.statement
        if len(wait.blocked(self.group)):
            self.group.counters.add(loc, "blocked_waits", len(wait.rows))
            yield wait
        self.memory.loc, self.memory.statement = loc, statement

    def _which(self, bar: Place) -> tuple[MBarriers, Array]:
        barriers = self.group.mbarriers[bar.buffer]
        flat: Any = 0
        for index, extent in zip(bar.indices, barriers.shape, strict=True):
            flat = flat * extent + np.asarray(index)
        return barriers, self._per_row(flat)

    def _per_row(self, value: Any) -> Array:
        """A value that lanes agree on, one for each row."""
        array = np.asarray(value)
        if array.ndim >= 2:
            array = array.reshape(array.shape[-2:])[:, 0]
        return np.broadcast_to(array, (len(self.frame.rows),))

    def _lanes_per_row(self) -> Array:
        frame = self.frame
        if frame.mask is None:
            return np.full(len(frame.rows), len(frame.lanes))
        return np.broadcast_to(frame.mask, frame.shape).sum(axis=-1)

    def mbarrier_init(self, bar: Place, count: Any) -> None:
        barriers, which = self._which(bar)
        barriers.init(self.frame.rows, which, self._per_row(count))

    def mbarrier_arrive(self, bar: Place, expect_bytes: Any) -> None:
        group, frame = self.group, self.frame
        barriers, which = self._which(bar)
        self._initialised(barriers, which)
        lanes = self._lanes_per_row()
        clock = group.clocks.publish(np.unique(frame.lanes // WARP))
        num_bytes = self._per_row(expect_bytes) * lanes
        surplus = barriers.arrive(frame.rows, which, lanes, num_bytes, clock)
        if surplus.any():
            at = int(surplus.argmax())
            name = barriers.name(int(which[at]))
            text = f"{name} gets more arrivals in one phase than it was initialised with"
            group.report(f.BARRIER_MISUSE, text, self.memory.loc, row=int(frame.rows[at]), thread=int(frame.lanes[0]))
            group.stop(frame.rows[surplus])
        group.event(self.role, "expect" if np.any(num_bytes) else "arrive", self.memory.loc, int(which[0]))

    def _initialised(self, barriers: MBarriers, which: Array) -> None:
        rows = self.frame.rows
        bad = ~barriers.ready[rows, which]
        if bad.any():
            at = int(bad.argmax())
            text = f"{barriers.name(int(which[at]))} is used before it is initialised"
            self.group.report(f.BARRIER_MISUSE, text, self.memory.loc, row=int(rows[at]), thread=int(self.frame.lanes[0]))
            self.group.stop(rows[bad])

    def mbarrier_wait(self, bar: Place, parity: Any) -> Iterator[Any]:
        group, frame = self.group, self.frame
        barriers, which = self._which(bar)
        self._initialised(barriers, which)
        warps = np.unique(frame.lanes // WARP)
        wait = PhaseWait(barriers, frame.rows, which, self._per_row(parity) & 1, self.memory.loc)
        yield from self._waiting(wait)
        for one in np.unique(which):
            group.clocks.observe(warps, barriers.released[one])
        group.event(self.role, "wait", self.memory.loc, int(which[0]))

    def fence(self, kind: str) -> None:
        if kind == "proxy_async":
            self.group.clocks.fence(np.unique(self.frame.lanes // WARP))

    # ---- cp.async -----------------------------------------------------------------------------

    def cp_async(self, dst: Place, src: Place, num_bytes: int, ok: Any) -> None:
        memory, frame, group = self.memory, self.frame, self.group
        count = num_bytes // src.buffer.dtype.bytes
        values = self._fetched(src, count, ok)
        dst = memory.bounded(dst, frame, "write")
        address = group.shared.address(dst.buffer, dst.indices)
        memory.use_shared(dst.buffer, address, num_bytes, frame, "written")
        group.shadow.set_state(group.accessed(address, num_bytes, frame), ARRIVING)
        self.queues.copies.append(Copy(dst.buffer, address, values, frame, num_bytes, memory.loc))

    def _fetched(self, src: Place, count: int, ok: Any) -> Array:
        if ok is None or (not isinstance(ok, np.ndarray) and ok):
            return self.memory.load_run(src, count, self.frame)
        if not isinstance(ok, np.ndarray):
            return np.zeros((count, *(1,) * (len(self.frame.loops) + 2)), src.buffer.dtype.numpy)
        values = self.memory.load_run(src, count, self.frame.masked(ok))
        return np.where(ok, values, np.zeros((), values.dtype))

    def cp_async_commit(self) -> None:
        self.queues.copy_groups.append(self.queues.copies)
        self.queues.copies = []

    def cp_async_wait(self, pending: int) -> Iterator[Any]:
        groups = self.queues.copy_groups
        done, self.queues.copy_groups = _split(groups, pending)
        for copies in done:
            for copy in copies:
                self._finish(copy)
        self.group.counters.add(self.memory.loc, "waits", len(self.frame.rows))
        return
        yield  # a generator like every instruction that waits; its work is done by now

    def _finish(self, copy: Copy) -> None:
        group = self.group
        access = group.accessed(copy.address, copy.num_bytes, copy.frame)
        group.shadow.set_state(access, VALID)
        if group.findings.wants(f.RACE):
            group.shadow.write(access, group.clocks, copy.loc, ordinary=True)
        size = copy.buffer.dtype.bytes
        where = copy.address + np.arange(len(copy.values)).reshape(-1, *(1,) * (len(copy.frame.loops) + 2)) * size
        group.shared.store(copy.buffer.dtype, where, copy.values, copy.frame)

    # ---- TMA ----------------------------------------------------------------------------------

    def _transfers(self, tensor_map: Any, place: Place, coords: Sequence[Any]) -> Iterator[tma.Transfer]:
        """One transfer for every active lane: TMA instructions are issued by single threads."""
        frame, group = self.frame, self.group
        place = self.memory.bounded(place, frame, "TMA access")
        address = group.shared.address(place.buffer, place.indices)
        for i, lane in enumerate(frame.lanes):
            keep = None if frame.mask is None else np.broadcast_to(frame.mask, frame.shape)[:, i]
            rows = frame.rows if keep is None else frame.rows[keep]
            if not len(rows):
                continue
            starts = np.stack([_at_lane(c, i, len(frame.rows)) for c in coords], axis=1)
            bases = address if not isinstance(address, np.ndarray) else _at_lane(address, i, len(frame.rows))
            if keep is not None:
                starts, bases = starts[keep], bases[keep] if isinstance(bases, np.ndarray) else bases
            transfer = tma.prepare(
                group, tensor_map, place, bases, rows, int(lane), starts, self.memory.loc, self.role
            )
            if transfer is not None:
                yield transfer

    def tma_load(self, tensor_map: Any, bar: Place, dst: Place, coords: Sequence[Any]) -> None:
        barriers, which = self._which(bar)
        self._initialised(barriers, which)
        for transfer in self._transfers(tensor_map, dst, coords):
            chosen = which[np.isin(self.frame.rows, transfer.rows)]
            transfer.bar = (barriers, chosen)
            tma.issue_load(transfer)
            self.group.event(self.role, "tma load", self.memory.loc, int(which[0]))
            self.group.counters.add(self.memory.loc, "tma_bytes_read", transfer.num_bytes * len(transfer.rows))
            if self.late:
                self.group.transfers.append(transfer)
            else:
                transfer.finish_load()

    def tma_store(self, tensor_map: Any, src: Place, coords: Sequence[Any]) -> None:
        for transfer in self._transfers(tensor_map, src, coords):
            tma.issue_store(transfer)
            self.group.event(self.role, "tma store", self.memory.loc)
            self.group.counters.add(self.memory.loc, "tma_bytes_written", transfer.num_bytes * len(transfer.rows))
            self.queues.stores.append(transfer)

    def bulk_commit(self) -> None:
        self.queues.store_groups.append(self.queues.stores)
        self.queues.stores = []

    def bulk_wait(self, pending: int, read_only: bool) -> Iterator[Any]:
        done, self.queues.store_groups = _split(self.queues.store_groups, pending)
        for transfers in done:
            for transfer in transfers:
                transfer.finish_store()
        self.group.counters.add(self.memory.loc, "waits", len(self.frame.rows))
        return
        yield  # a generator like every instruction that waits; its work is done by now

    # ---- wgmma --------------------------------------------------------------------------------

    def wgmma(self, n: int, d: Place, a: Any, b: Any, accumulate: Any, trans: tuple[bool, bool], k: int) -> None:
        frame, group = self.frame, self.group
        values = None
        if isinstance(a, Place):
            shape = (8, len(frame.rows), len(frame.lanes))
            values = np.broadcast_to(self.memory.load_run(a, 8, frame), shape)
        register = int(np.asarray(d.indices[0]).reshape(-1)[0])
        for i in range(0, len(frame.lanes), 128):
            starts_a = None if values is not None else self._starts(a, i)
            starts_b = self._starts(b, i)
            for rows in _agreeing(starts_b if starts_a is None else np.stack([starts_a, starts_b])):
                part = self._warpgroup(i, rows)
                at = 0 if rows is None else int(np.flatnonzero(rows)[0])
                left: Any = (a, int(starts_a[at])) if starts_a is not None else None
                if values is not None:
                    left = values[..., i : i + 128] if rows is None else values[:, rows, i : i + 128]
                keep = self._kept(accumulate, i, rows)
                self.tensor_core.issue(
                    Product(n, k, (d.buffer, register), left, (b, int(starts_b[at])), keep, trans,
                            part, self.memory.loc)
                )  # fmt: skip
        self.memory.in_flight = self.tensor_core.unfinished()
        group.counters.add(self.memory.loc, "mma_flops", 2 * 64 * n * k * frame.active() // 128)
        group.event(self.role, "wgmma", self.memory.loc)

    def _starts(self, descriptor: Descriptor, lane: int) -> Array:
        return _at_lane(descriptor.start, lane, len(self.frame.rows))

    @staticmethod
    def _kept(accumulate: Any, lane: int, rows: Array | None) -> Any:
        if not isinstance(accumulate, np.ndarray):
            return accumulate
        keep = accumulate if accumulate.shape[-1] == 1 else accumulate[..., lane : lane + 128]
        if rows is not None and keep.shape[-2] > 1:
            keep = keep[..., rows, :]
        return bool(keep.reshape(-1)[0]) if (keep == keep.reshape(-1)[0]).all() else keep

    def _warpgroup(self, first: int, rows: Array | None) -> Frame:
        if len(self.frame.lanes) == 128 and rows is None:
            return self.frame
        chosen = np.zeros(len(self.frame.lanes), np.bool_)
        chosen[first : first + 128] = True
        return self.frame.narrowed(rows, chosen, self.group.size)

    def wgmma_commit(self) -> None:
        self.tensor_core.commit()

    def wgmma_wait(self, pending: int) -> Iterator[Any]:
        self.tensor_core.wait(pending)
        self.memory.in_flight = self.tensor_core.unfinished()
        self.group.counters.add(self.memory.loc, "waits", len(self.frame.rows))
        return
        yield  # a generator like every instruction that waits; its work is done by now

    def finish(self) -> None:
        """The strand ends: what is under way still happens, but should have been waited for."""
        pending = [*self.queues.stores, *(t for g in self.queues.store_groups for t in g)]
        for transfer in pending:
            name = transfer.place.buffer.root.name
            text = f"the kernel ends before the TMA store from {name} has read its shared memory"
            self.group.report(f.MISSING_WAIT, text, transfer.loc, row=int(transfer.rows[0]), buffer=transfer.place.buffer)
            transfer.finish_store()
        self.tensor_core.commit()
        self.tensor_core.wait(0)
        self.memory.in_flight = []


class BlocksStopped(Exception):
    """Raised inside a strand when nothing of the current statement can go on."""


def _split(groups: list[Any], pending: int) -> tuple[list[Any], list[Any]]:
    count = max(len(groups) - pending, 0)
    return groups[:count], groups[count:]


def _at_lane(value: Any, lane: int, rows: int) -> Array:
    array = np.asarray(value)
    if array.ndim >= 2:
        array = array.reshape(array.shape[-2:])
        array = array[:, lane if array.shape[1] > 1 else 0]
    return np.broadcast_to(array, (rows,)).astype(np.int64)


def _agreeing(starts: Array) -> list[Array | None]:
    """Selections of rows that have equal columns; [None] when all rows have."""
    columns = np.atleast_2d(starts)
    if bool((columns == columns[:, :1]).all()):
        return [None]
    _, numbers = np.unique(columns, axis=1, return_inverse=True)
    numbers = numbers.reshape(-1)
    return [numbers == n for n in range(int(numbers.max()) + 1)]


def _narrowed_place(place: Place, old: Frame, new: Frame) -> Place:
    if old is new:
        return place
    chosen = np.isin(old.lanes, new.lanes)
    indices = tuple(
        i[..., chosen] if isinstance(i, np.ndarray) and i.shape[-1] == len(old.lanes) > 1 else i
        for i in place.indices
    )
    return Place(place.buffer, indices)


