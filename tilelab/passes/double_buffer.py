"""double-buffer: a tile that threads write and wgmma reads gets two places, used in turn.

A consumer loop that unpacks 4-bit weights into shared memory and multiplies them is one chain:
unpack, write, barrier, multiply, wait. With two places the product of an iteration runs while the
next one is unpacked, and one barrier an iteration is enough:

    iteration k:  unpack; write place k % 2; wait for product k-1; free its slots; barrier; issue k
    after:        wait for the last product; free its slots

All warpgroups have waited for product k-1 before the barrier of iteration k, so place (k+1) % 2 is
free behind it. The assembler moves the wait for a product freely inside straight code, up into the
unpacking; the wait for the other operand is a loop, so the wait for the product stands behind it.
Hides which loops allow it and how the barrier is kept from `insert-sync`, which leaves versioned
tiles to the pass that made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilelab.ir import (
    Alloc,
    Buffer,
    For,
    If,
    Kernel,
    Scope,
    Seq,
    Stmt,
    as_expr,
    binary,
    const_int,
    walk,
)
from tilelab.ir.stmt import may_leave
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.consumer_loop import (
    at,
    is_wait,
    releases,
    rewrite_loops,
    slots_allow,
    without_names,
)
from tilelab.passes.forward_scale import whole_store
from tilelab.passes.shared_extent import MERGE
from tilelab.passes.shared_room import room
from tilelab.passes.touch import touches, uses, writes
from tilelab.passes.versions import in_slot, versioned
from tilelab.thread.intrinsics.barrier import FENCE_PROXY_ASYNC, SYNCTHREADS
from tilelab.thread.nodes import Invoke, Role
from tilelab.tile.context import LowerContext
from tilelab.tile.operands import is_whole
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.gemm import Gemm, WaitWgmma, plan_of
from tilelab.tile.structure import DOUBLE_BUFFER

PLACES = 2


@kernel_pass("double-buffer", needs=("planned",), switch=DOUBLE_BUFFER)
def double_buffer(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Let a product run while threads write the next one's operand."""
    found: list[Parts] = []

    def turned(loop: For, role: Role, lower: LowerContext) -> Stmt | None:
        parts = parts_of(loop, kernel, lower)
        if parts is None or not _fits(kernel, parts, ctx):
            return None
        found.append(parts)
        return _in_turn(parts, again=not any(loop is s for s in role.body.body))

    done = rewrite_loops(kernel, ctx, turned)
    for parts in found:
        names = ", ".join(b.name for b in parts.tiles)
        ctx.note(
            f"{names}: two places, so that {parts.gemm.label()} of an iteration runs while the "
            "operand of the next one is written",
            parts.gemm,
        )
    return _with_places(done, found) if found else kernel


@dataclass(frozen=True)
class Parts:
    """A loop's body taken apart: `work` writes the operands `tiles`, `arrival` waits for others,
    then the gemm and `last`, the releases of its slots."""

    loop: For
    work: tuple[Stmt, ...]
    arrival: tuple[Stmt, ...]
    gemm: Gemm
    last: tuple[Stmt, ...]
    tiles: tuple[Buffer, ...]
    places: dict[int, Buffer]


def parts_of(loop: For, kernel: Kernel, lower: LowerContext) -> Parts | None:
    """The parts of a loop whose product may run on; None for others."""
    body = without_names(loop.body.body)
    gemms = [n for n in walk(loop.body) if isinstance(n, Gemm)]
    place = next((i for i, s in enumerate(body) if isinstance(s, Gemm)), None)
    if len(gemms) != 1 or place is None:
        return None
    if may_leave(loop.body):
        return None
    gemm = body[place]
    assert isinstance(gemm, Gemm)
    last = releases(body, place + 1)
    if place + 1 + len(last) != len(body) or not gemm.waits:
        return None
    if plan_of(gemm, lower).kind != "wgmma" or gemm.a.buffer.scope is not Scope.SHARED:
        return None
    arrival = place
    while arrival and is_wait(body[arrival - 1]):
        arrival -= 1
    waits, work = tuple(body[arrival:place]), tuple(body[:arrival])
    tiles = _written_tiles(work, gemm, kernel)
    if not tiles or not slots_allow(waits) or (last and not waits):
        return None
    if any(uses(s, gemm.c.buffer) for s in work):
        return None  # somebody wants the product of the iteration before
    places = {id(b): versioned(b, PLACES) for b in tiles}
    return Parts(loop, work, waits, gemm, last, tiles, places)


