"""Lowering of a reduction of a thread's own array into another one: plain loops of each thread."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tilelab.ir import Const, Expr, Load, LoopKind, Stmt, Store, Var, as_expr, cast, const_int
from tilelab.tile.combine import Combine
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import loop

if TYPE_CHECKING:
    from tilelab.tile.ops.reduce import Reduce

_WRITTEN_OUT = 64  # elements: so many keep their register, more make long code


def reduce_private(ctx: LowerContext, op: Reduce, combine: Combine) -> list[Stmt]:
    """`dst = combine(src along axis)` on arrays of each thread."""
    extents = [const_int(e) or 0 for e in op.src.tile_shape]
    kind = LoopKind.UNROLL if prod(extents) <= _WRITTEN_OUT else LoopKind.SERIAL
    point = [ctx.fresh("r", extent) for extent in extents]
    source, target = ctx.placed(op.src.buffer), ctx.placed(op.dst.buffer)
    place = op.dst.index(_kept(op, point))
    element = cast(Load(source, op.src.index(tuple(point))), target.dtype)
    joined = combine.first(Load(target, place), element)
    along = point[op.axis]
    steps: list[Stmt] = []
    if op.clear:
        identity = Const(combine.identity(target.dtype), target.dtype)
        steps.append(Store(target, place, identity, loc=op.loc))
    take = Store(target, place, joined, loc=op.loc)
    steps.append(loop(along, extents[op.axis], kind, [take], op.loc))
    for axis in reversed([n for n in range(len(extents)) if n != op.axis]):
        steps = [loop(point[axis], extents[axis], kind, steps, op.loc)]
    return steps


def _kept(op: Reduce, point: list[Var]) -> tuple[Expr, ...]:
    """The tile index of the result of a point."""
    rest: list[Expr] = [v for n, v in enumerate(point) if n != op.axis]
    if op.keeps_axis:
        rest.insert(op.axis, as_expr(0))
    return tuple(rest) or (as_expr(0),)
