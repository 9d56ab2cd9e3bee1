"""Regions of fragments: what each thread holds of a box, whatever the fragment's layout.

Every register of a thread is visited; those whose element lies outside the box (or in padding)
are left alone. Serves any start, constant or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilelab.errors import Loc
from tilelab.ir import Buffer, Expr, Load, LoopKind, Region, Stmt, Store, as_expr, binary, cast
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import both, first_replica, guarded, loop


@dataclass(frozen=True)
class Held:
    """One register of a thread: its number, whether it is in the box, and its tile index there."""

    registers: Buffer
    number: Expr
    inside: Expr | None
    tile_index: tuple[Expr, ...]

    @property
    def value(self) -> Expr:
        """What the register holds."""
        return Load(self.registers, (self.number,))


Visit = Callable[[Held], Stmt]


def each_held(
    ctx: LowerContext, region: Region, visit: Visit, loc: Loc | None, *, once: bool = False
) -> list[Stmt]:
    """`visit` for every register that holds an element of the box; `once`: an element that
    several threads hold counts in the first of them only."""
    layout = ctx.fragment(region.buffer)
    registers = ctx.placed(region.buffer)
    count = layout.num_registers
    number = ctx.fresh("i", count)
    element = tuple(as_expr(e) for e in layout.element_of(ctx.tid, number))
    inside = first_replica(ctx, layout) if once else None
    sizes = zip(element, layout.covers, region.starts, region.extents, region.buffer.shape,
                strict=True)  # fmt: skip
    for value, cover, start, extent, size in sizes:
        whole = as_expr(start).key == as_expr(0).key and as_expr(extent).key == as_expr(size).key
        if whole and cover == size:
            continue
        inside = both(inside, _known(binary(">=", value, start)))
        inside = both(inside, _known(binary("<", value, start + extent)))
    index = tuple(element[a] - region.starts[a] for a in region.tile_axes)
    body = guarded(inside, [visit(Held(registers, number, inside, index))], loc)
    return [loop(number, count, LoopKind.LANES, [body], loc)]


def _known(test: Expr) -> Expr | None:
    return None if getattr(test, "value", None) is True else test


def to_memory(ctx: LowerContext, src: Region, dst: Region, loc: Loc | None) -> list[Stmt]:
    """Elements of a fragment's box into a tile of shared memory of the same shape."""
    target = ctx.placed(dst.buffer)

    def put(held: Held) -> Stmt:
        value = cast(held.value, target.dtype)
        return Store(target, dst.index(held.tile_index), value, loc=loc)

    return each_held(ctx, src, put, loc, once=True)


def from_memory(ctx: LowerContext, src: Region, dst: Region, loc: Loc | None) -> list[Stmt]:
    """A tile of shared memory into a fragment's box of the same shape, in all copies."""
    source = ctx.placed(src.buffer)

    def take(held: Held) -> Stmt:
        value = cast(Load(source, src.index(held.tile_index)), dst.dtype)
        return Store(held.registers, (held.number,), value, loc=loc)

    return each_held(ctx, dst, take, loc)
