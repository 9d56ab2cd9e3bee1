"""plan-shared-memory: give every shared buffer its place, and refuse what does not fit.

Tiles lie in dynamic shared memory in the order of their allocation, each aligned as its swizzle
asks; mbarriers (8 bytes each) stand in static shared memory.
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.errors import SharedMemoryOverflow
from tilelab.ir import Buffer, Scope, walk
from tilelab.passes.base import PassContext, tile_pass
from tilelab.thread.nodes import Program, SharedSlot, ThreadKernel

BARRIER_BYTES = 8
BARRIER_ALIGNMENT = 16
DYNAMIC_ALIGNMENT = 1024  # of the dynamic part: static bytes before it are rounded up to this


@tile_pass("plan-shared-memory", needs=("synchronised",), makes=("placed",))
def plan_shared_memory(program: Program, ctx: PassContext) -> Program:
    """Assign byte offsets in shared memory and check the limit of a block."""
    return replace(program, kernels=tuple(_kernel(k, ctx) for k in program.kernels))


def _kernel(kernel: ThreadKernel, ctx: PassContext) -> ThreadKernel:
    slots: list[SharedSlot] = []
    dynamic = static = 0
    views = [b for b in _used(kernel) if b.alias_of is not None]
    for buffer in _storages(kernel):
        size, alignment = _extent(buffer)
        if buffer.scope is Scope.BARRIER:
            slots.append(SharedSlot(buffer, static, size, dynamic=False))
            static += -(-size // BARRIER_ALIGNMENT) * BARRIER_ALIGNMENT
            continue
        offset = -(-dynamic // alignment) * alignment
        slots.append(SharedSlot(buffer, offset, size, dynamic=True))
        dynamic = offset + size
    places = {id(s.buffer): s for s in slots}
    slots.extend(replace(places[id(b.storage)], buffer=b) for b in views)
    planned = replace(kernel, shared=tuple(slots), dynamic_bytes=dynamic, static_bytes=static)
    check_fit(planned, ctx.target.limits.shared_per_block, str(ctx.target))
    if slots:
        ctx.note(f"{dynamic} bytes of dynamic, {static} bytes of static shared memory", kernel)
    return planned


def _used(kernel: ThreadKernel) -> list[Buffer]:
    """Shared buffers and barriers that some statement touches, in the order of allocation."""
    touched = {id(n) for n in walk(kernel.body)}
    return [slot.buffer for slot in kernel.shared if id(slot.buffer) in touched]


def _storages(kernel: ThreadKernel) -> list[Buffer]:
    """What needs a place: the used buffers, and the storage of used views."""
    used = {id(b.storage) for b in _used(kernel)}
    return [slot.buffer for slot in kernel.shared if id(slot.buffer) in used]


def _extent(buffer: Buffer) -> tuple[int, int]:
    """Bytes and alignment of one buffer."""
    if buffer.scope is Scope.BARRIER:
        return BARRIER_BYTES * int(buffer.static_shape[0]), BARRIER_BYTES
    if buffer.layout is not None:
        return buffer.layout.num_bytes, buffer.layout.alignment
    count = buffer.dtype.bytes
    for extent in buffer.static_shape:
        count *= extent
    return count, 16


def stages_of(buffer: Buffer) -> int:
    """Slots of a versioned buffer, 1 for others."""
    return int(buffer.static_shape[0]) if buffer.rank == buffer.root.rank + 1 else 1


def check_fit(kernel: ThreadKernel, limit: int, chip: str) -> None:
    """Raise SharedMemoryOverflow (TL1801) when a block would need more than `limit` bytes.

    The message lists bytes per buffer and the largest number of stages that fits.
    """
    static = -(-kernel.static_bytes // DYNAMIC_ALIGNMENT) * DYNAMIC_ALIGNMENT
    total = kernel.dynamic_bytes + static
    if total <= limit:
        return
    lines: list[str] = []
    fixed, staged = static, 0
    storages = [s for s in kernel.shared if s.buffer.alias_of is None]
    storages.sort(key=lambda s: -s.num_bytes)
    for slot in storages:
        stages = stages_of(slot.buffer)
        each = slot.num_bytes // stages
        times = f"{stages} stages of {each} bytes = " if stages > 1 else ""
        lines.append(f"{slot.buffer.root.name}: {times}{slot.num_bytes} bytes")
        if stages > 1:
            staged += each
        elif slot.dynamic:
            fixed += slot.num_bytes
    best = (limit - fixed) // staged if staged else 0
    hint = "use smaller tiles or a narrower element type"
    if staged and best >= 1:
        hint = f"num_stages={best} is the largest number of stages that fits; or use smaller tiles"
    raise SharedMemoryOverflow(
        f"{kernel.name} needs {total} bytes of shared memory per block, "
        f"{chip} allows {limit} bytes",
        loc=storages[0].buffer.root.loc or kernel.loc,
        hint=hint,
        notes=lines,
    )
