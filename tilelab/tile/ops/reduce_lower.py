"""Lowering of a reduction over a fragment, from the digits of its layout.

Digits of the reduced axis that go to registers are folded in each thread; those that go to lanes
of a warp by butterflies of shuffles; the rest (other warps, extents that are no power of two)
through shared memory. A thread folds in as many chains as it takes for the next operation not to
wait for the last one's result, and joins them at the end: the order of a thread's additions is
another one, so relaxed arithmetic for sums of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from tilelab.dtypes import DType
from tilelab.errors import Loc
from tilelab.ir import (
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
    binary,
    cast,
    select,
)
from tilelab.ir.stmt import AGREED
from tilelab.layout import Digit, Fragment, equivalent, reshaped
from tilelab.layout.digits import mixed
from tilelab.target import WARP
from tilelab.thread.costs import COSTS
from tilelab.thread.intrinsics.warp import SHFL_XOR
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.combine import Combine
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import guarded, in_tile, loop, move, tile_extents
from tilelab.tile.held import Held, each_held, to_memory
from tilelab.tile.operands import in_registers, whole
from tilelab.tile.structure import CHAINS, PRECISE_MATH, setting

if TYPE_CHECKING:
    from tilelab.tile.ops.reduce import Reduce

Join = Callable[[Expr, Expr], Expr]
_LONG = 4
"""Operations of a chain that is worth another one to be joined with."""
_LOADS_OF_A_BARRIER = 32
"""Loads from shared memory that a thread does in the time of one more barrier of its block."""

Parts = tuple[tuple[int, int], ...]  # (extent, stride) of mixed-radix digits, the lowest first


def reduce_tile(ctx: LowerContext, op: Reduce, combine: Combine) -> list[Stmt]:
    """The reduction of any source into any place: what is not a whole fragment is moved into
    registers laid out as `op.spread` first, and the result is brought back."""
    spread, loc = op.spread, op.loc
    assert spread is not None, "layout inference gives every reduction a spread"
    out: list[Stmt] = []
    source, target = op.src.buffer, op.dst.buffer
    if not in_registers(op.src):
        source = ctx.tile_in_registers(f"{source.name}_tile", spread, source.dtype)
        out += _fetch(ctx, op.src, source, spread, loc)
    direct = in_registers(op.dst)
    if not direct:
        result = _result_layout(op, spread)
        target = ctx.tile_in_registers(f"{target.name}_tile", result, target.dtype)
    out += reduce_registers(ctx, op, source, target, combine)
    return out if direct else [*out, *_bring_back(ctx, op, target, combine)]


def _result_layout(op: Reduce, layout: Fragment) -> Fragment:
    """Where the result of reducing a tile laid out as `layout` is."""
    result = layout.reduce(op.axis, keepdim=op.keeps_axis)
    return result if result.shape or not op.dst.tile_shape else result.insert_axis(0)


def _fetch(
    ctx: LowerContext, src: Region, tile: Buffer, spread: Fragment, loc: Loc | None
) -> list[Stmt]:
    """A region into a tile of registers; a fragment's goes through shared memory."""
    out: list[Stmt] = []
    if src.buffer.scope is Scope.FRAGMENT:
        scratch = ctx.scratch(f"{src.buffer.name}_shared", tile.static_shape, src.dtype, loc)
        out += to_memory(ctx, src, whole(scratch), loc)
        src = whole(scratch)
    flat = reshaped(spread, tile_extents(src))
    assert flat is not None  # only axes of extent 1 go
    return [*out, *move(ctx, src, whole(tile), flat, loc)]


