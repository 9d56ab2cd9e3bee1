"""The shared memory of a group of blocks: bytes, where buffers lie, and typed access to them.

Offsets are physical: layouts turn logical indices into byte addresses once, here, and matrix
instructions address the same bytes by their own rules, as on the chip.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.dtypes import DType
from tilelab.ir import Buffer
from tilelab.sim.frame import Array, Frame, Value, varies
from tilelab.thread import SharedSlot, ThreadKernel

_BASE_ALIGNMENT = 1024
CHUNK = 16
_CHUNK_TYPE = np.dtype(np.complex128)  # any 16-byte type: numpy copies it in one piece


class SharedMemory:
    """Static shared memory first, then the dynamic part at a 1024-byte boundary."""

    def __init__(self, kernel: ThreadKernel, blocks: int) -> None:
        static = max(
            [kernel.static_bytes, *(s.offset + s.num_bytes for s in kernel.shared if not s.dynamic)]
        )
        dynamic = max(
            [kernel.dynamic_bytes, *(s.offset + s.num_bytes for s in kernel.shared if s.dynamic)]
        )
        self.dynamic_base = -(-static // _BASE_ALIGNMENT) * _BASE_ALIGNMENT
        self.num_bytes = -(-(self.dynamic_base + dynamic) // CHUNK) * CHUNK
        self.blocks = blocks
        self.bytes = np.zeros((blocks, max(self.num_bytes, CHUNK)), np.uint8)
        self._slots: dict[Buffer, SharedSlot] = {s.buffer: s for s in kernel.shared}
        self._views: dict[Any, Array] = {}
        sharing = [s for s in kernel.shared if any(_held_by_two(s, o) for o in kernel.shared)]
        storages = list(dict.fromkeys(s.buffer.storage for s in sharing))
        self._owners = {s.buffer: storages.index(s.buffer.storage) + 1 for s in sharing}

    def base(self, buffer: Buffer) -> int:
        """Byte address of a buffer's first element."""
        slot = self._slots[buffer]
        return slot.offset + (self.dynamic_base if slot.dynamic else 0)

    def owner(self, buffer: Buffer) -> int:
        """A number for the storage of a buffer that shares its bytes with another one, else 0."""
        return self._owners.get(buffer, 0)

    def end(self, buffer: Buffer) -> int:
        """Byte address after a buffer's last byte."""
        return self.base(buffer) + self._slots[buffer].num_bytes

    def address(self, buffer: Buffer, indices: tuple[Value, ...]) -> Value:
        """Byte address of an element, for in-range indices."""
        if buffer.layout is not None:
            offset = buffer.layout.offset_of(indices)
        else:
            offset = 0
            for index, extent in zip(indices, buffer.static_shape, strict=True):
                offset = offset * extent + index
        return offset * buffer.dtype.bytes + self.base(buffer)

    def element(
        self, address: int, accessed: Buffer | None = None
    ) -> tuple[Buffer, tuple[int, ...]] | None:
        """The buffer (`accessed`, where several lie there) and logical index of a byte address."""
        first = [] if accessed is None or not self.owner(accessed) else [accessed]
        for buffer in (*first, *self._slots):
            start = self.base(buffer)
            if start <= address < start + self._slots[buffer].num_bytes:
                return buffer, _index_at(buffer, (address - start) // buffer.dtype.bytes)
        return None

    def view(self, dtype: np.dtype[Any]) -> Array:
        """The bytes as elements of another type, (blocks, elements)."""
        found = self._views.get(dtype)
        if found is None:
            found = self._views[dtype] = self.bytes.view(dtype)
        return found

    def load(self, dtype: DType, address: Value, frame: Frame) -> Array:
        """Elements at aligned in-range byte addresses."""
        view = self.view(dtype.numpy)
        index = _cells(address, dtype.bytes)
        if not varies(index):
            return view[frame.row_key, index][:, None]
        if frame.mask is not None:  # a run of a lane that is left out may reach past the end
            index = np.minimum(index, view.shape[1] - 1)
        if index.shape[-2] == 1:
            return np.moveaxis(view[frame.row_key][:, index[..., 0, :]], 0, -2)
        return view[frame.rows[:, None], index]

    def store(self, dtype: DType, address: Value, values: Array, frame: Frame) -> None:
        """Write elements where the frame's mask allows."""
        view = self.view(dtype.numpy)
        index = np.asarray(_cells(address, dtype.bytes))
        shape = np.broadcast_shapes(values.shape, index.shape, (1, len(frame.rows), 1))
        if frame.mask is None and (index.ndim < 2 or index.shape[-2] == 1):
            flat = index[..., 0, :] if index.ndim >= 2 else index.reshape(1)
            source = np.moveaxis(np.broadcast_to(values, shape), -2, 0)
            self._assign(view, frame, np.broadcast_to(flat, source.shape[1:]), source)
            return
        where = np.broadcast_to(index, shape)
        rows = np.broadcast_to(frame.rows[:, None], shape)
        source = np.broadcast_to(values, shape)
        if frame.mask is None:
            view[rows, where] = source
        else:
            mask = np.broadcast_to(frame.mask, shape)
            view[rows[mask], where[mask]] = source[mask]

    def _assign(self, view: Array, frame: Frame, index: Array, source: Array) -> None:
        if frame.contiguous_rows:
            view[frame.row_key][:, index] = source
        else:
            view[frame.rows.reshape(-1, *(1,) * index.ndim), index] = source

    def load_chunks(self, rows: Any, chunks: Array) -> Array:
        """16-byte pieces by number: (blocks, *chunks.shape) for one set of numbers."""
        return self.view(_CHUNK_TYPE)[rows][:, chunks]

    def store_chunks(self, rows: Any, chunks: Array, data: Array) -> None:
        """Write 16-byte pieces, `data` (blocks, *chunks.shape) of complex128."""
        view = self.view(_CHUNK_TYPE)
        if isinstance(rows, slice):
            view[rows][:, chunks] = data
        else:
            view[rows.reshape(-1, *(1,) * chunks.ndim), chunks] = data

    def load_chunks_each(self, rows: Array, chunks: Array) -> Array:
        """The same where every block has its own numbers, `chunks` (blocks, ...)."""
        return self.view(_CHUNK_TYPE)[rows.reshape(-1, *(1,) * (chunks.ndim - 1)), chunks]

    def store_chunks_each(self, rows: Array, chunks: Array, data: Array) -> None:
        self.view(_CHUNK_TYPE)[rows.reshape(-1, *(1,) * (chunks.ndim - 1)), chunks] = data


def _held_by_two(slot: SharedSlot, other: SharedSlot) -> bool:
    return slot.buffer.storage is not other.buffer.storage and slot.crosses(other)


def _cells(address: Value, size: int) -> Value:
    return address // size


def _index_at(buffer: Buffer, offset: int) -> tuple[int, ...]:
    if buffer.layout is not None:
        found = buffer.layout.element_at(offset)
        return found if found is not None else ()
    return tuple(int(i) for i in np.unravel_index(offset, buffer.static_shape))
