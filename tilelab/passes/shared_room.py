"""Shared memory that a kernel's tiles take when each lies in a place of its own, and what is left.

The one count behind "is there room": for a second slot, a staging tile, a block that stays. Scratch
that lowerings ask for is not known before them; `compiler.lower` compiles anew where it was needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilelab.ir import Alloc, Kernel, Scope, walk
from tilelab.passes.base import PassContext
from tilelab.passes.shared_extent import DYNAMIC_ALIGNMENT, extent_of
from tilelab.thread.occupancy import round_up


def bytes_apart(kernel: Kernel, slots: Mapping[int, int] | None = None) -> int:
    """Bytes of the shared buffers that a kernel allocates, each apart from the others and as often
    as `slots` (by the buffer's id) says; at least DYNAMIC_ALIGNMENT for barriers and padding."""
    times = slots or {}
    dynamic = barriers = 0
    for buffer in (n.buffer for n in walk(kernel) if isinstance(n, Alloc)):
        if buffer.alias_of is not None or buffer.scope not in (Scope.SHARED, Scope.BARRIER):
            continue
        size, alignment = extent_of(buffer)
        if buffer.scope is Scope.BARRIER:
            barriers += round_up(size, alignment)
        else:
            dynamic += round_up(size, alignment) * times.get(id(buffer), 1)
    return round_up(dynamic, DYNAMIC_ALIGNMENT) + max(
        round_up(barriers, DYNAMIC_ALIGNMENT), DYNAMIC_ALIGNMENT
    )


def room(kernel: Kernel, ctx: PassContext, slots: Mapping[int, int] | None = None) -> int:
    """Bytes of a block's shared memory that are left; negative where tiles must share bytes."""
    return ctx.target.limits.shared_per_block - bytes_apart(kernel, slots)


__all__ = ["bytes_apart", "room"]
