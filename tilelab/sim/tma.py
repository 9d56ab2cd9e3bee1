"""TMA: boxes between global and shared memory, as asynchronous transfers.

Hides the box's order of bytes in shared memory: rows of the innermost box extent, one after
another, 16-byte pieces moved by the swizzle, which works on address bits as on the chip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.layout.swizzle import TMA_SWIZZLES
from tilelab.sim import findings as f
from tilelab.sim import global_boxes
from tilelab.sim.barriers import MBarriers
from tilelab.sim.frame import Array
from tilelab.sim.global_boxes import box_view, overlap
from tilelab.sim.group import BlockGroup
from tilelab.sim.parts import unmet
from tilelab.sim.place import Place
from tilelab.sim.shadow import ARRIVING, VALID, Access
from tilelab.sim.timeline import contribute
from tilelab.target import WARP
from tilelab.thread import TensorMap

_ALIGNMENT = 128
_CHUNK = 16


@lru_cache(maxsize=4096)
def box_chunks(base: int, rows: int, inner_bytes: int, swizzle: int) -> Array:
    """Numbers of the 16-byte pieces of a box in shared memory, in the order of its elements."""
    pieces = np.arange(rows * (inner_bytes // _CHUNK), dtype=np.int64) * _CHUNK
    return swizzled(base + pieces, swizzle) // _CHUNK


def swizzled(addresses: Array, swizzle: int) -> Array:
    """Byte addresses after the swizzle of 0, 32, 64 or 128 bytes."""
    return TMA_SWIZZLES[swizzle].apply(addresses) if swizzle else addresses


@dataclass
class Transfer:
    """A box under way. `rows` are the blocks, `chunks` (rows or 1, pieces) its place in shared
    memory, `coords` (rows, rank) the first element, innermost first."""

    group: BlockGroup
    tensor_map: TensorMap
    place: Place
    rows: Array
    coords: Array
    chunks: Array
    thread: int
    clock: Array
    loc: Loc | None
    bar: tuple[MBarriers, Array] | None = None  # loads only
    done: float = 0.0  # on the timeline, loads only
    pieces: Array | None = None  # stores only: what was read of shared memory
    finished: bool = False

    @property
    def warp(self) -> int:
        """The warp of the thread that issued it."""
        return self.thread // WARP

    @property
    def num_bytes(self) -> int:
        return int(np.prod(self.tensor_map.box)) * self.tensor_map.tensor.dtype.bytes

    def corner(self) -> tuple[int, ...]:
        """The element of the buffer in shared memory that it begins at."""
        return self.place.corner()

    def access(self) -> Access:
        """The shadow cells of the box."""
        group, warps = self.group, np.array([self.warp])
        if len(self.chunks) == 1 and len(self.rows) == group.size:
            return group.chunk_access(self.chunks[0], warps, None)
        group.shadow.expand()
        parts = [
            group.chunk_access(self.chunks[i % len(self.chunks)], warps, self.rows[i : i + 1])
            for i in range(len(self.rows))
        ]
        cells = np.concatenate([p.cells for p in parts])
        rows = (
            None
            if parts[0].rows is None
            else np.concatenate([p.rows for p in parts if p.rows is not None])
        )
        return Access(
            cells, np.full(len(cells), self.warp), rows, len(parts[0].cells), (len(parts), 1), None
        )

    def land(self) -> None:
        """The bytes arrive: shared memory changes, and the barrier counts them."""
        group = self.group
        global_boxes.note(self, stores=False)
        data = gather_boxes(group.arrays[self.tensor_map.tensor], self.tensor_map, self.coords)
        pieces = data.reshape(len(self.rows), -1).view(np.complex128)
        if len(self.chunks) == 1:
            rows: Any = slice(None) if len(self.rows) == group.size else self.rows
            group.shared.store_chunks(rows, self.chunks[0], pieces)
        else:
            group.shared.store_chunks_each(self.rows, self.chunks, pieces)
        group.shadow.set_state(self.access(), VALID, group.shared.owner(self.place.buffer))
        assert self.bar is not None
        barriers, which = self.bar
        barriers.complete_bytes(self.rows, which, self.num_bytes, self.clock)
        contribute(group.timeline, barriers, self.rows, which, self.done)

    def apart(self, acting: Array) -> tuple[Transfer | None, Transfer | None]:
        """Of a store: the blocks in which the thread that issued it acts, and the others."""
        mine = acting[self.rows, self.thread]
        if mine.all():
            return self, None
        if not mine.any():
            return None, self
        own, rest = self._of(mine), self._of(~mine)
        at = next(i for i, t in enumerate(self.group.landing) if t is self)
        self.group.landing[at : at + 1] = [own, rest]
        return own, rest

    def _of(self, rows: Array) -> Transfer:
        chunks = self.chunks if len(self.chunks) == 1 else self.chunks[rows]
        pieces = None if self.pieces is None else self.pieces[rows]
        return replace(
            self, rows=self.rows[rows], coords=self.coords[rows], chunks=chunks, pieces=pieces
        )

    def read_source(self) -> None:
        """A store has read its place in shared memory, which may be overwritten now."""
        if self.pieces is not None:
            return
        group, access = self.group, self.access()
        if group.findings.wants(f.RACE):
            group.shadow.read(access, group.clocks, self.loc, inserted=True)
        group.shadow.hold(access, -1)
        if len(self.chunks) == 1:
            self.pieces = group.shared.load_chunks(self.rows, self.chunks[0])
        else:
            self.pieces = group.shared.load_chunks_each(self.rows, self.chunks)

    def finish_store(self, waited: bool = True) -> None:
        """Shared memory has been read, and global memory is written; `waited`: its thread has
        waited for that."""
        self.read_source()
        self.finished = True
        group, pieces = self.group, self.pieces
        assert pieces is not None
        group.landing = [t for t in group.landing if t is not self]
        alive = ~group.dead[self.rows]
        array = group.arrays[self.tensor_map.tensor]
        global_boxes.note(self, stores=True, data=pieces, waited=waited)
        scatter_boxes(array, self.tensor_map, self.coords[alive], pieces[alive])


def gather_boxes(array: Array, tensor_map: TensorMap, coords: Array) -> Array:
    """The boxes at `coords` (boxes, rank innermost first), zeros where outside the tensor."""
    view, box = box_view(array, tensor_map), tuple(reversed(tensor_map.box))
    out = np.zeros((len(coords), *box), array.dtype)
    for i, start in enumerate(coords[:, ::-1].tolist()):
        inside, within = overlap(start, box, view.shape)
        out[i][within] = view[inside]
    return out


def scatter_boxes(array: Array, tensor_map: TensorMap, coords: Array, pieces: Array) -> None:
    """Write boxes to the tensor; parts outside are dropped."""
    view, box = box_view(array, tensor_map), tuple(reversed(tensor_map.box))
    data = np.ascontiguousarray(pieces).view(array.dtype).reshape(len(coords), *box)
    for i, start in enumerate(coords[:, ::-1].tolist()):
        inside, within = overlap(start, box, view.shape)
        view[inside] = data[i][within]


def prepare(
    group: BlockGroup, tensor_map: TensorMap, place: Place, address: Any, rows: Array, thread: int,
    coords: Array, loc: Loc | None, stores: bool,
) -> Transfer | None:  # fmt: skip
    """A transfer between `coords` and byte addresses (an int or one per row); None (with a
    finding, and the blocks stopped) when the chip could not run it."""
    size = tensor_map.tensor.dtype.bytes
    inner = tensor_map.box[0] * size
    boxes = int(np.prod(tensor_map.box[1:]))
    bases = np.atleast_1d(np.asarray(address))
    problem = _illegal(group, tensor_map, inner, bases) or _illegal_start(
        tensor_map, coords, stores
    )
    if problem:
        group.report(
            f.MISALIGNED, problem, loc, row=int(rows[0]), thread=thread, buffer=place.buffer,
            index=place.corner(),
        )  # fmt: skip
        group.stop(rows)
        return None
    end = group.shared.end(place.buffer)
    if int(bases.max()) + boxes * inner > end:
        text = f"the box of {boxes * inner} bytes runs past the end of {place.buffer.said}"
        group.report(
            f.OUT_OF_BOUNDS, text, loc, row=int(rows[0]), thread=thread, buffer=place.buffer,
            index=place.corner(),
        )  # fmt: skip
        group.stop(rows)
        return None
    chunks = np.stack([box_chunks(int(b), boxes, inner, tensor_map.swizzle) for b in bases])
    return Transfer(group, tensor_map, place, rows, coords, chunks, thread, np.zeros(0), loc)


def _illegal(group: BlockGroup, tensor_map: TensorMap, inner: int, bases: Array) -> str:
    if inner % _CHUNK:
        return f"the inner extent of {tensor_map.name}'s box is {inner} bytes, no multiple of 16"
    if tensor_map.swizzle and inner > tensor_map.swizzle:
        return (
            f"rows of {inner} bytes exceed the {tensor_map.swizzle}-byte swizzle of "
            f"{tensor_map.name}"
        )
    if int((bases % _ALIGNMENT).max()):
        return f"a TMA box starts at shared address {int(bases.max())}, no multiple of {_ALIGNMENT}"
    view = box_view(group.arrays[tensor_map.tensor], tensor_map)
    if any(s % _CHUNK for s in view.strides[:-1]) or view.strides[-1] != view.itemsize:
        return f"the rows of {tensor_map.tensor.name} are no multiple of 16 bytes apart"
    return ""


def _illegal_start(tensor_map: TensorMap, coords: Array, stores: bool) -> str:
    """Starts that stop an H200 with an illegal instruction (measured: tests/gpu has the legal
    ones): an inner coordinate that is no multiple of 16 bytes, a store from a negative one."""
    starts = coords[:, 0] * tensor_map.tensor.dtype.bytes
    name = tensor_map.tensor.said
    if (starts % _CHUNK).any():
        first = int(coords[int((starts % _CHUNK).argmax()), 0])
        return f"a TMA box of {name} starts at inner coordinate {first}, no multiple of 16 bytes"
    if stores and (coords < 0).any():
        return f"a TMA store to {name} starts at the negative coordinate {int(coords.min())}"
    return ""


def issue_load(transfer: Transfer) -> None:
    """Mark the place as awaiting its bytes; report what is overwritten too early."""
    group, access = transfer.group, transfer.access()
    buffer = transfer.place.buffer
    global_boxes.before_load(transfer)
    busy = group.shadow.in_use(access)
    if busy is not None:
        text = f"a TMA load overwrites {buffer.said} while it is still being {busy[1]}"
        _report_cell(transfer, access, busy[0], f.MISSING_WAIT, text, None)
    if group.findings.wants(f.RACE):
        gap = group.shadow.proxy_gap(access, group.clocks)
        if gap is not None:
            text = "no fence.proxy.async stands between writing these bytes and the TMA load into "
            text += buffer.said
            _report_cell(transfer, access, gap, f.RACE, text, None, f.PROXY_HINT)
        near = unmet(group, access, transfer.thread)
        if near is not None:
            text = f"a TMA load into {buffer.root.name} is not ordered after another lane of "
            text += f"warp {transfer.warp} has {near[1]} the same place"
            _report_cell(transfer, access, near[0], f.RACE, text, None, f.LANES_HINT)
        by_write, by_read = group.shadow.write(
            access, group.clocks, transfer.loc, ordinary=False, inserted=True
        )
        clash = by_read or by_write
        if clash is not None:
            text = (
                f"a TMA load into {buffer.said} is not ordered after "
                f"{group.clocks.name(clash.other)} has {clash.kind} the same place"
            )
            hint = f.INSERTED_HINT if clash.inserted else ""
            _report_cell(transfer, access, clash.entry, f.RACE, text, clash.other_loc, hint)
    group.shadow.set_state(access, ARRIVING, group.shared.owner(buffer))
    transfer.clock = group.clocks.publish(transfer.rows, np.array([transfer.warp]))


def issue_store(transfer: Transfer) -> None:
    """Check that what will be read is there and visible to the asynchronous proxy."""
    group, access = transfer.group, transfer.access()
    name = transfer.place.buffer.said
    bad = group.shadow.bad_state(access, group.shared.owner(transfer.place.buffer))
    if bad is not None:
        code = f.MISSING_WAIT if bad[1] == ARRIVING else f.UNINITIALISED
        _report_cell(
            transfer, access, bad[0], code, f"the TMA store reads {name} before it is written", None
        )
    gap = None if bad is not None else group.shadow.proxy_gap(access, group.clocks)
    if gap is not None and group.findings.wants(f.RACE):
        text = f"no fence.proxy.async stands between writing {name} and its TMA store"
        _report_cell(transfer, access, gap, f.RACE, text, None, f.PROXY_HINT)
    if group.findings.wants(f.RACE):
        issuer = replace(access, threads=np.full(len(access.cells), transfer.thread))
        clash = group.shadow.read(issuer, group.clocks, transfer.loc, inserted=True)
        if clash is not None:
            text = (
                f"the TMA store of {name} reads what {group.clocks.name(clash.other)} writes, "
                "without an order between them"
            )
            hint = f.INSERTED_HINT if clash.inserted else ""
            _report_cell(transfer, access, clash.entry, f.RACE, text, clash.other_loc, hint)
    group.shadow.hold(access, 1)
    group.landing.append(transfer)


def _report_cell(
    transfer: Transfer, access: Access, entry: int, code: str, text: str, other: Loc | None,
    hint: str = "",
) -> None:  # fmt: skip
    group = transfer.group
    row = 0 if access.rows is None else int(access.rows[entry])
    start = int(access.cells[entry]) * group.shadow.granule
    found = group.shared.element(start, transfer.place.buffer)
    buffer = found[0] if found else transfer.place.buffer
    group.report(
        code, text, transfer.loc, row=row, thread=transfer.warp * WARP, buffer=buffer,
        index=found[1] if found else None, other=other, hint=hint,
    )  # fmt: skip
