"""Lowering of a reduction over a fragment, from the digits of its layout.

Digits of the reduced axis that go to registers are folded in each thread; those that go to lanes
of a warp by butterflies of shuffles; the rest (other warps, extents that are no power of two)
through shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from tilelab.errors import Loc
from tilelab.ir import Buffer, Expr, Load, LoopKind, Stmt, Store, as_expr, binary, cast, select
from tilelab.layout import Digit, Fragment
from tilelab.thread.intrinsics.warp import SHFL_XOR
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import both, loop

if TYPE_CHECKING:
    from tilelab.tile.ops.reduce import Reduce

Join = Callable[[Expr, Expr], Expr]
WARP = 32
Parts = tuple[tuple[int, int], ...]  # (extent, stride) of mixed-radix digits, the lowest first


def reduce_registers(
    ctx: LowerContext, op: Reduce, first: Join, join: Join, identity: Expr
) -> list[Stmt]:
    """Statements that leave the combined values in the registers of `op.dst`."""
    layout, loc = ctx.fragment(op.src.buffer), op.loc
    source, target = ctx.placed(op.src.buffer), ctx.placed(op.dst.buffer)
    outer, inner = _register_parts(layout, op.axis)
    count = _size(outer)
    partial = ctx.temp(f"{target.name}_partial", count, op.dst.dtype)
    out = [_fill(ctx, partial, count, identity, loc)]
    out.append(_fold(ctx, layout, source, partial, outer, inner, first, identity, loc))
    lanes, far = _thread_parts(layout, op.axis, whole_warps=ctx.num_threads % WARP == 0)
    for mask in lanes:
        out += _butterfly(ctx, partial, count, mask, join, loc)
    if far:
        out += _through_shared(ctx, partial, count, far, join, loc)
    r = ctx.fresh("r", count)
    value: Expr = Load(partial, (r,))
    if not op.clear:
        value = join(Load(target, (r,)), value)
    out.append(loop(r, count, LoopKind.LANES, [Store(target, (r,), value, loc=loc)], loc))
    return out


def _size(parts: Parts) -> int:
    count = 1
    for extent, _ in parts:
        count *= extent
    return count


def _mixed(parts: Parts, number: Expr) -> Expr:
    """The register that digit number `number` of `parts` stands for."""
    total: Expr = as_expr(0)
    for extent, stride in parts:
        total = total + number % extent * stride
        number = number // extent
    return total


def _owned(digits: tuple[Digit, ...], owner: str) -> list[tuple[int, int]]:
    return [(d.extent, d.stride) for d in digits if d.owner == owner and d.extent > 1]


def _register_parts(layout: Fragment, axis: int) -> tuple[Parts, Parts]:
    """Register digits of the other axes (what remains) and of the reduced axis (what is folded)."""
    outer = [
        p for i, digits in enumerate(layout.axes) if i != axis for p in _owned(digits, "register")
    ]
    inner = _owned(layout.axes[axis], "register")
    return tuple(sorted(outer, key=lambda p: p[1])), tuple(sorted(inner, key=lambda p: p[1]))


def _thread_parts(layout: Fragment, axis: int, *, whole_warps: bool) -> tuple[list[int], Parts]:
    """Shuffle masks for lanes of one warp, and the thread digits that go further.

    A block whose last warp is not whole exchanges everything through shared memory: a shuffle
    needs all 32 lanes.
    """
    masks: list[int] = []
    far: list[tuple[int, int]] = []
    for extent, stride in _owned(layout.axes[axis], "thread"):
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
    ctx: LowerContext,
    layout: Fragment,
    source: Buffer,
    partial: Buffer,
    outer: Parts,
    inner: Parts,
    first: Join,
    identity: Expr,
    loc: Loc | None,
) -> Stmt:
    """Combine a thread's own registers: the folded ones in order, the rest side by side."""
    count, depth = _size(outer), _size(inner)
    k, r = ctx.fresh("k", depth), ctx.fresh("r", count)
    register = _mixed(outer, r) + _mixed(inner, k)
    value: Expr = cast(Load(source, (register,)), partial.dtype)
    inside: Expr | None = None
    point = layout.element_of(ctx.tid, register)
    for i, extent, cover in zip(point, layout.shape, layout.covers, strict=True):
        if cover != extent:
            inside = both(inside, binary("<", as_expr(i), extent))
    if inside is not None:
        value = select(inside, value, identity)
    store = Store(partial, (r,), first(Load(partial, (r,)), value), loc=loc)
    body = loop(r, count, LoopKind.LANES, [store], loc)
    return loop(k, depth, LoopKind.UNROLL, [body], loc)


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
    """Threads leave their partial results in shared memory and combine those of their group."""
    scratch = ctx.scratch(f"{partial.name}_shared", (count, ctx.num_threads), partial.dtype, loc)
    r = ctx.fresh("r", count)
    tid = ctx.tid
    put = Store(scratch, (r, tid), Load(partial, (r,)), loc=loc)
    base: Expr = tid
    for extent, stride in far:
        base = base - tid // stride % extent * stride
    s = ctx.fresh("r", count)
    total: Expr | None = None
    for combination in product(*(range(extent) for extent, _ in far)):
        offset = sum(c * stride for c, (_, stride) in zip(combination, far, strict=True))
        value = Load(scratch, (s, base + offset))
        total = value if total is None else join(total, value)
    assert total is not None
    get = Store(partial, (s,), total, loc=loc)
    return [
        loop(r, count, LoopKind.LANES, [put], loc),
        loop(s, count, LoopKind.LANES, [get], loc),
    ]