def _written_tiles(work: Sequence[Stmt], gemm: Gemm, kernel: Kernel) -> tuple[Buffer, ...]:
    """The gemm's operands that one statement of the work writes wholly and nothing else touches;
    none where another one is written in another way."""
    found: list[Buffer] = []
    for region in (gemm.a, gemm.b):
        tile = region.buffer
        writers = [s for s in work if writes(s, tile)]
        if not writers:
            continue
        stmts = [t.stmt for t in touches(kernel) if t.buffer.storage is tile.storage]
        alone = len(writers) == 1 and _writes_all(writers[0], tile) and len(stmts) == 2
        if not alone or any(b is tile for b in found) or tile.layout is not None:
            return ()
        found.append(tile)
    return tuple(found)


def _writes_all(stmt: Stmt, tile: Buffer) -> bool:
    """Whether a statement writes every element of a tile, and reads none."""
    if isinstance(stmt, Copy):
        return stmt.dst.buffer is tile and is_whole(stmt.dst)
    store = whole_store(stmt, Scope.SHARED)
    return store is not None and store.buffer is tile


def _fits(kernel: Kernel, parts: Parts, ctx: PassContext) -> bool:
    left = room(kernel, ctx, {id(b): PLACES for b in parts.tiles})
    return left >= 0 and not ctx.option(MERGE, False)


def _in_turn(parts: Parts, *, again: bool) -> Stmt:
    """The loop with its product one iteration behind. `again`: another loop enters it again."""
    loop, gemm, loc = parts.loop, parts.gemm, parts.gemm.loc
    trip = (loop.var - loop.start) // loop.step
    slot = trip % PLACES
    freed = at(parts.last, loop, loop.var - loop.step)
    later = If(binary(">", trip, 0), Seq(freed, loc=loc), loc=loc)
    why = "the tensor cores read what threads wrote"
    body = (
        *in_slot(parts.work, parts.places, slot),
        *parts.arrival,
        WaitWgmma(0, "the product before is done; its operands may be overwritten", loc=loc),
        *((later,) if freed else ()),
        Invoke(FENCE_PROXY_ASYNC, (), why, loc=loc),
        Invoke(SYNCTHREADS, (), why + "; the other place has been read", loc=loc),
        *in_slot((replace(gemm, waits=False),), parts.places, slot),
    )
    final = loop.start + (loop.extent - 1) * loop.step
    after: list[Stmt] = [WaitWgmma(0, "the accumulator is complete", (gemm.c,), loc=loc)]
    some = binary(">", loop.extent, as_expr(0))
    ends = at(parts.last, loop, final)
    if ends:
        after += ends if const_int(some) == 1 else [If(some, Seq(ends, loc=loc), loc=loc)]
    if again:
        why = "the last place has been read before the loop's next run writes its first"
        after.append(Invoke(SYNCTHREADS, (), why, loc=loc))
    turned = replace(loop, body=Seq(body, loc=loop.loc))
    return Seq((turned, *after), loc=loop.loc)


def _with_places(kernel: Kernel, found: Sequence[Parts]) -> Kernel:
    """Allocate both places of a tile instead of it."""
    places = {i: b for parts in found for i, b in parts.places.items()}

    def allocated(s: Stmt) -> Stmt:
        new = places.get(id(s.buffer)) if isinstance(s, Alloc) else None
        return s if new is None else Alloc(new, loc=s.loc)

    body = tuple(allocated(s) for s in kernel.body.body)
    return replace(kernel, body=replace(kernel.body, body=body))


__all__ = ["double_buffer"]
