"""atomic_add and its kin: updates that many threads and blocks may make to one element."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tilelab.errors import Loc, TileTypeError, TileValueError
from tilelab.ir import (
    Alloc,
    Buffer,
    Const,
    Expr,
    Load,
    LoopKind,
    Region,
    Scope,
    Stmt,
    Store,
    Var,
    as_expr,
    cast,
    const_int,
    is_scalar,
)
from tilelab.ir.builder import current
from tilelab.layout import Fragment
from tilelab.thread.intrinsics.atomic import (
    OPERATIONS,
    ORDERS,
    atomic,
    atomic_add_run,
    has_atomic,
    widest_sum,
)
from tilelab.thread.intrinsics.atomic import atomic_load as load_record
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext, power_of_two
from tilelab.tile.elementwise import (
    both,
    expand,
    first_replica,
    guard_of,
    guarded,
    tile_extents,
    walk_tile,
)
from tilelab.tile.op import Access, Env, Fact, LayoutContext, Loop, TileOp, lowering, reads, updates
from tilelab.tile.operands import as_region, check_same_tile, here, settled
from tilelab.tile.per_thread import is_own_value


def atomic_add(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False,
    use_tma: bool = False, annotations: Any = None,
) -> Any:  # fmt: skip
    """Add to one element, `T.atomic_add(C[i], v)`, which every thread does that comes here; or to a
    tile, `T.atomic_add(C[i, j], tile)`, each of whose elements one thread updates.

    `value`: a scalar for an element; a buffer or region for a tile, of any scope and type, or a
    scalar that goes to every element of `dst`, a buffer or region.
    `return_prev`: give what the element held before (elements only; the update happens once).
    Parts of a tile outside a tensor are skipped. Raises TileTypeError (TL1752, TL1753) for
    operands that cannot be updated and TileValueError (TL1754, TL1503) for options and shapes
    that do not fit.
    """
    return _update("add", dst, value, memory_order, return_prev)


def atomic_max(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False,
    annotations: Any = None,
) -> Any:  # fmt: skip
    """Raise an element or a tile to at least `value`; operands and errors as in atomic_add."""
    return _update("max", dst, value, memory_order, return_prev)


def atomic_min(
    dst: Any, value: Any, memory_order: str | None = None, return_prev: bool = False,
    annotations: Any = None,
) -> Any:  # fmt: skip
    """Lower an element or a tile to at most `value`; operands and errors as in atomic_add."""
    return _update("min", dst, value, memory_order, return_prev)


def atomic_or(dst: Any, value: Any, memory_order: str | None = None) -> Any:
    """Set the bits of `value` in an integer element; operands and errors as in atomic_add."""
    return _update("or", dst, value, memory_order, False)


def atomic_load(src: Any, memory_order: str = "seq_cst") -> Expr:
    """What an element holds now, read in one piece and in the given memory order."""
    place = _element(src, "src", "add")
    order = _order(memory_order, _LOADS, "load, which publishes nothing")
    result = Var(current().hinted("value"), place.buffer.dtype)
    record = load_record(place.buffer.dtype, order)
    current().emit(Invoke(record, (place,), result=result, loc=here()), anywhere=True)
    return result


def atomic_store(dst: Any, src: Any, memory_order: str = "seq_cst") -> Any:
    """Write one element in one piece and in the given memory order."""
    order = _order(memory_order, _STORES, "store, which reads nothing")
    return _update("exchange", dst, src, order, False)


def atomic_addx2(dst: Any, value: Any, return_prev: bool = False) -> Any:
    """Add two neighbouring elements, from `value` on, to those from `dst` on (one instruction
    for 16-bit types): `T.atomic_addx2(C[i, j], A[i, j])`, or slices. `return_prev`: give a slice
    of what each element held before (then each has an instruction of its own)."""
    return _add_run(2, dst, value, return_prev)


def atomic_addx4(dst: Any, value: Any, return_prev: bool = False) -> Any:
    """Add four neighbouring elements, from `value` on, to those from `dst` on. See atomic_addx2."""
    return _add_run(4, dst, value, return_prev)


# ---- elements ----------------------------------------------------------------------------------


_LOADS = ("relaxed", "consume", "acquire", "seq_cst")
_STORES = ("relaxed", "release", "seq_cst")


def _order(memory_order: str | None, allowed: tuple[str, ...] = ORDERS, what: str = "") -> str:
    if memory_order is None:
        return "relaxed"
    if memory_order not in allowed:
        known = memory_order in ORDERS
        raise TileValueError(
            f"memory_order={memory_order!r} is {f'no order of a {what}' if known else 'not known'}",
            code="TL1754", loc=here(), hint="use " + ", ".join(repr(o) for o in allowed),
        )  # fmt: skip
    return memory_order


def _element(value: Any, what: str, op: str) -> Ref:
    """The place of one element. TileTypeError (TL1752, TL1753) when it cannot be updated."""
    if isinstance(value, Buffer) and all(const_int(n) == 1 for n in value.shape):
        value = Load(value, (as_expr(0),) * value.rank)
    if not isinstance(value, Load):
        raise TileTypeError(
            f"{what} is {value!r}, which is no element of a buffer", code="TL1752", loc=here(),
            hint="name one element, such as C[i, j]",
        )  # fmt: skip
    _check_place(value.buffer, op)
    return Ref(value.buffer, value.indices)


def _check_place(buffer: Buffer, op: str) -> None:
    name = buffer.name
    if not buffer.scope.is_memory:
        raise TileTypeError(
            f"{name} is a {buffer.scope.value} buffer, which no two threads share", code="TL1752",
            loc=here(), hint="update global or shared memory; use an ordinary store here",
        )  # fmt: skip
    if not has_atomic(op, buffer.dtype):
        raise TileTypeError(
            f"elements of {name} are {buffer.dtype}, which has no atomic {op}", code="TL1753",
            loc=here(), hint="use a type of at least 16 bits (integers for bit operations)",
        )  # fmt: skip


def _update(op: str, dst: Any, value: Any, memory_order: str | None, return_prev: bool) -> Any:
    order = _order(memory_order)
    if isinstance(value, Load) and isinstance(dst, Load):
        return _update_element(op, _element(dst, "dst", op), value, order, return_prev)
    if isinstance(value, Buffer | Region) and not is_scalar(value):
        return _update_tile(op, dst, value, order, return_prev)
    one = isinstance(dst, Buffer) and all(const_int(n) == 1 for n in dst.shape)
    theirs = one and is_own_value(value)  # every thread that comes by adds its own
    if isinstance(dst, Buffer | Region) and op in _TILE_WIDE and not (return_prev or theirs):
        return _update_all(op, dst, value, order)
    return _update_element(op, _element(dst, "dst", op), value, order, return_prev)


_TILE_WIDE = ("add", "max", "min")


def _update_element(op: str, place: Ref, value: Any, order: str, return_prev: bool) -> Any:
    dtype = place.buffer.dtype
    operands = (place, cast(as_expr(value, dtype), dtype))
    result = Var(current().hinted("previous"), dtype) if return_prev else None
    step = Invoke(atomic(op, dtype, order), operands, result=result, loc=here())
    current().emit(step, anywhere=return_prev)
    return step if result is None else result


def _first(value: Any) -> Any:
    """The first element of a buffer or slice; other things as they are."""
    if isinstance(value, Region):
        return Load(value.buffer, value.starts)
    if isinstance(value, Buffer) and not is_scalar(value):
        return Load(value, (as_expr(0),) * value.rank)
    return value


def _add_run(count: int, dst: Any, value: Any, return_prev: bool) -> Any:
    place, builder, loc = _element(_first(dst), "dst", "add"), current(), here()
    dtype = place.buffer.dtype
    value = _first(value)
    if not isinstance(value, Load):
        raise TileTypeError(
            f"value is {value!r}, which is no element of a buffer", code="TL1752", loc=loc,
            hint=f"name the first of {count} neighbours, such as A[i, j]",
        )  # fmt: skip
    pack = Buffer(builder.fresh("pack"), (count,), dtype, Scope.LOCAL, loc=loc)
    builder.emit(Alloc(pack, loc=loc), anywhere=True)
    for k in range(count):
        source = cast(Load(value.buffer, (*value.indices[:-1], value.indices[-1] + k)), dtype)
        if return_prev:
            target = Ref(place.buffer, (*place.indices[:-1], place.indices[-1] + k))
            source = _update_element("add", target, source, "relaxed", True)
        builder.emit(Store(pack, (as_expr(k),), source, loc=loc), anywhere=True)
    if return_prev:
        return Region(pack, (as_expr(0),), (count,), (0,))
    registers = Ref(pack, (as_expr(0),), count)
    return builder.emit(add_neighbours(place, registers, loc))


def add_neighbours(place: Ref, registers: Ref, loc: Loc | None) -> Invoke:
    """The update of neighbours from `place` on by `registers.count` registers."""
    in_global = place.buffer.scope is Scope.GLOBAL
    record = atomic_add_run(registers.count, place.buffer.dtype, in_global=in_global)
    return Invoke(record, (place, registers), loc=loc)


# ---- tiles -------------------------------------------------------------------------------------


def _update_tile(op: str, dst: Any, value: Any, order: str, return_prev: bool) -> AtomicTile:
    if return_prev:
        raise TileValueError(
            f"a tile-wide atomic {op} gives no previous values", code="TL1754", loc=here(),
            hint="loop over elements with T.Parallel",
        )  # fmt: skip
    source = as_region(value, "value")
    target = as_region(dst, "dst", source.tile_shape)
    _check_place(target.buffer, op)
    made = AtomicTile(target, source, op, order, loc=here())
    made.check()
    current().emit(made)
    return made


def _update_all(op: str, dst: Any, value: Any, order: str) -> AtomicFill:
    target = as_region(dst, "dst")
    _check_place(target.buffer, op)
    kept = settled(cast(as_expr(value, target.dtype), target.dtype))
    made = AtomicFill(target, kept, op, order, loc=here())
    current().emit(made)
    return made


@dataclass(frozen=True, eq=False)
class AtomicFill(TileOp):
    """`dst = dst op value` for every element, each in one step by one thread."""

    op_name: ClassVar[str] = "atomic"
    team: ClassVar[str] = "any"

    dst: Region = updates()
    value: Expr = as_expr(0)
    op: str = "add"
    order: str = "relaxed"

    def check(self) -> None:
        if any(const_int(e) is None for e in self.dst.tile_shape):
            raise TileValueError(
                f"an atomic {self.op} of a number to a tile of {self.dst.buffer.name} whose "
                "extents are known only at run time", code="TL1754", loc=self.loc,
                hint="loop over its elements with T.Parallel",
            )  # fmt: skip

    def label(self) -> str:
        return f"{self.op} -> {self.dst.buffer.name}"

    def reference(self, env: Env) -> None:
        combine = OPERATIONS[self.op].numpy
        value: Any = self.value.value if isinstance(self.value, Const) else self.value
        env.put(self.dst, combine(env.get(self.dst), value))

    def at(self, buffer: Buffer, index: tuple[Expr, ...]) -> Invoke:
        """The update of one element."""
        record = atomic(self.op, self.dst.dtype, self.order)
        return Invoke(record, (Ref(buffer, self.dst.index(index)), self.value), loc=self.loc)


@lowering(AtomicFill)
def _each_element(op: AtomicFill, ctx: LowerContext) -> Iterable[Stmt]:
    """Threads take the elements in turn."""
    extents = tile_extents(op.dst)
    spread = Fragment.blocked(extents or (1,), ctx.num_threads)
    walk = walk_tile(ctx, spread, 1)
    index = expand(op.dst, walk.index[: len(extents)])
    ok = both(walk.inside, guard_of(ctx, op.dst, walk.index[: len(extents)]))
    ok = both(first_replica(ctx, spread), ok)  # fewer elements than threads
    body = [guarded(ok, [op.at(ctx.placed(op.dst.buffer), index)], op.loc)]
    yield walk.over(LoopKind.LANES, body, op.loc)


@dataclass(frozen=True, eq=False)
class AtomicTile(TileOp):
    """`dst = dst op src`, element by element, each in one step."""

    op_name: ClassVar[str] = "atomic"
    team: ClassVar[str] = "any"

    dst: Region = updates()
    src: Region = reads()
    op: str = "add"
    order: str = "relaxed"
    spread: Fragment | None = None

    def check(self) -> None:
        check_same_tile(f"atomic {self.op}", self.src, self.dst, self.loc, "to")

    def label(self) -> str:
        return f"{self.op} {self.src.buffer.name} -> {self.dst.buffer.name}"

    def with_spread(self, spread: Fragment) -> AtomicTile:
        return replace(self, spread=spread)

    def reference(self, env: Env) -> None:
        combine = OPERATIONS[self.op].numpy
        value = env.get(self.src).astype(self.dst.dtype.numpy)
        env.put(self.dst, combine(env.get(self.dst), value))

    def layout_rule(self, ctx: LayoutContext) -> Iterable[Fact]:
        if self.src.buffer.scope is not Scope.FRAGMENT:
            return
        extents = tile_extents(self.dst)
        vars = tuple(Var(f"a{i}", lo=0, hi=e - 1) for i, e in enumerate(extents))
        access = Access(self.src.buffer, self.src.index(expand(self.src, vars)), False)
        pair = widest_sum(self.dst.buffer, frozenset())  # on any chip
        yield Loop(self, vars, extents, (access,), f"atomic {self.label()}", pair)


def _run(op: AtomicTile, ctx: LowerContext) -> int:
    """Neighbours that one instruction may add at once."""
    if op.op != "add" or op.order != "relaxed":
        return 1
    return widest_sum(op.dst.buffer, ctx.target.features)


@lowering(AtomicTile)
def _threads(op: AtomicTile, ctx: LowerContext) -> Iterable[Stmt]:
    """Each thread updates the elements it holds; pairs of 16-bit floats where they are aligned."""
    extents = tile_extents(op.dst) or (1,)
    most = _run(op, ctx)
    spread = op.spread or Fragment.blocked(
        extents, ctx.num_threads, power_of_two(most, extents[-1])
    )
    width = 1
    if most > 1 and spread.shape:
        width = ctx.vector_width(op.dst, extents[-1], power_of_two(most, spread.contiguous(-1)))
    walk = walk_tile(ctx, spread, width)
    ok = both(walk.inside, guard_of(ctx, op.dst, walk.index))
    ok = both(ok, first_replica(ctx, spread))  # an element that several threads hold counts once
    target = Ref(ctx.placed(op.dst.buffer), op.dst.index(expand(op.dst, walk.index)), width)
    values = [_value(op, ctx, walk.index, walk.chunk * width, k) for k in range(width)]
    body = _step(op, ctx, target, values, walk.chunk * width, width * walk.chunks)
    yield walk.over(LoopKind.LANES, [guarded(ok, body, op.loc)], op.loc)


def _value(
    op: AtomicTile, ctx: LowerContext, index: tuple[Expr, ...], register: Expr, offset: int
) -> Expr:
    """Element `offset` of a chunk of the source, converted."""
    src, buffer = op.src, ctx.placed(op.src.buffer)
    if src.buffer.scope is Scope.FRAGMENT:
        return cast(Load(buffer, (register + offset,)), op.dst.dtype)
    moved = (*index[:-1], index[-1] + offset) if index else index
    read: Expr = Load(buffer, src.index(expand(src, moved)))
    return cast(read, op.dst.dtype)


def _step(
    op: AtomicTile, ctx: LowerContext, target: Ref, values: list[Expr], slot: Expr, slots: int
) -> list[Stmt]:
    dtype, loc = op.dst.dtype, op.loc
    if len(values) == 1:
        return [Invoke(atomic(op.op, dtype, op.order), (target, values[0]), loc=loc)]
    pack = ctx.temp("pack", slots, dtype)
    stores: list[Stmt] = [
        Store(pack, (slot + k,), value, loc=loc) for k, value in enumerate(values)
    ]
    return [*stores, add_neighbours(target, Ref(pack, (slot,), len(values)), loc)]


FUNCTIONS = (
    atomic_add, atomic_addx2, atomic_addx4, atomic_load, atomic_max, atomic_min, atomic_or,
    atomic_store,
)  # fmt: skip
