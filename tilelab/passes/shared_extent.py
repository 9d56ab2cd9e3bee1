"""Bytes and alignment of buffers in a block's shared memory, and the options about their places."""

from __future__ import annotations

from tilelab.ir import Buffer, Scope
from tilelab.layout.shared import BOX_ALIGNMENT

BARRIER_BYTES = 8
BARRIER_ALIGNMENT = 16
MERGE, NO_REUSE = "tl.enable_aggressive_shared_memory_merge", "tl.disable_shared_memory_reuse"
DYNAMIC_ALIGNMENT = 1024  # of the dynamic part: static bytes before it are rounded up to this


def extent_of(buffer: Buffer) -> tuple[int, int]:
    """Bytes and alignment of one buffer."""
    if buffer.scope is Scope.BARRIER:
        return BARRIER_BYTES * int(buffer.static_shape[0]), BARRIER_BYTES
    if buffer.layout is not None:
        return buffer.layout.num_bytes, buffer.layout.alignment
    count = buffer.dtype.bytes
    for extent in buffer.static_shape:
        count *= extent
    return count, BOX_ALIGNMENT
