"""Copy instructions: the part of `Machine` with cp.async and TMA.

Hides when a copy takes effect: as late as its wait allows, so that a missing wait shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilelab.sim import findings as f
from tilelab.sim import tma
from tilelab.sim.arrivals import Copy
from tilelab.sim.frame import Array, varies
from tilelab.sim.group import BlockGroup
from tilelab.sim.lane_barriers import BarrierLanes
from tilelab.sim.lanes import at_lane
from tilelab.sim.place import Place
from tilelab.sim.queues import Queue
from tilelab.sim.shadow import ARRIVING
from tilelab.sim.timeline import ASYNC_COPIES, TMA, TMA_STORES, Clock


class CopyLanes(BarrierLanes):
    """Asynchronous copies of one strand."""

    def __init__(self, group: BlockGroup, clock: Clock, late: bool) -> None:
        super().__init__(group, clock, late)
        self.copies, self.stores = Queue(), Queue()

    def inherit_copies(self, other: CopyLanes) -> None:
        """Begin with the work that another strand has under way."""
        self.copies, self.stores = other.copies.copy(), other.stores.copy()

    def adopt_copies(self, other: CopyLanes) -> None:
        """Take over the work that an ended strand has under way."""
        self.copies.adopt(other.copies)
        self.stores.adopt(other.stores)

    # ---- cp.async -----------------------------------------------------------------------------

    def cp_async(self, dst: Place, src: Place, num_bytes: int, ok: Any) -> None:
        """Copy where `ok` (None: everywhere), zeros elsewhere."""
        memory, frame, group = self.memory, self.frame, self.group
        values = self._fetched(src, num_bytes // src.buffer.dtype.bytes, ok)
        dst = memory.bounded(dst, frame, "write")
        address = group.shared.address(dst.buffer, dst.indices)
        address = memory.fitted(dst.buffer, address, num_bytes, frame)
        clash = memory.use_shared(dst.buffer, address, num_bytes, frame, "written")
        if clash is not None:
            memory.report_clash(dst.buffer, *clash, frame, "cp.async")
        access = group.accessed(address, num_bytes, frame)
        group.shadow.set_state(access, ARRIVING, group.shared.owner(dst.buffer))
        self.copies.open.append(
            Copy(group, dst.buffer, address, values, frame.kept(), num_bytes, memory.loc)
        )
        moved = num_bytes * frame.active() / len(frame.rows)
        end = self.clock.copy(
            moved, frame.rows, memory.loc, kind="cp.async", track=ASYNC_COPIES,
            name=dst.buffer.said, stage=_slot(dst),
        )  # fmt: skip
        self.clock.copies.add(end, _slot(dst))

    def _fetched(self, src: Place, count: int, ok: Any) -> Array:
        if ok is None or (not varies(ok) and ok):
            return self.memory.load_run(src, count, self.frame)
        if not varies(ok):
            shape = (count, *(1,) * (len(self.frame.loops) + 2))
            return np.zeros(shape, src.buffer.dtype.numpy)
        values = self.memory.load_run(src, count, self.frame.masked(ok))
        return np.where(ok, values, np.zeros((), values.dtype))

    def cp_async_commit(self) -> None:
        """Close the group of copies."""
        self.copies.commit()
        self.clock.copies.commit()

    def cp_async_wait(self, pending: int) -> Iterator[Any]:
        """Copies of all but the newest `pending` groups take effect."""
        for copy in self.copies.take(pending, self.acting()):
            copy.finish()
        self.clock.finish(self.clock.copies, pending, self.frame.rows, self.memory.loc, "cp.async")
        return self._no_wait()

    def cp_async_arrive(self, bar: Place) -> None:
        """The threads arrive when their copies so far have come."""
        copies = self.copies.started(self.acting())
        for copy in copies:
            copy.announce()
        arrival = self.arrival(bar, max(self.clock.now, self.clock.copies.last()), copies)
        if self.late and copies:
            self.group.transfers.append(arrival)
        else:
            arrival.land()

    def _no_wait(self) -> Iterator[Any]:
        self.group.counters.add(self.memory.loc, "waits", len(self.frame.rows))
        return iter(())

    # ---- TMA ----------------------------------------------------------------------------------

    def _transfers(
        self, tensor_map: Any, place: Place, coords: Sequence[Any], stores: bool
    ) -> Iterator[tma.Transfer]:
        """One transfer for every active lane: TMA instructions are issued by single threads."""
        frame, group = self.frame, self.group
        place = self.memory.bounded(place, frame, "TMA access")
        address = group.shared.address(place.buffer, place.indices)
        count = len(frame.rows)
        for i, lane in enumerate(frame.lanes):
            keep = np.ones(count, np.bool_)
            if frame.mask is not None:
                keep = np.broadcast_to(frame.mask, frame.shape)[:, i]
            if not keep.any():
                continue
            starts = np.stack([at_lane(c, i, count) for c in coords], axis=1)[keep]
            bases = at_lane(address, i, count)[keep]
            if bool((bases == bases[0]).all()):
                bases = bases[:1]
            transfer = tma.prepare(
                group, tensor_map, place, bases, frame.rows[keep], int(lane), starts,
                self.memory.loc, stores,
            )  # fmt: skip
            if transfer is not None:
                yield transfer

    def tma_load(self, tensor_map: Any, bar: Place, dst: Place, coords: Sequence[Any]) -> None:
        """Queue a box from global to shared memory."""
        group, loc = self.group, self.memory.loc
        barriers, which = self.which(bar)
        self.usable(barriers, which, by_copy=True)
        for transfer in self._transfers(tensor_map, dst, coords, stores=False):
            transfer.bar = (barriers, which[np.isin(self.frame.rows, transfer.rows)])
            tma.issue_load(transfer)
            transfer.done = self.clock.copy(
                transfer.num_bytes, transfer.rows, loc, kind="tma load", track=TMA,
                stage=int(which[0]), name=dst.buffer.said,
            )  # fmt: skip
            group.counters.add(loc, "tma_bytes_read", transfer.num_bytes * len(transfer.rows))
            if self.late:
                group.transfers.append(transfer)
            else:
                transfer.land()

    def tma_store(self, tensor_map: Any, src: Place, coords: Sequence[Any]) -> None:
        """Queue a box from shared to global memory."""
        group, loc = self.group, self.memory.loc
        for transfer in self._transfers(tensor_map, src, coords, stores=True):
            tma.issue_store(transfer)
            end = self.clock.copy(
                transfer.num_bytes, transfer.rows, loc, kind="tma store", track=TMA_STORES,
                name=src.buffer.said,
            )  # fmt: skip
            self.clock.stores.add(end)
            group.counters.add(loc, "tma_bytes_written", transfer.num_bytes * len(transfer.rows))
            self.stores.open.append(transfer)

    def bulk_commit(self) -> None:
        """Close the group of stores."""
        self.stores.commit()
        self.clock.stores.commit()

    def bulk_wait(self, pending: int, read_only: bool) -> Iterator[Any]:
        """Stores of all but the newest `pending` groups have read shared memory; unless
        `read_only`, they take effect, too."""
        acting = self.acting()
        if read_only:
            for transfer in self.stores.older(pending, acting):
                transfer.read_source()
        else:
            for transfer in self.stores.take(pending, acting):
                transfer.finish_store()
        self.clock.finish(self.clock.stores, pending, self.frame.rows, self.memory.loc, "tma store")
        return self._no_wait()

    def finish_stores(self) -> None:
        """The strand ends: its stores still happen, but should have been waited for."""
        self.stores.commit()
        for transfer in self.stores.take(0):
            if transfer.pieces is not None:
                transfer.finish_store(waited=False)
                continue
            buffer = transfer.place.buffer
            text = (
                f"the kernel ends before the TMA store from {buffer.said} has read its "
                "shared memory"
            )
            self.group.report(
                f.MISSING_WAIT, text, transfer.loc, row=int(transfer.rows[0]),
                thread=transfer.warp * 32, buffer=buffer,
                index=transfer.corner(),
            )  # fmt: skip
            transfer.finish_store(waited=False)


def _slot(place: Place) -> int | None:
    """Which of the versions that a pipeline made of a tile a place lies in; None: it has one."""
    buffer = place.buffer
    if buffer.origin is None or buffer.rank != buffer.origin.rank + 1:
        return None
    return int(np.asarray(place.indices[0]).flat[0])
