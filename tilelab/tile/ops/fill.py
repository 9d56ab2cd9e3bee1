"""fill(buffer, value) and clear(buffer): set every element of a tile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar

from tilelab.ir import (
    Expr,
    For,
    LoopKind,
    ReducerBuffer,
    Region,
    Scope,
    Seq,
    Stmt,
    Store,
    as_expr,
    const_int,
)
from tilelab.ir.builder import current
from tilelab.layout import Fragment
from tilelab.layout.digits import unravel
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import each_element, guarded, in_tile, is_static, loop
from tilelab.tile.held import Held, each_held
from tilelab.tile.op import Env, TileOp, lowering, writes
from tilelab.tile.operands import as_region, here, is_whole, settled
from tilelab.tile.ops.reducer import reducer_init


def fill(buffer: Any, value: Any, annotations: Any = None) -> TileOp:
    """Set every element of `buffer` (a buffer or a region of one, any scope) to `value`.

    The value is converted to the buffer's element type. Raises TileTypeError (TL1501) when
    `buffer` is no buffer or region.
    """
    del annotations  # hints of the peer change no result
    if isinstance(buffer, ReducerBuffer):
        return reducer_init(buffer, value)
    region = as_region(buffer, "buffer", (1,))
    op = Fill(region, settled(as_expr(value, region.dtype)), loc=here())
    op.check()
    current().emit(op)
    return op


def clear(buffer: Any, annotations: Any = None) -> TileOp:
    """Set every element of `buffer` to 0: `T.clear(acc)` before a gemm accumulates into it."""
    return fill(buffer, 0, annotations)


@dataclass(frozen=True, eq=False)
class Fill(TileOp):
    """`dst[...] = value`."""

    op_name: ClassVar[str] = "fill"
    team: ClassVar[str] = "any"

    dst: Region = writes()
    value: Expr = as_expr(0)

    def label(self) -> str:
        return f"fill {self.dst.buffer.name}"

    def reference(self, env: Env) -> None:
        env.put(self.dst, self.value)


@lowering(Fill, when=lambda op, ctx: op.dst.buffer.scope is Scope.FRAGMENT and is_whole(op.dst))
def _registers(op: Fill, ctx: LowerContext) -> Iterable[Stmt]:
    """A whole fragment: every register of every thread, whatever the layout."""
    local = ctx.placed(op.dst.buffer)
    r = ctx.fresh("i", int(local.static_shape[0]))
    body = Seq((Store(local, (r,), op.value, loc=op.loc),), loc=op.loc)
    yield For(r, as_expr(0), as_expr(local.shape[0]), as_expr(1), LoopKind.LANES, body, loc=op.loc)


@lowering(Fill, when=lambda op, ctx: op.dst.buffer.scope is Scope.FRAGMENT)
def _part_of_registers(op: Fill, ctx: LowerContext) -> Iterable[Stmt]:
    """A part of a fragment: the registers whose elements lie in it."""

    def put(held: Held) -> Stmt:
        return Store(held.registers, (held.number,), op.value, loc=op.loc)

    return each_held(ctx, op.dst, put, op.loc)


@lowering(Fill, when=lambda op, ctx: not is_static(op.dst))
def _elements(op: Fill, ctx: LowerContext) -> Iterable[Stmt]:
    """An extent known only at run time: threads take the elements in turn."""
    place = ctx.placed(op.dst.buffer)
    is_tensor = op.dst.buffer.scope is Scope.GLOBAL

    def put(index: tuple[Expr, ...]) -> Stmt:
        store = Store(place, op.dst.index(index), op.value, loc=op.loc)
        return guarded(ctx.in_bounds(op.dst, index) if is_tensor else None, [store], op.loc)

    own = op.dst.buffer.scope is Scope.LOCAL
    mine = replace(ctx, tid=as_expr(0), num_threads=1) if own else ctx
    return each_element(mine, [as_expr(e) for e in op.dst.tile_shape], put, op.loc)


@lowering(Fill, when=lambda op, ctx: op.dst.buffer.scope is Scope.LOCAL)
def _private(op: Fill, ctx: LowerContext) -> Iterable[Stmt]:
    """A private array: every thread fills its own."""
    extents = tuple(int(const_int(e) or 0) for e in op.dst.tile_shape)
    count = prod(extents)
    number = ctx.fresh("i", count)
    local = ctx.placed(op.dst.buffer)
    store = Store(local, op.dst.index(unravel(number, extents)), op.value, loc=op.loc)
    yield loop(number, count, LoopKind.LANES, [store], op.loc)


@lowering(Fill)
def _memory(op: Fill, ctx: LowerContext) -> Iterable[Stmt]:
    """Memory: threads take elements in turn; elements outside a tensor are skipped."""
    extents = tuple(int(const_int(e) or 0) for e in op.dst.tile_shape)
    spread = Fragment.blocked(extents or (1,), ctx.num_threads)
    r = ctx.fresh("i", spread.num_registers)
    element = spread.element_of(ctx.tid, r)
    index = element[: len(extents)]
    store: Stmt = Store(ctx.placed(op.dst.buffer), op.dst.index(tuple(index)), op.value, loc=op.loc)
    guard = ctx.in_bounds(op.dst, tuple(index)) if op.dst.buffer.scope is Scope.GLOBAL else None
    store = guarded(in_tile(element, spread, guard), [store], op.loc)
    yield loop(r, spread.num_registers, LoopKind.LANES, [store], op.loc)
