"""Lowering of a gemm tile to ordinary multiplications: any types, extents, layouts and threads.

Every thread sums the products of the elements of C that it holds, wherever they are; operands are
read from shared memory (those in registers are put there first).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tilelab.dtypes import FLOAT32, INT32, UINT32, DType, promote
from tilelab.ir import Expr, Load, Region, Scope, Seq, Stmt, Store, as_expr, cast
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import own_loop
from tilelab.tile.held import Held, each_held, to_memory
from tilelab.tile.operands import whole

if TYPE_CHECKING:
    from tilelab.tile.ops.gemm import Gemm


def work_type(a: DType, b: DType, c: DType) -> DType:
    """The type that products and sums are formed in: it holds all three, in 32 bits at least."""
    found = promote(promote(a, b), c)
    if found.bits >= 32:
        return found
    return FLOAT32 if found.is_float else UINT32 if found.kind == "uint" else INT32


def simt_tile(ctx: LowerContext, op: Gemm) -> list[Stmt]:
    """Sum over k, one step after the other; each thread all its elements of C in a step."""
    work = work_type(op.a.dtype, op.b.dtype, op.c.dtype)
    out: list[Stmt] = []
    a, b = (_in_memory(ctx, op, region, out) for region in (op.a, op.b))
    c = ctx.placed(op.c.buffer)
    in_place = c.dtype == work
    sums = c if in_place else ctx.temp("sums", int(c.static_shape[0]), work)
    k = ctx.fresh("k", op.extents[2])

    def begin(held: Held) -> Stmt:
        return Store(sums, (held.number,), cast(held.value, work), loc=op.loc)

    def step(held: Held) -> Stmt:
        i, j = held.tile_index
        x = _element(ctx, a, (k, i) if op.transpose_a else (i, k), work)
        y = _element(ctx, b, (j, k) if op.transpose_b else (k, j), work)
        return Store(sums, (held.number,), Load(sums, (held.number,)) + x * y, loc=op.loc)

    def end(held: Held) -> Stmt:
        value = cast(Load(sums, (held.number,)), c.dtype)
        return Store(held.registers, (held.number,), value, loc=op.loc)

    out += [] if in_place else each_held(ctx, op.c, begin, op.loc)
    out.append(own_loop(k, op.extents[2], each_held(ctx, op.c, step, op.loc), op.loc))
    out += [] if in_place else each_held(ctx, op.c, end, op.loc)
    return [Seq(tuple(out), loc=op.loc)]


def _in_memory(ctx: LowerContext, op: Gemm, region: Region, out: list[Stmt]) -> Region:
    """The operand in shared memory: itself, or a copy that is filled first."""
    if region.buffer.scope is not Scope.FRAGMENT:
        return region
    shape = tuple(int(e) for e in region.tile_shape)  # type: ignore[arg-type]
    copy = ctx.scratch(f"{region.buffer.name}_operand", shape, region.dtype, op.loc)
    ctx.note(
        f"{region.buffer.name} goes through shared memory ({prod(shape) * region.dtype.bytes} "
        "bytes): threads need elements that others hold", op, level="warning",
    )  # fmt: skip
    out += to_memory(ctx, region, whole(copy), op.loc)
    return whole(copy)


def _element(ctx: LowerContext, region: Region, index: tuple[Expr, Expr], work: DType) -> Expr:
    return cast(Load(ctx.placed(region.buffer), region.index(index)), work)


def clear(ctx: LowerContext, op: Gemm) -> list[Stmt]:
    """Set the tile of C to 0 in every thread."""

    def zero(held: Held) -> Stmt:
        return Store(held.registers, (held.number,), as_expr(0, op.c.dtype), loc=op.loc)

    return each_held(ctx, op.c, zero, op.loc)
