"""Moves between buffers, element by element or a vector at a time, spread over threads.

One walk for every pair of scopes: a spread (Fragment) says which thread moves which element, the
context proves how wide an access may be and what must be guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilelab.dtypes import BOOL
from tilelab.errors import Loc
from tilelab.ir import (
    Expr,
    For,
    If,
    Load,
    LoopKind,
    ParallelFor,
    Pool,
    Region,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
    call,
    cast,
    ceildiv,
    const_int,
)
from tilelab.ir.stmt import OWN_ELEMENTS
from tilelab.layout import Fragment
from tilelab.thread.intrinsics.wide import is_aligned
from tilelab.thread.nodes import Invoke, Ref, VectorCopy
from tilelab.tile.context import VECTOR_BYTES, LowerContext
from tilelab.tile.structure import WHOLE_TILES, setting


def loop(var: Var, extent: int, kind: LoopKind, body: list[Stmt], loc: Loc | None) -> For:
    """`for var in range(extent)` of the given kind."""
    return For(
        var, as_expr(0), as_expr(extent), as_expr(1), kind, Seq(tuple(body), loc=loc), loc=loc
    )


def own_loop(var: Var, extent: int, body: list[Stmt], loc: Loc | None) -> For:
    """A serial loop in which no thread touches an element that another one touches: it needs
    no barrier inside (insert-sync takes it as one statement)."""
    made = loop(var, extent, LoopKind.SERIAL, body, loc)
    return replace(made, attrs=((OWN_ELEMENTS, True),))


def both(a: Expr | None, b: Expr | None) -> Expr | None:
    """The conjunction of two conditions, None standing for "always"."""
    if a is None or b is None:
        return a if b is None else b
    return binary("and", a, b)


def guarded(
    condition: Expr | None,
    body: list[Stmt],
    loc: Loc | None,
    orelse: Any = None,
    *,
    unasked: bool = False,
) -> Stmt:
    """`body` under a condition, or as it is when there is none. `unasked`: the condition keeps an
    access inside of its tensor where neither the program nor its construct does (`If.guard`)."""
    then = Seq(tuple(body), loc=loc)
    if condition is None:
        return body[0] if len(body) == 1 else then
    other = Seq(tuple(orelse), loc=loc) if orelse else None
    return If(condition, then, other, guard=unasked, loc=loc)


def over_elements(op: Any, make: Callable[[Expr, tuple[Expr, ...]], Stmt]) -> ParallelFor:
    """A whole-tile op from `op.src` to `op.dst` as a loop over elements: `make` gives the statement
    for a value, in the destination's type, and where it goes."""
    src, dst = op.src, op.dst
    extents = tile_extents(dst)
    vars = tuple(Var(f"i{n}", lo=0, hi=e - 1) for n, e in enumerate(extents))
    value = cast(Load(src.buffer, src.index(expand(src, vars))), dst.dtype)
    body = Seq((make(value, dst.index(expand(dst, vars))),), loc=op.loc)
    return ParallelFor(vars, extents, body, loc=op.loc)


BATCH = 16  # accesses of one thread that are unrolled together when no register numbers them


@dataclass(frozen=True)
class Walk:
    """One pass over a tile: `chunk` counts vector accesses of a thread, `index` is the first
    element of a chunk, `width` its elements, `inside` whether it lies in the tile at all.
    `loops` are the (variable, extent) pairs that make up `chunk`, the outermost first."""

    chunk: Expr
    chunks: int
    width: int
    index: tuple[Expr, ...]
    inside: Expr | None
    loops: tuple[tuple[Var, int], ...]

    def over(self, kind: LoopKind, body: list[Stmt], loc: Loc | None) -> For:
        """`body` for every chunk: the inner loop of the given kind, an outer one in order."""
        var, extent = self.loops[-1]
        out = loop(var, extent, kind, body, loc)
        for var, extent in reversed(self.loops[:-1]):
            out = loop(var, extent, LoopKind.SERIAL, [out], loc)
        return out