def _bring_back(ctx: LowerContext, op: Reduce, result: Buffer, combine: Combine) -> list[Stmt]:
    """The result from registers into shared memory, or into a part of a fragment."""
    dst, loc = op.dst, op.loc
    if dst.buffer.scope is Scope.SHARED:
        target = ctx.placed(dst.buffer)

        def put(held: Held) -> Stmt:
            place, value = dst.index(held.tile_index), held.value
            value = value if op.clear else combine.join(Load(target, place), value)
            return Store(target, place, value, loc=loc)

        return each_held(ctx, whole(result), put, loc, once=True)
    scratch = ctx.scratch(f"{result.name}_shared", result.static_shape, result.dtype, loc)
    out = to_memory(ctx, whole(result), whole(scratch), loc)

    def take(held: Held) -> Stmt:
        value: Expr = Load(scratch, held.tile_index)
        value = value if op.clear else combine.join(held.value, value)
        return Store(held.registers, (held.number,), value, loc=loc)

    return [*out, *each_held(ctx, dst, take, loc)]


def reduce_registers(
    ctx: LowerContext, op: Reduce, source: Buffer, target: Buffer, combine: Combine
) -> list[Stmt]:
    """Statements that leave the combined values of the tile `source` in those of `target`."""
    layout, loc, join = ctx.fragment(source), op.loc, combine.join
    registers = ctx.placed(target)
    outer, inner = _register_parts(layout, op.axis)
    count = _size(outer)
    identity = Const(combine.identity(target.dtype), target.dtype)
    partial = ctx.temp(f"{target.name}_partial", count, target.dtype)
    chains = _chains(ctx, op.kind, target.dtype, count, _size(inner))
    wide = partial
    if chains > 1:
        wide = ctx.temp(f"{target.name}_chains", count * chains, target.dtype)
    out = [_fill(ctx, wide, count * chains, identity, loc)]
    held = ctx.placed(source)
    out.append(_fold(ctx, layout, held, wide, outer, inner, combine.first, identity, loc))
    if chains > 1:
        out += _join_chains(ctx, wide, partial, join, loc)
    lanes = _owned(layout.axes[op.axis], "thread")
    if op.joins:
        out += exchange(ctx, lanes, partial, join, loc)
    else:
        ctx.shared.parts[id(target)] = lanes
    r = ctx.fresh("r", count)
    place, inside = _register_in(ctx, _result_layout(op, layout), ctx.fragment(target), r)
    value: Expr = Load(partial, (r,))
    if op.factor != 1:
        value = binary("*", value, Const(op.factor, target.dtype))
    if in_registers(op.dst) and not op.clear:
        value = join(Load(registers, (place,)), value)
    store = guarded(inside, [Store(registers, (place,), value, loc=loc)], loc)
    last = loop(r, count, LoopKind.LANES, [store], loc)
    if op.joins and _held_by_all(ctx, _result_layout(op, layout)):
        last = replace(last, attrs=((AGREED, True),))
    return [*out, last]


def _held_by_all(ctx: LowerContext, result: Fragment) -> bool:
    """Whether every thread has every element of a result. The copies have the same bits: each
    combines the same parts in the same tree, but for the order of the two sides of a step."""
    spread = any(_owned(digits, "thread") for digits in result.axes)
    return not spread and result.num_threads == ctx.num_threads


def _register_in(
    ctx: LowerContext, ours: Fragment, theirs: Fragment, r: Expr
) -> tuple[Expr, Expr | None]:
    """The register of `theirs` for the element in register `r` of `ours`, and whether there is
    one: the two agree on threads, and may number registers differently."""
    if equivalent(ours, theirs):
        return r, None
    element = tuple(as_expr(i) for i in ours.element_of(ctx.tid, r))
    return as_expr(theirs.register_of(element)), in_tile(element, ours)


def _size(parts: Parts) -> int:
    return prod(extent for extent, _ in parts)


def _owned(digits: tuple[Digit, ...], owner: str) -> list[tuple[int, int]]:
    return [(d.extent, d.stride) for d in digits if d.owner == owner and d.extent > 1]


def _register_parts(layout: Fragment, axis: int) -> tuple[Parts, Parts]:
    """Register digits of the other axes (what remains) and of the reduced axis (what is folded)."""
    outer = [
        p for i, digits in enumerate(layout.axes) if i != axis for p in _owned(digits, "register")
    ]
    inner = _owned(layout.axes[axis], "register")
    return tuple(sorted(outer, key=lambda p: p[1])), tuple(sorted(inner, key=lambda p: p[1]))


