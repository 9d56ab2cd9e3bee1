"""LOCAL buffers: registers of every thread, with validity. Hides their array order.

An array of `n` registers is (n, blocks, threads), so that a lane loop over registers is a slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tilelab.ir import Buffer
from tilelab.sim.frame import Array, Frame, Value, varies


@dataclass(frozen=True)
class Run:
    """Neighbouring registers, `first` to before `stop`, the same in all lanes."""

    first: int
    stop: int


def register_numbers(index: Value) -> int | slice | Array | None:
    """The registers an index names when it is the same in all lanes (an int, a slice, or an
    array over lane-loop axes); None when lanes differ."""
    if not varies(index):
        return slice(index.first, index.stop) if isinstance(index, Run) else int(index)
    if index.shape[-1] != 1 or index.shape[-2] != 1:
        return None
    flat = index[..., 0, 0]
    if flat.ndim != 1 or len(flat) < 2:
        return flat
    step = int(flat[1]) - int(flat[0])
    if step > 0 and flat.tolist() == list(range(flat[0], flat[-1] + 1, step)):
        return slice(int(flat[0]), int(flat[-1]) + 1, step)
    return flat


class Registers:
    """The register arrays of a group of blocks, made when they are first used."""

    def __init__(self, blocks: int, threads: int) -> None:
        self.blocks, self.threads = blocks, threads
        self._values: dict[Buffer, Array] = {}
        self._valid: dict[Buffer, Array] = {}

    def array(self, buffer: Buffer) -> Array:
        """(registers, blocks, threads) of a buffer."""
        found = self._values.get(buffer)
        if found is None and buffer.alias_of is not None:
            return self._view(buffer)
        if found is None:
            size = buffer.static_shape[0] if buffer.shape else 1
            shape = (size, self.blocks, self.threads)
            found = self._values[buffer] = np.zeros(shape, buffer.dtype.numpy)
            self._valid[buffer] = np.zeros((size, 1, self.threads), np.bool_)
        return found

    def _view(self, buffer: Buffer) -> Array:
        """The array of a view: the bytes of its storage, which is laid out thread by thread."""
        storage = buffer.storage
        by_thread = np.ascontiguousarray(np.moveaxis(self.array(storage), 0, -1))
        for member in (*self._values, buffer):
            if member.storage is storage:
                seen = by_thread.view(member.dtype.numpy)
                self._values[member] = np.moveaxis(seen, -1, 0)
        if _flags_of(buffer) is buffer:  # which elements of another size were written is not known
            self._valid[storage][:] = True
            shape = (len(self._values[buffer]), 1, self.threads)
            self._valid[buffer] = np.ones(shape, np.bool_)
        return self._values[buffer]

    def load(self, buffer: Buffer, index: Value, frame: Frame) -> Array:
        """Values at in-range register numbers."""
        return _gather(self.array(buffer), index, frame)

    def store(self, buffer: Buffer, index: Value, values: Array, frame: Frame) -> None:
        """Write where the frame's mask allows, and mark as written."""
        array = self.array(buffer)
        if frame.mask is not None:
            values = np.where(frame.mask, values, _gather(array, index, frame))
        _scatter(array, index, values, frame)
        self._mark(buffer, index, frame)

    def _mark(self, buffer: Buffer, index: Value, frame: Frame) -> None:
        key = _flags_of(buffer)
        valid = self._valid[key]
        if len(valid[0]) == 1 and not _alike(index, frame):
            valid = self._valid[key] = np.repeat(valid, self.blocks, axis=1)
        if frame.mask is None:
            new: Any = np.True_
        else:
            new = frame.mask | _gather(valid, index, frame)
        _scatter(valid, index, new, frame)

    def invalid(self, buffer: Buffer, index: Value, frame: Frame) -> Array | None:
        """Where a value is read that was never written; None when nowhere."""
        self.array(buffer)
        bad = ~_gather(self._valid[_flags_of(buffer)], index, frame)
        if not bad.any():
            return None
        if frame.mask is not None:
            bad = bad & frame.mask
        return bad if bad.any() else None


def _flags_of(buffer: Buffer) -> Buffer:
    """The buffer under which it is kept which elements were written: views of one size share."""
    storage = buffer.storage
    return storage if storage.dtype.bits == buffer.dtype.bits else buffer


def _alike(index: Value, frame: Frame) -> bool:
    """Whether all blocks of the group do the same to the same registers."""
    if not frame.all_rows:
        return False
    shaped = [v for v in (index, frame.mask) if varies(v)]
    return all(v.ndim < 2 or v.shape[-2] == 1 for v in shaped)


def _row_key(array: Array, frame: Frame) -> Any:
    return slice(0, 1) if array.shape[1] == 1 else frame.row_key


def _gather(array: Array, index: Value, frame: Frame) -> Array:
    numbers = register_numbers(index)
    rows, lanes = _row_key(array, frame), frame.lane_key
    if numbers is None:
        return array[index, _column(rows), _line(lanes)]
    if isinstance(rows, slice) or isinstance(lanes, slice):
        return array[:, rows][..., lanes][numbers]
    return array[:, rows[:, None], lanes][numbers]


def _scatter(array: Array, index: Value, values: Any, frame: Frame) -> None:
    numbers = register_numbers(index)
    rows, lanes = _row_key(array, frame), frame.lane_key
    if numbers is None:
        array[index, _column(rows), _line(lanes)] = values
    elif isinstance(rows, slice) and isinstance(lanes, slice):
        array[:, rows, lanes][numbers] = values
    else:
        where = np.arange(len(array))[numbers][..., None, None]
        array[where, _column(rows), _line(lanes)] = values


def _column(rows: Any) -> Array:
    return _line(rows)[:, None]


def _line(lanes: Any) -> Array:
    """Numbers of a key: of a slice, or the array it is."""
    return lanes if varies(lanes) else cast(Array, np.arange(lanes.start, lanes.stop))
