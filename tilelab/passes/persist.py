"""persist: the grid becomes a loop over tiles, run by as many blocks as the device holds at once.

    for n in range(ceil((tiles - block) / blocks)):      # block = blockIdx.x, blocks = gridDim.x
        bx, by = coordinates of tile block + n * blocks
        the program

`warp-specialize` moves the loop into the roles, whose ring of slots runs on across tiles: the
producer loads the next tile while the consumers still store the last one. The launcher sets the
number of blocks (ir.RESIDENT). Each block takes every `blocks`-th tile; where tiles take different
times, blocks draw them (`drawn_tiles.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tilelab.dtypes import INT32
from tilelab.ir import (
    RESIDENT,
    Alloc,
    Buffer,
    Expr,
    For,
    Function,
    Kernel,
    Let,
    LoopKind,
    Node,
    Scope,
    Seq,
    Stmt,
    Var,
    While,
    WorkCounter,
    as_expr,
    binary,
    call,
    const_int,
    select,
    walk,
)
from tilelab.ir.printer import TEXTS
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.block_order import ORDER, tile_of
from tilelab.passes.lowering_context import Names
from tilelab.passes.plan import VersionedBuffer
from tilelab.passes.plan_pipeline import plan_of_loop
from tilelab.passes.shared_extent import MERGE
from tilelab.passes.shared_room import bytes_apart, room
from tilelab.passes.uneven_tiles import LONGEST_FIRST, is_longest_first, is_uneven
from tilelab.target import REGISTERS_BESIDE_TILES, WARP
from tilelab.tile.structure import PERSISTENT, TILE_COUNTER, setting

REGISTER_BYTES = 4
TILES = "tiles"
"""Attribute of the loop over the tiles of a persistent kernel."""
DRAWN, COUNTER = "drawn", "tile_counter"
"""Attribute of a loop over tiles whose numbers are drawn: its `Drawn`; the counter's name."""


@dataclass(frozen=True)
class Drawn:
    """How a block comes by its tiles: the counter (a workspace that is zero when a launch begins),
    the variable for a tile's number, how many tiles there are, the block and how many there are."""

    counter: Buffer
    tile: Var
    total: Expr
    block: Var
    blocks: Var


def drawn_of(loop: For | None) -> Drawn | None:
    """How the tiles of a loop over tiles are drawn; None where they are dealt out."""
    attrs = () if loop is None else loop.attrs
    return next((v for key, v in attrs if key == DRAWN and isinstance(v, Drawn)), None)


def tile_loop(kernel: Kernel) -> For | None:
    """The loop over tiles of a persistent kernel, None for others."""
    loops = (s for s in kernel.body.body if isinstance(s, For) and is_tile_loop(s))
    return next(loops, None)


def is_tile_loop(loop: For) -> bool:
    """Whether `persist` made this loop."""
    return any(key == TILES for key, _ in loop.attrs)


@tile_pass("persist", needs=("planned",))
def persist(function: Function, ctx: PassContext) -> Function:
    """Let resident blocks take tile after tile, where that loads the next one meanwhile."""
    taken = {b.name for b in function.workspaces} | {p.name for p in function.params}
    names = Names(taken)
    kernels = tuple(_persistent(kernel, ctx, names) for kernel in function.kernels)
    if all(a is b for a, b in zip(kernels, function.kernels, strict=True)):
        return function
    drawn = (drawn_of(tile_loop(k)) for k in kernels)
    counters = tuple(d.counter for d in drawn if d is not None)
    return replace(function, kernels=kernels, workspaces=(*function.workspaces, *counters))


def _persistent(kernel: Kernel, ctx: PassContext, taken: Names) -> Kernel:
    wanted = setting(ctx, PERSISTENT)
    if wanted is False or not _has_producer(kernel):
        return kernel
    why = why_not_persistent(kernel) or _no_room(kernel, ctx)
    known = const_int(_tiles(kernel))
    if not why and known is not None and known <= ctx.target.limits.sms and is_uneven(kernel):
        why = "there is a multiprocessor for every tile"
    several = not wanted and not is_uneven(kernel) and blocks_by_tiles(kernel, ctx) > 1
    if not why and several:
        # Measured on an H200 (128x128x64, 3 stages): 3 to 12% faster than persistent blocks.
        why = "a multiprocessor holds several, and one stores its tile while another computes"
    if why:
        ctx.note(f"one block for each tile: {why}", kernel)
        return kernel
    ctx.note(
        "as many blocks as the device holds at once take tile after tile, so that the producer "
        "loads a tile while the consumers store the one before",
        kernel,
    )
    drawn = is_longest_first(kernel) and bool(setting(ctx, TILE_COUNTER))
    if drawn:
        ctx.note(
            "blocks draw their tiles from a counter that belongs to the launch: tiles take "
            "different times, and whoever is done takes the next",
            kernel,
        )
    return _over_tiles(kernel, taken(COUNTER) if drawn else "")


def _has_producer(kernel: Kernel) -> bool:
    """Whether some role could run ahead into the next tile."""
    plans = (plan_of_loop(s) for s in kernel.body.body if isinstance(s, For))
    return any(plan is not None and plan.mechanism == "tma" for plan in plans)


