"""alloc_reducer's operations: each thread gathers partial results, which are combined at the end.

A reducer is a fragment whose copies differ until it is finalized: a thread that holds an element
collects its own contributions there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelab.errors import TileTypeError, TileValueError
from tilelab.ir import (
    Const,
    Expr,
    Load,
    LoopKind,
    ReducerBuffer,
    Region,
    Stmt,
    Store,
    as_expr,
    cast,
    const_int,
)
from tilelab.ir.builder import current
from tilelab.tile.combine import COMBINES
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import loop
from tilelab.tile.held import Held, each_held
from tilelab.tile.op import Env, TileOp, lowering, updates, writes
from tilelab.tile.operands import here, same_extents, settled, shape_text, whole
from tilelab.tile.ops.copy import copy
from tilelab.tile.ops.reduce_lower import combine_copies


def reducer_init(reducer: Any, init: Any = None) -> ReducerInit:
    """Begin to gather: every element starts from the operation's neutral value, or from `init`,
    which counts once. Raises TileTypeError (TL1538) for what is no reducer."""
    buffer = _reducer(reducer, "T.reducer_init")
    start = None if init is None else settled(cast(as_expr(init, buffer.dtype), buffer.dtype))
    op = ReducerInit(whole(buffer), start, loc=here())
    current().emit(op)
    return op


def reducer_update(target: Any, value: Any) -> Store:
    """Contribute `value` to the element `target` of a reducer, once for each point of the loop
    that it stands in: `T.reducer_update(acc[i], x)`."""
    if not isinstance(target, Load):
        raise _no_reducer(target, "T.reducer_update", "name an element: acc[i]")
    buffer = _reducer(target.buffer, "T.reducer_update")
    join = COMBINES[buffer.op].join
    joined = join(target, cast(as_expr(value, buffer.dtype), buffer.dtype))
    store = Store(buffer, target.indices, joined, loc=here())
    current().emit(store)
    return store


def finalize_reducer(reducer: Any, dst: Any = None, batch: int = 1, annotations: Any = None) -> Any:
    """Combine what all threads have gathered, into `dst`; without `dst`, in the reducer itself,
    which is a fragment like any other from then on.

    Raises TileTypeError (TL1538) for what is no reducer and TileValueError (TL1539) for a `dst` of
    another shape.
    """
    del batch, annotations  # hints of the peer change no result
    buffer = _reducer(reducer, "T.finalize_reducer")
    op = ReducerFinish(whole(buffer), loc=here())
    if dst is not None and not same_extents(buffer.shape, dst.shape):
        raise TileValueError(
            f"the reducer {buffer.name} ({shape_text(buffer.shape)}) does not fit {dst.name} "
            f"({shape_text(dst.shape)})",
            code="TL1539", loc=here(), hint="give dst the reducer's shape",
        )  # fmt: skip
    current().emit(op)
    return op if dst is None else copy(buffer, dst)


def _reducer(value: Any, what: str) -> ReducerBuffer:
    if isinstance(value, ReducerBuffer):
        return value
    raise _no_reducer(value, what, "make it with T.alloc_reducer")


def _no_reducer(value: Any, what: str, hint: str) -> TileTypeError:
    name = getattr(value, "name", repr(value))
    return TileTypeError(f"{what} of {name}, which is no reducer", code="TL1538", loc=here(),
                         hint=hint)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ReducerInit(TileOp):
    """Every copy of every element becomes neutral; `start` stands in one of them."""

    op_name: ClassVar[str] = "reducer_init"

    dst: Region = writes()
    start: Expr | None = None

    def label(self) -> str:
        return f"start {self.dst.buffer.name}"

    def reference(self, env: Env) -> None:
        combine = COMBINES[_op_of(self.dst)]
        neutral = combine.identity(self.dst.dtype)
        env.put(self.dst, neutral if self.start is None else self.start)


@dataclass(frozen=True, eq=False)
class ReducerFinish(TileOp):
    """All copies of an element become the combination of all of them."""

    op_name: ClassVar[str] = "finalize_reducer"

    dst: Region = updates()

    def label(self) -> str:
        return f"combine {self.dst.buffer.name}"

    def reference(self, env: Env) -> None:
        """Whole tiles have one copy of each element: nothing changes."""


def _op_of(region: Region) -> str:
    assert isinstance(region.buffer, ReducerBuffer)
    return region.buffer.op


@lowering(ReducerInit)
def _neutral(op: ReducerInit, ctx: LowerContext) -> Iterable[Stmt]:
    """All registers, then the start value in the first thread that holds an element."""
    registers = ctx.placed(op.dst.buffer)
    count = int(const_int(registers.shape[0]) or 0)
    r = ctx.fresh("i", count)
    neutral = Const(COMBINES[_op_of(op.dst)].identity(op.dst.dtype), op.dst.dtype)
    yield loop(r, count, LoopKind.LANES, [Store(registers, (r,), neutral, loc=op.loc)], op.loc)
    start = op.start
    if start is None or (isinstance(start, Const) and start.value == neutral.value):
        return

    def put(held: Held) -> Stmt:
        return Store(held.registers, (held.number,), start, loc=op.loc)

    yield from each_held(ctx, op.dst, put, op.loc, once=True)


@lowering(ReducerFinish)
def _exchange(op: ReducerFinish, ctx: LowerContext) -> Iterable[Stmt]:
    """Lanes exchange by shuffles, warps through shared memory."""
    layout, registers = ctx.fragment(op.dst.buffer), ctx.placed(op.dst.buffer)
    return combine_copies(ctx, layout, registers, COMBINES[_op_of(op.dst)].join, op.loc)
