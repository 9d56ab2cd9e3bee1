"""plan-shared-memory: give every shared buffer its place, and refuse what does not fit.

Tiles lie in dynamic shared memory in the order of their allocation, each aligned as its swizzle
asks; mbarriers (8 bytes each) stand in static shared memory. Where that is more than a block may
have, tiles that are never live together share bytes (`shared_lifetimes`); `insert_sync` orders
the change of owner, so it runs afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilelab.errors import SharedMemoryOverflow
from tilelab.ir import Buffer, Scope, walk
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.shared_extent import (
    BARRIER_ALIGNMENT,
    DYNAMIC_ALIGNMENT,
    MERGE,
    NO_REUSE,
    extent_of,
)
from tilelab.passes.shared_lifetimes import live_ranges, overlapping, place
from tilelab.thread.nodes import Program, SharedSlot, ThreadKernel


@tile_pass("plan-shared-memory", needs=("lowered",), makes=("placed",))
def plan_shared_memory(program: Program, ctx: PassContext) -> Program:
    """Assign byte offsets in shared memory and check the limit of a block."""
    return replace(program, kernels=tuple(_kernel(k, ctx) for k in program.kernels))


def _kernel(kernel: ThreadKernel, ctx: PassContext) -> ThreadKernel:
    limit = ctx.target.limits.shared_per_block
    planned = _placed(kernel, _apart(kernel))
    apart = total_bytes(planned)
    wanted = bool(ctx.option(MERGE, False))
    if (wanted or apart > limit) and not ctx.option(NO_REUSE, False):
        shared = _placed(kernel, place(_tiles(kernel), extent_of, live_ranges(kernel)))
        if shared.dynamic_bytes < planned.dynamic_bytes:
            planned = shared
            _tell(planned, apart, limit, ctx)
    check_fit(planned, limit, str(ctx.target))
    if planned.shared:
        dynamic, static = planned.dynamic_bytes, planned.static_bytes
        ctx.note(f"{dynamic} bytes of dynamic, {static} bytes of static shared memory", kernel)
    return planned


def _apart(kernel: ThreadKernel) -> dict[int, int]:
    """Offsets of the tiles one after another."""
    offsets: dict[int, int] = {}
    end = 0
    for buffer in _tiles(kernel):
        size, alignment = extent_of(buffer)
        offsets[id(buffer)] = -(-end // alignment) * alignment
        end = offsets[id(buffer)] + size
    return offsets


def _placed(kernel: ThreadKernel, offsets: Mapping[int, int]) -> ThreadKernel:
    """The kernel with a slot for each buffer: tiles at the offsets given, barriers in a row."""
    slots: list[SharedSlot] = []
    before = {id(s.buffer): s for s in kernel.shared}
    static = 0
    for buffer in _storages(kernel):
        size, _ = extent_of(buffer)
        if buffer.scope is Scope.BARRIER:
            slots.append(SharedSlot(buffer, static, size, dynamic=False))
            static += -(-size // BARRIER_ALIGNMENT) * BARRIER_ALIGNMENT
        else:
            slots.append(replace(before[id(buffer)], offset=offsets[id(buffer)], num_bytes=size))
    dynamic = max((s.offset + s.num_bytes for s in slots if s.dynamic), default=0)
    places = {id(s.buffer): s for s in slots}
    views = [b for b in _used(kernel) if b.alias_of is not None]
    slots.extend(replace(places[id(b.storage)], buffer=b) for b in views)
    return replace(kernel, shared=tuple(slots), dynamic_bytes=dynamic, static_bytes=static)


def _tell(kernel: ThreadKernel, apart: int, limit: int, ctx: PassContext) -> None:
    """Notes on what shares bytes, and why."""
    why = f"{apart} bytes apart, {limit} are allowed" if apart > limit else f"{MERGE} is set"
    told: set[int] = set()
    for slot in kernel.shared:
        others = overlapping(kernel).get(id(slot.buffer), ())
        names = [b.root.name for b in others if id(b) not in told]
        told.add(id(slot.buffer))
        if names:
            text = f"{slot.buffer.root.name} shares bytes with {', '.join(names)}, which it"
            ctx.note(f"{text} never meets ({why})", slot.buffer)


def _tiles(kernel: ThreadKernel) -> list[Buffer]:
    return [b for b in _storages(kernel) if b.scope is not Scope.BARRIER]


def total_bytes(kernel: ThreadKernel) -> int:
    """Bytes that a block of a placed kernel takes, static ones rounded up as they lie."""
    static = -(-kernel.static_bytes // DYNAMIC_ALIGNMENT) * DYNAMIC_ALIGNMENT
    return kernel.dynamic_bytes + static


def _used(kernel: ThreadKernel) -> list[Buffer]:
    """Shared buffers and barriers that some statement touches, in the order of allocation."""
    touched = {id(n) for n in walk(kernel.body)}
    return [slot.buffer for slot in kernel.shared if id(slot.buffer) in touched]


def _storages(kernel: ThreadKernel) -> list[Buffer]:
    """What needs a place: the used buffers, and the storage of used views."""
    used = {id(b.storage) for b in _used(kernel)}
    return [slot.buffer for slot in kernel.shared if id(slot.buffer) in used]


def stages_of(buffer: Buffer) -> int:
    """Slots of a versioned buffer, 1 for others."""
    return int(buffer.static_shape[0]) if buffer.rank == buffer.root.rank + 1 else 1


def check_fit(kernel: ThreadKernel, limit: int, chip: str) -> None:
    """Raise SharedMemoryOverflow (TL1801) when a block would need more than `limit` bytes.

    The message lists bytes per buffer and the largest number of stages that fits.
    """
    total = total_bytes(kernel)
    if total <= limit:
        return
    lines: list[str] = []
    fixed, staged = total, 0
    storages = [s for s in kernel.shared if s.buffer.alias_of is None]
    storages.sort(key=lambda s: -s.num_bytes)
    for slot in storages:
        stages = stages_of(slot.buffer)
        each = slot.num_bytes // stages
        times = f"{stages} stages of {each} bytes = " if stages > 1 else ""
        lines.append(f"{slot.buffer.root.name}: {times}{slot.num_bytes} bytes")
        if stages > 1:
            staged += each
            fixed -= slot.num_bytes
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