def why_not_persistent(kernel: Kernel) -> str:
    """Why a block must not take several tiles; empty when it may."""
    if const_int(_tiles(kernel)) == 1:
        return "there is only one tile"
    if is_uneven(kernel) and not is_longest_first(kernel):
        return "tiles take different times, and a free multiprocessor takes the next one best"
    if any(key == "source" for key, _ in kernel.attrs):
        return "CUDA text of the program's own may use the block's number"
    if any(isinstance(n, While) for n in walk(kernel.body)):
        return "a while loop may wait for another block"
    return ""


def _no_room(kernel: Kernel, ctx: PassContext) -> str:
    """Why its tiles must share bytes, which they do only in straight-line code; empty when they
    need not."""
    if ctx.option(MERGE, False):
        return f"{MERGE} is set"
    fits = room(kernel, ctx, _slots(kernel)) >= 0
    return "" if fits else "its tiles fit into shared memory only where they share bytes"


def _slots(kernel: Kernel) -> dict[int, int]:
    """Slots of each tile (by id) that a pipeline will version."""
    return {id(v.buffer): v.versions for n in walk(kernel) for v in _versioned(n)}


def blocks_by_tiles(kernel: Kernel, ctx: PassContext) -> int:
    """How many blocks a multiprocessor holds, as far as their tiles tell: those in shared memory,
    and the largest one in registers, spread over the block's threads."""
    limits = ctx.target.limits
    fragments = (n.buffer for n in walk(kernel) if isinstance(n, Alloc))
    sizes = (prod(b.static_shape) * b.dtype.bytes for b in fragments if b.scope is Scope.FRAGMENT)
    held = max(sizes, default=0) // REGISTER_BYTES
    registers = held + REGISTERS_BESIDE_TILES * (kernel.num_threads + WARP)
    taken = bytes_apart(kernel, _slots(kernel))
    by_shared = limits.shared_per_sm // (taken + limits.shared_reserved_per_block)
    return min(by_shared, limits.registers_per_sm // registers)


def _versioned(node: Node) -> tuple[VersionedBuffer, ...]:
    plan = plan_of_loop(node) if isinstance(node, For) else None
    return () if plan is None else plan.buffers


def _tiles(kernel: Kernel) -> Expr:
    total = as_expr(1)
    for extent in kernel.grid:
        total = total * extent
    return total


def _over_tiles(kernel: Kernel, counter: str) -> Kernel:
    """The kernel as a loop over tiles; allocations stay outside of it. With the name of a
    `counter` the loop says how its tiles are drawn; as it stands, it deals them out one by one."""
    drawn = bool(counter)
    tiles, loc = _tiles(kernel), kernel.loc
    known = const_int(tiles)
    last = None if known is None else max(known - 1, 0)
    block = Var("block", lo=0, hi=last, role="block")
    blocks = Var("blocks", lo=1, hi=known)
    number = Var("n", lo=0, hi=last if last is None or not drawn else last + 1)
    tile = Var("tile", lo=0, hi=last)
    count, taken = _share(kernel, tiles, block, blocks, number, drawn=drawn)
    names = Names({v.name for v in (block, blocks, number, tile, *kernel.block_vars)})
    body: list[Stmt] = [
        Let(tile, taken, loc=loc),
        *tile_of(kernel, tile, names, grouped=drawn),
        *(s for s in kernel.body.body if not isinstance(s, Alloc)),
    ]
    loop = For(
        number, as_expr(0), count, as_expr(1), LoopKind.SERIAL, Seq(tuple(body), loc=loc),
        attrs=((TILES, True),), loc=loc,
    )  # fmt: skip
    if drawn:
        memory = WorkCounter(counter, (1,), INT32, Scope.GLOBAL, loc=loc)
        means = Drawn(memory, tile, tiles, block, blocks)
        loop = replace(loop, attrs=(*loop.attrs, (DRAWN, means)))
    allocs: list[Stmt] = [s for s in kernel.body.body if isinstance(s, Alloc)]
    return replace(
        kernel,
        grid=(call("min", tiles, RESIDENT),),
        block_vars=(block,),
        launched=blocks,
        attrs=tuple(a for a in kernel.attrs if a[0] not in (ORDER, LONGEST_FIRST)),
        body=Seq((*allocs, loop), loc=kernel.body.loc),
    )


def _share(
    kernel: Kernel, tiles: Expr, block: Var, blocks: Var, number: Var, *, drawn: bool
) -> tuple[Expr, Expr]:
    """How many tiles a block takes, and which is its `number`-th (where they are `drawn`: at most,
    with the number that says there are no more).

    Tiles that get shorter are dealt to and fro, so that every block's add up to the same.
    """
    if drawn:
        return tiles + 1, block + number * blocks
    if not is_longest_first(kernel):
        return (tiles - block + blocks - 1) // blocks, block + number * blocks
    back = blocks - 1 - block
    rounds = tiles // blocks
    last = select(binary("==", rounds % 2, 0), block, back)
    one_more = select(binary("<", last, tiles - rounds * blocks), as_expr(1), as_expr(0))
    place = select(binary("==", number % 2, 0), block, back)
    return rounds + one_more, number * blocks + place


def bound_variables(node: Node) -> list[Var]:
    """Variables that lets and loops under `node` bind."""
    return [n.var for n in walk(node) if isinstance(n, Let | For)]


TEXTS[Drawn] = lambda drawn, p: f"<from {drawn.counter.name}>"
