"""Wide stores of accumulators: 16 bytes a lane instead of the 4 that a lane holds side by side.

An mma or wgmma accumulator gives a lane two neighbouring columns of every n8 block. Writing them
as they are fills half of each 32-byte sector. Four lanes (a quad) hold one row's 8 columns of four
neighbouring blocks; after a 4x4 transpose in the quad, each lane has 8 columns of one block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tilelab.errors import Loc
from tilelab.ir import Expr, Load, LoopKind, Region, Scope, Stmt, Store, as_expr, cast
from tilelab.layout import Digit, Fragment
from tilelab.layout.digits import mixed
from tilelab.thread.intrinsics.warp import QUAD_TRANSPOSE
from tilelab.thread.nodes import Invoke, Ref, VectorCopy
from tilelab.tile.context import LowerContext, whole_registers
from tilelab.tile.elementwise import expand, guard_of, guarded, loop
from tilelab.tile.operands import is_whole

BLOCKS = 4  # n8 blocks of one transpose
LANES_PER_QUAD = 4
WIDE = 8  # elements of 16 bits in one 16-byte store


@dataclass(frozen=True)
class PartPlan:
    """How an accumulator leaves in equal parts. `block_stride`: registers from an n8 block to the
    next; `bases`: the other register digits as (extent, stride), whose combinations number the
    parts (here: the transposes)."""

    layout: Fragment
    block_stride: int
    bases: tuple[tuple[int, int], ...]

    @property
    def parts(self) -> int:
        return prod(extent for extent, _ in self.bases)

    def base(self, part: Expr) -> Expr:
        """First register of a part."""
        return as_expr(mixed(part, self.bases))


def digits_beside(bases: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The `bases` of a plan: by rising stride, without those of one value."""
    return tuple(sorted((b for b in bases if b[0] > 1), key=lambda b: b[1]))


def quad_store_plan(src: Region, dst: Region, ctx: LowerContext) -> PartPlan | None:
    """The plan when `src` is an accumulator fragment and `dst` takes 16-byte stores, else None."""
    if src.buffer.scope is not Scope.FRAGMENT or dst.buffer.scope is not Scope.GLOBAL:
        return None
    if dst.dtype.bits != 16 or not is_whole(src) or src.buffer.rank != 2:
        return None
    layout = src.buffer.layout
    if not isinstance(layout, Fragment) or layout.is_padded or layout.replication != 1:
        return None
    cols = layout.axes[-1]
    pair, quad = Digit(2, "register", 1), Digit(LANES_PER_QUAD, "thread", 1)
    if len(cols) < 3 or cols[:2] != (pair, quad):
        return None
    blocks = cols[2]
    if blocks.owner != "register" or blocks.extent % BLOCKS:
        return None
    if ctx.vector_width(dst, WIDE, WIDE) < WIDE:
        return None
    rest = [(blocks.extent // BLOCKS, blocks.stride * BLOCKS)]
    for digit in (*layout.axes[0], *cols[3:]):
        if digit.owner == "register":
            rest.append((digit.extent, digit.stride))
    return PartPlan(layout, blocks.stride, digits_beside(rest))


def quad_store(
    ctx: LowerContext, src: Region, dst: Region, plan: PartPlan, loc: Loc | None
) -> list[Stmt]:
    """Pack four blocks' pairs, transpose in the quad, store one 16-byte run per lane."""
    registers = whole_registers(src.buffer, ctx)
    group = ctx.fresh("g", plan.parts)
    base = plan.base(group)
    packed = ctx.temp("packed", WIDE, dst.dtype)
    wide = ctx.temp("wide", WIDE, dst.dtype)
    j, e = ctx.fresh("j", BLOCKS), ctx.fresh("e", 2)
    value = Load(registers, (base + j * plan.block_stride + e,))
    pack = Store(packed, (j * 2 + e,), cast(value, dst.dtype), loc=loc)
    pack_loop = loop(j, BLOCKS, LoopKind.LANES, [loop(e, 2, LoopKind.LANES, [pack], loc)], loc)
    row, col = (as_expr(i) for i in plan.layout.element_of(ctx.tid, base))
    # The lane's pair starts at 2q of each block; after the transpose its run starts at 8q.
    index = (row, col + ctx.tid % LANES_PER_QUAD * (WIDE - 2))
    place = Ref(dst.buffer, dst.index(expand(dst, index)), WIDE)
    zero = as_expr(0)
    transpose = Invoke(
        QUAD_TRANSPOSE, (Ref(wide, (zero,), WIDE), Ref(packed, (zero,), WIDE)), loc=loc
    )
    store = VectorCopy(place, Ref(wide, (zero,), WIDE), WIDE, loc=loc)
    body = [pack_loop, transpose, guarded(guard_of(ctx, dst, index), [store], loc)]
    return [loop(group, plan.parts, LoopKind.UNROLL, body, loc)]