def combine_copies(
    ctx: LowerContext, layout: Fragment, registers: Buffer, join: Join, loc: Loc | None
) -> list[Stmt]:
    """Statements after which all copies of an element hold the combination of its copies."""
    copies = [(extent, stride) for extent, stride in layout.replicas if extent > 1]
    return exchange(ctx, copies, registers, join, loc)


def exchange(
    ctx: LowerContext, digits: list[tuple[int, int]], held: Buffer, join: Join, loc: Loc | None
) -> list[Stmt]:
    """Threads that differ in `digits` (extent, stride) of their number combine all of `held`."""
    count = int(held.static_shape[0])
    lanes, far = _thread_parts(digits, whole_warps=ctx.num_threads % WARP == 0)
    out: list[Stmt] = []
    for mask in lanes:
        out += _butterfly(ctx, held, count, mask, join, loc)
    return [*out, *(_through_shared(ctx, held, count, far, join, loc) if far else ())]


def _thread_parts(digits: list[tuple[int, int]], *, whole_warps: bool) -> tuple[list[int], Parts]:
    """Shuffle masks for lanes of one warp, and the thread digits that go further.

    A block whose last warp is not whole exchanges everything through shared memory: a shuffle
    needs all 32 lanes.
    """
    masks: list[int] = []
    far: list[tuple[int, int]] = []
    for extent, stride in digits:
        near = 1
        while (
            whole_warps
            and extent % (near * 2) == 0
            and stride * near < WARP
            and _power_of_two(stride)
        ):
            masks.append(stride * near)
            near *= 2
        if extent // near > 1:
            far.append((extent // near, stride * near))
    return masks, tuple(far)


def _power_of_two(value: int) -> bool:
    return value & (value - 1) == 0


def _fill(ctx: LowerContext, partial: Buffer, count: int, value: Expr, loc: Loc | None) -> Stmt:
    r = ctx.fresh("r", count)
    return loop(r, count, LoopKind.LANES, [Store(partial, (r,), value, loc=loc)], loc)


def _fold(
    ctx: LowerContext, layout: Fragment, source: Buffer, partial: Buffer, outer: Parts,
    inner: Parts, first: Join, identity: Expr, loc: Loc | None,
) -> Stmt:  # fmt: skip
    """Combine a thread's own registers: the folded ones in order, the rest side by side, and with
    them the chains of each (`partial` has them behind each other)."""
    size, count, depth = int(partial.static_shape[0]), _size(outer), _size(inner)
    chains = size // count
    k, r = ctx.fresh("k", depth // chains), ctx.fresh("r", size)
    register = as_expr(mixed(r % count, outer) + mixed(k * chains + r // count, inner))
    value: Expr = cast(Load(source, (register,)), partial.dtype)
    inside = in_tile(layout.element_of(ctx.tid, register), layout)
    if inside is not None:
        value = select(inside, value, identity)
    store = Store(partial, (r,), first(Load(partial, (r,)), value), loc=loc)
    body = loop(r, size, LoopKind.LANES, [store], loc)
    return loop(k, depth // chains, LoopKind.UNROLL, [body], loc)


def _chains(ctx: LowerContext, kind: str, dtype: DType, count: int, depth: int) -> int:
    """Into how many chains a thread's registers are folded for each of `count` results: enough
    independent operations to cover the latency of one, where the chains are long."""
    reordered = kind in ("sum", "abssum") and dtype.is_float
    if not setting(ctx, CHAINS) or (reordered and setting(ctx, PRECISE_MATH)):
        return 1
    chains = 1
    while count * chains < COSTS["alu"].latency and depth % (2 * _LONG * chains) == 0:
        chains *= 2
    return chains


def _join_chains(
    ctx: LowerContext, chains: Buffer, partial: Buffer, join: Join, loc: Loc | None
) -> list[Stmt]:
    """The chains of each result become one."""
    count, size = int(partial.static_shape[0]), int(chains.static_shape[0])
    r = ctx.fresh("r", count)
    values: list[Expr] = [Load(chains, (r + start,)) for start in range(0, size, count)]
    while len(values) > 1:
        values = [join(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    return [loop(r, count, LoopKind.LANES, [Store(partial, (r,), values[0], loc=loc)], loc)]


def _butterfly(
    ctx: LowerContext, partial: Buffer, count: int, mask: int, join: Join, loc: Loc | None
) -> list[Stmt]:
    """Every lane combines with the lane whose number differs in one bit."""
    other = ctx.temp(f"{partial.name}_other", count, partial.dtype)
    r = ctx.fresh("r", count)
    operands = (Ref(other, (r,)), Load(partial, (r,)), as_expr(mask))
    fetch = Invoke(SHFL_XOR, operands, loc=loc)
    s = ctx.fresh("r", count)
    store = Store(partial, (s,), join(Load(partial, (s,)), Load(other, (s,))), loc=loc)
    return [
        loop(r, count, LoopKind.UNROLL, [fetch], loc),
        loop(s, count, LoopKind.LANES, [store], loc),
    ]


def _through_shared(
    ctx: LowerContext, partial: Buffer, count: int, far: Parts, join: Join, loc: Loc | None
) -> list[Stmt]:
    """Threads leave their partial results in shared memory and combine those of their group.

    Each for itself, or, where that is many loads, each thread a share of its group's results,
    which it leaves for the others: one more barrier, and the same order of operations.
    """
    far = tuple(sorted(far, key=lambda part: part[1]))
    threads, group, tid = ctx.num_threads, _size(far), ctx.tid
    scratch = ctx.scratch(f"{partial.name}_shared", (count, threads), partial.dtype, loc)
    r, s = ctx.fresh("r", count), ctx.fresh("s", count)
    put = Store(scratch, (r, tid), Load(partial, (r,)), loc=loc)
    out: list[Stmt] = [loop(r, count, LoopKind.LANES, [put], loc)]
    if count * (group - 2) <= _LOADS_OF_A_BARRIER:
        total = _of_group(scratch, s, _first_of_group(tid, far), far, join)
        return [*out, _each(partial, s, total, loc)]
    groups = threads // group
    results = ctx.scratch(f"{partial.name}_joined", (count, groups), partial.dtype, loc)
    i = ctx.fresh("i", -(-count // group))
    item = as_expr(i * threads + tid)
    result, number = item // groups, item % groups
    first = number
    for extent, stride in far:  # a digit of zero is put in
        first = first // stride * (stride * extent) + first % stride
    total = _of_group(scratch, result, first, far, join)
    share = guarded(
        None if count % group == 0 else item < count * groups,
        [Store(results, (result, number), total, loc=loc)], loc,
    )  # fmt: skip
    out.append(loop(i, -(-count // group), LoopKind.UNROLL, [share], loc))
    mine: Expr = tid
    for extent, stride in reversed(far):  # the digit is left out
        mine = mine // (stride * extent) * stride + mine % stride
    return [*out, _each(partial, s, Load(results, (s, mine)), loc)]


def _each(partial: Buffer, s: Var, value: Expr, loc: Loc | None) -> Stmt:
    count = int(partial.static_shape[0])
    return loop(s, count, LoopKind.LANES, [Store(partial, (s,), value, loc=loc)], loc)


def _first_of_group(tid: Expr, far: Parts) -> Expr:
    """The thread of the group of `tid` whose digits `far` are zero."""
    first = tid
    for extent, stride in far:
        first = first - tid // stride % extent * stride
    return first


def _of_group(scratch: Buffer, result: Expr, first: Expr, far: Parts, join: Join) -> Expr:
    """What all threads of a group have left for one result."""
    total: Expr | None = None
    for combination in product(*(range(extent) for extent, _ in far)):
        offset = sum(c * stride for c, (_, stride) in zip(combination, far, strict=True))
        value = Load(scratch, (result, first + offset))
        total = value if total is None else join(total, value)
    assert total is not None
    return total