def walk_tile(ctx: LowerContext, spread: Fragment, width: int, *, batched: bool = False) -> Walk:
    """Enumerate the elements a thread owns, `width` neighbours of the last axis at a time.

    `batched`: only BATCH accesses are unrolled at once, to bound registers and code size; for
    walks whose chunk number does not index registers.
    """
    chunks = spread.num_registers // width
    chunk: Expr = ctx.fresh("i", chunks)
    loops: tuple[tuple[Var, int], ...] = ((chunk, chunks),)
    if batched and chunks > BATCH and chunks % BATCH == 0:
        outer, inner = ctx.fresh("batch", chunks // BATCH), ctx.fresh("i", BATCH)
        chunk, loops = outer * BATCH + inner, ((outer, chunks // BATCH), (inner, BATCH))
    index = tuple(as_expr(i) for i in spread.element_of(ctx.tid, chunk * width))
    return Walk(chunk, chunks, width, index, in_tile(index, spread), loops)


def in_tile(index: Iterable[Any], spread: Fragment, also: Expr | None = None) -> Expr | None:
    """Whether an element of a spread lies in the tile and not in what the spread covers beyond it,
    and `also` holds; None: always."""
    for i, extent, cover in zip(index, spread.shape, spread.covers, strict=True):
        if cover != extent:
            also = both(also, binary("<", as_expr(i), extent))
    return also


def tile_extents(region: Region) -> tuple[int, ...]:
    """Extents of a region's tile axes of more than one element, as ints."""
    return tuple(int(const_int(e) or 0) for e in region.tile_shape if const_int(e) != 1)


def expand(region: Region, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Tile indices with the axes of extent 1 put back."""
    rest = iter(index)
    return tuple(as_expr(0) if const_int(e) == 1 else next(rest) for e in region.tile_shape)


def ref(
    ctx: LowerContext, region: Region, spread: Fragment, index: tuple[Expr, ...], register: Expr
) -> Ref:
    """The place of one element: a register of a fragment, else memory. `register` is its number
    in the spread, which is the fragment's too where both are laid out alike."""
    buffer = ctx.placed(region.buffer)
    if region.buffer.scope is not Scope.FRAGMENT:
        return Ref(buffer, region.index(expand(region, index)))
    layout = ctx.fragment(region.buffer)
    if numbered_alike(layout, spread):
        return Ref(buffer, (register,))
    return Ref(buffer, (as_expr(layout.register_of(region.index(expand(region, index)))),))


def numbered_alike(layout: Fragment, spread: Fragment) -> bool:
    """Whether a fragment numbers its registers as the spread does, axes of extent 1 apart."""
    axes = tuple(d for d, n in zip(layout.axes, layout.shape, strict=True) if n != 1)
    return axes == tuple(d for d, n in zip(spread.axes, spread.shape, strict=True) if n != 1)


def guard_of(ctx: LowerContext, region: Region, index: tuple[Expr, ...]) -> Expr | None:
    """Whether a chunk of a GLOBAL region exists (its elements exist together or not at all)."""
    if region.buffer.scope is not Scope.GLOBAL:
        return None
    return ctx.in_bounds(region, expand(region, index))


def first_replica(ctx: LowerContext, layout: Fragment) -> Expr | None:
    """True in the first of the threads that hold copies of an element; None without copies."""
    ok: Expr | None = None
    for extent, stride in layout.replicas:
        ok = both(ok, binary("==", ctx.tid // stride % extent, 0))
    return ok


def move(
    ctx: LowerContext, src: Region, dst: Region, spread: Fragment, loc: Loc | None
) -> list[Stmt]:
    """Copy `src` to `dst` (same tile extents), converting, with reads past a tensor giving 0. Where
    only tiles that exist as a whole can move wider, those do, chosen by a branch."""
    plain = _width(ctx.trial(), src, dst, spread, inside=False)
    if not whole_tiles(ctx) or _width(ctx.trial(), src, dst, spread, inside=True) == plain:
        return _move(ctx, src, dst, spread, loc, inside=False)
    fast = _move(ctx, src, dst, spread, loc, inside=True)
    slow = _move(ctx, src, dst, spread, loc, inside=False)
    tensors = [r for r in (src, dst) if r.buffer.scope is Scope.GLOBAL]
    aligned = Var("aligned", BOOL)
    asked = [r.buffer for r in tensors if not isinstance(r.buffer, Pool)]
    starts = tuple(Ref(b, (as_expr(0),) * b.rank) for b in asked)
    ask = Invoke(is_aligned(VECTOR_BYTES, len(starts)), starts, result=aligned, loc=loc)
    condition: Expr | None = aligned
    for region in tensors:
        last = tuple(as_expr(e) - 1 for e in tile_extents(region))
        first = tuple(as_expr(0) for _ in last)
        for corner in (first, last):
            condition = both(ctx.in_bounds(region, expand(region, corner)), condition)
    names = f"{src.buffer.name} -> {dst.buffer.name}"
    ctx.note(f"{names}: tiles that exist as a whole move by wide accesses, others by elements")
    return [ask, guarded(condition, fast, loc, slow)]


def whole_tiles(ctx: LowerContext) -> bool:
    """Whether tiles that exist as a whole may have a version of their own."""
    return bool(setting(ctx, WHOLE_TILES))


def _width(ctx: LowerContext, src: Region, dst: Region, spread: Fragment, *, inside: bool) -> int:
    """Neighbours that one access moves."""
    last = spread.shape[-1] if spread.shape else 1
    memory = [r for r in (src, dst) if r.buffer.scope is not Scope.FRAGMENT]
    # An instruction moves 16 bytes; registers on the other side of a conversion may be more.
    widest = VECTOR_BYTES // max(r.dtype.bytes for r in memory or (src, dst))
    run = min(widest, *(_run(ctx, r, spread) for r in (src, dst)))
    return min(ctx.vector_width(r, last, run, inside=inside) for r in (src, dst))


def _move(
    ctx: LowerContext, src: Region, dst: Region, spread: Fragment, loc: Loc | None, *, inside: bool
) -> list[Stmt]:
    """`move` for any tile, or (`inside`) for one whose elements all exist."""
    width = _width(ctx, src, dst, spread, inside=inside)
    in_memory = Scope.FRAGMENT not in (src.buffer.scope, dst.buffer.scope)
    walk = walk_tile(ctx, spread, width, batched=in_memory and width == 1)
    register = walk.chunk * width
    source, target = (ref(ctx, r, spread, walk.index, register) for r in (src, dst))
    load_ok = None if inside else guard_of(ctx, src, walk.index)
    store_ok = both(walk.inside, None if inside else guard_of(ctx, dst, walk.index))
    if dst.buffer.scope is Scope.GLOBAL:
        store_ok = both(first_replica(ctx, spread), store_ok)
    return move_chunks(ctx, walk, source, target, load_ok, store_ok, loc)


def is_static(*regions: Region) -> bool:
    """Whether the extents of tiles are known at compile time."""
    return all(const_int(e) is not None for r in regions for e in r.tile_shape)


def each_element(
    ctx: LowerContext,
    extents: Sequence[Expr],
    put: Callable[[tuple[Expr, ...]], Stmt],
    loc: Loc | None,
) -> list[Stmt]:
    """`put(index)` for every element of a tile whose extents are known at run time: threads take
    them in turn."""
    total: Expr = as_expr(1)
    for extent in extents:
        total = total * extent
    turn = ctx.fresh("turn", 1 << 30)
    number: Expr = turn * ctx.num_threads + ctx.tid
    index: list[Expr] = []
    rest = number
    for extent in reversed(extents[1:]):
        index.insert(0, rest % extent)
        rest = rest // extent
    body = guarded(binary("<", number, total), [put((rest, *index))], loc)
    made = own_loop(turn, 0, [body], loc)
    return [replace(made, extent=ceildiv(total, ctx.num_threads))]


def move_each(ctx: LowerContext, src: Region, dst: Region, loc: Loc | None) -> list[Stmt]:
    """Copy between memories where an extent is known at run time: the elements both sides have."""
    pairs = zip(_long_axes(src), _long_axes(dst), strict=True)
    extents = [a if a.key == b.key else call("min", a, b) for a, b in pairs]

    def put(index: tuple[Expr, ...]) -> Stmt:
        source, target = (Ref(ctx.placed(r.buffer), r.index(_short(r, index))) for r in (src, dst))
        load_ok, store_ok = (ctx.in_bounds(r, _short(r, index)) if _is_tensor(r) else None
                             for r in (src, dst))  # fmt: skip
        return guarded(store_ok, [_element(ctx, source, target, load_ok, loc)], loc)

    return each_element(ctx, extents or [as_expr(1)], put, loc)


def _is_tensor(region: Region) -> bool:
    return region.buffer.scope is Scope.GLOBAL


def _long_axes(region: Region) -> list[Expr]:
    return [as_expr(e) for e in region.tile_shape if const_int(e) != 1]


def _short(region: Region, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Tile indices of a region, from those of its axes of more than one element."""
    return expand(region, index[: len(_long_axes(region))])


def move_chunks(
    ctx: LowerContext,
    walk: Walk,
    source: Ref,
    target: Ref,
    load_ok: Expr | None,
    store_ok: Expr | None,
    loc: Loc | None,
) -> list[Stmt]:
    """Copy `walk.width` elements from `source` to `target` for every chunk, converted: zeros where
    `load_ok` does not hold, nothing where `store_ok` does not."""
    if walk.width == 1:
        body = [guarded(store_ok, [_element(ctx, source, target, load_ok, loc)], loc)]
        return [walk.over(LoopKind.LANES, body, loc)]
    return _vector_move(ctx, walk, source, target, load_ok, store_ok, loc)


def _run(ctx: LowerContext, region: Region, spread: Fragment) -> int:
    """Neighbours of the last axis that one thread holds side by side."""
    if not spread.shape:
        return 1
    run = spread.contiguous(-1)
    if region.buffer.scope is not Scope.FRAGMENT:
        return run
    layout = ctx.fragment(region.buffer)
    return run if numbered_alike(layout, spread) else min(run, layout.contiguous(-1))


def _element(
    ctx: LowerContext, source: Ref, target: Ref, load_ok: Expr | None, loc: Loc | None
) -> Stmt:
    value: Expr = cast(Load(source.buffer, source.indices), target.buffer.dtype)
    store = Store(target.buffer, target.indices, value, loc=loc)
    if load_ok is None:
        return store
    outside = ctx.outside(source.buffer, target.buffer.dtype)
    filled = Store(target.buffer, target.indices, outside, loc=loc)
    return guarded(load_ok, [store], loc, [filled])


def _vector_move(
    ctx: LowerContext,
    walk: Walk,
    source: Ref,
    target: Ref,
    load_ok: Expr | None,
    store_ok: Expr | None,
    loc: Loc | None,
) -> list[Stmt]:
    same = source.buffer.dtype == target.buffer.dtype
    body: list[Stmt] = []
    through = source
    if target.buffer.scope is Scope.LOCAL:
        through = target
    elif not same or load_ok is not None:
        through = Ref(
            ctx.temp("vec", walk.width * walk.chunks, target.buffer.dtype),
            (walk.chunk * walk.width,),
        )
    if through is not source:
        body += _fetch(ctx, walk, source, through, load_ok, loc)
    if through is not target:
        body.append(VectorCopy(target, through, walk.width, loc=loc))
    return [walk.over(LoopKind.LANES, [guarded(store_ok, body, loc)], loc)]


def along(place: Ref, offset: Expr) -> tuple[Expr, ...]:
    """The indices of the element `offset` further on the last axis."""
    return (*place.indices[:-1], place.indices[-1] + offset)


def _fetch(
    ctx: LowerContext, walk: Walk, source: Ref, through: Ref, ok: Expr | None, loc: Loc | None
) -> list[Stmt]:
    """Load one chunk into registers, converted; zeros where the chunk is outside the tensor."""
    e = ctx.fresh("e", walk.width)
    slot = along(through, e)
    outside = ctx.outside(source.buffer, through.buffer.dtype)
    fill: list[Stmt] = [Store(through.buffer, slot, outside, loc=loc)]
    filled = loop(e, walk.width, LoopKind.LANES, fill, loc)
    if source.buffer.dtype == through.buffer.dtype:
        load: list[Stmt] = [VectorCopy(through, source, walk.width, loc=loc)]
        return [guarded(ok, load, loc, [filled] if ok is not None else None)]
    load = []
    origin = source
    if source.buffer.scope is not Scope.LOCAL:
        raw = ctx.temp("raw", walk.width * walk.chunks, source.buffer.dtype)
        origin = Ref(raw, (walk.chunk * walk.width,))
        load.append(VectorCopy(origin, source, walk.width, loc=loc))
    value = cast(Load(origin.buffer, along(origin, e)), through.buffer.dtype)
    convert = Store(through.buffer, slot, value, loc=loc)
    load.append(loop(e, walk.width, LoopKind.LANES, [convert], loc))
    return [guarded(ok, load, loc, [filled] if ok is not None else None)]
