"""copy(src, dst): move a tile between memory spaces, converting the element type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tilelab.errors import TileValueError
from tilelab.ir import Expr, Region, Scope, Stmt, Var, as_expr, const_int
from tilelab.ir.builder import current
from tilelab.layout import Fragment
from tilelab.logs import without_effect
from tilelab.target import Feature
from tilelab.thread.nodes import Ref
from tilelab.tile.context import VECTOR_BYTES, LowerContext
from tilelab.tile.elementwise import is_static, move, move_each, tile_extents
from tilelab.tile.op import Access, Env, Fact, LayoutContext, Loop, TileOp, lowering, reads, writes
from tilelab.tile.operands import check_same_rank, check_same_tile, here, pair_regions
from tilelab.tile.ops.copy_async import async_width, cp_async_tile, tma_load_tile
from tilelab.tile.ops.copy_staged import staged_plan, staged_store
from tilelab.tile.ops.copy_wide import quad_store, quad_store_plan
from tilelab.tile.structure import WHOLE_TILES, setting


def copy(
    src: Any, dst: Any, *, coalesced_width: int | None = None, disable_tma: bool = False,
    eviction_policy: str | None = None, prefer_instruction: str | None = None,
    annotations: Any = None, loop_layout: Any = None,
) -> Copy:  # fmt: skip
    """Copy a tile: `T.copy(A[by * 128, ko * 64], A_shared)`.

    `src`, `dst`: a buffer, a slice, or a base point (which takes the other side's shape, on the
    last axes), of any two scopes and element types. Where an extent is known only at run time, the
    elements that both sides have are moved. Elements read outside a tensor are 0, writes
    outside are dropped. Inside T.Pipelined a copy from global to shared memory runs ahead
    (TMA or cp.async). `prefer_instruction` is the best that may do it: "tma" (the default),
    "cp_async" (as with `disable_tma`), or "sync", which waits for it where it stands.
    `coalesced_width`, `eviction_policy` and `loop_layout` change nothing, which is said once.
    Raises TileTypeError (TL1501, TL1502) for operands that are no tiles and TileValueError for
    shapes that differ (TL1503) and other words than these (TL1506).
    """
    without_effect("T.copy", {
        "coalesced_width": coalesced_width, "loop_layout": loop_layout,
        "eviction_policy": _one_of("eviction_policy", eviction_policy, EVICTION_POLICIES),
    }, "the compiler chooses who moves what, and the chip what its caches keep")  # fmt: skip
    best = _one_of("prefer_instruction", prefer_instruction, INSTRUCTIONS) or "tma"
    if disable_tma and best == "tma":
        best = "cp_async"
    source, target = pair_regions(src, dst)
    op = Copy(source, target, best=best, loc=here())
    op.check()
    current().emit(op)
    return op


def _one_of(argument: str, value: str | None, allowed: tuple[str, ...]) -> str | None:
    """`value`, or the error that it is none of the words allowed."""
    if value is not None and value not in allowed:
        raise TileValueError(
            f"T.copy({argument}={value!r}) is not known", code="TL1506", loc=here(),
            hint="use " + " or ".join(repr(word) for word in allowed),
        )  # fmt: skip
    return value


INSTRUCTIONS = ("tma", "cp_async", "sync")
EVICTION_POLICIES = ("evict_normal", "evict_first", "evict_last")


@dataclass(frozen=True, eq=False)
class Copy(TileOp):
    """`dst = src`. `best` is the best of INSTRUCTIONS that the program allows. Layout inference
    sets `spread` (which thread moves what); the pipeline realisers set `is_async` (cp.async) or
    `barrier` (TMA)."""

    op_name: ClassVar[str] = "copy"
    team: ClassVar[str] = "any"

    src: Region = reads()
    dst: Region = writes()
    best: str = "tma"
    spread: Fragment | None = None
    is_async: bool = False
    barrier: Ref | None = None

    def check(self) -> None:
        if is_static(self.src, self.dst) or not self.in_memory():
            check_same_tile("copy", self.src, self.dst, self.loc)
        else:
            check_same_rank("copy", self.src, self.dst, self.loc)

    def in_memory(self) -> bool:
        """Whether no side is a fragment, whose elements have their threads."""
        return Scope.FRAGMENT not in (self.src.buffer.scope, self.dst.buffer.scope)

    def label(self) -> str:
        return f"{self.src.buffer.name} -> {self.dst.buffer.name}"

    def with_spread(self, spread: Fragment) -> Copy:
        return replace(self, spread=spread)

    def reference(self, env: Env) -> None:
        env.put(self.dst, env.get(self.src))

    def layout_rule(self, ctx: LayoutContext) -> Iterable[Fact]:
        fragments = [r for r in (self.src, self.dst) if r.buffer.scope is Scope.FRAGMENT]
        if not fragments:
            return
        extents = tile_extents(self.dst)
        vars = tuple(_axis_var(i, e) for i, e in enumerate(extents))
        accesses = tuple(Access(r.buffer, _tile_index(r, vars), r is self.dst) for r in fragments)
        yield Loop(self, vars, extents, accesses, f"copy {self.label()}", self._vector(ctx))

    def _vector(self, ctx: LayoutContext) -> int:
        """Neighbours that a thread should hold so that accesses of memory are wide."""
        last = (tile_extents(self.dst) or (1,))[-1]
        memory = [r for r in (self.src, self.dst) if r.buffer.scope is not Scope.FRAGMENT]
        whole = bool(setting(ctx, WHOLE_TILES))
        limits = ((r, VECTOR_BYTES // r.dtype.bytes) for r in memory)
        widths = [ctx.vector_width(r, last, limit, inside=whole) for r, limit in limits]
        return max(min(widths, default=1), 1)


def _axis_var(axis: int, extent: int) -> Var:
    return Var(f"c{axis}", lo=0, hi=extent - 1)


def _tile_index(region: Region, vars: tuple[Expr, ...]) -> tuple[Expr, ...]:
    rest = iter(vars)
    local = tuple(as_expr(0) if const_int(e) == 1 else next(rest) for e in region.tile_shape)
    return region.index(local)


def spread_of(op: Copy, ctx: LowerContext) -> Fragment:
    """Which thread moves which element: the fragment's own layout, else runs of 16 bytes. Every
    thread moves the whole tile to or from an array of its own."""
    if op.spread is not None:
        return op.spread
    extents = tile_extents(op.dst) or (1,)
    limit = 16 // max(op.src.dtype.bytes, op.dst.dtype.bytes)
    whole, trial = bool(setting(ctx, WHOLE_TILES)), ctx.trial()
    width = min(trial.vector_width(r, extents[-1], limit, inside=whole) for r in (op.src, op.dst))
    own = Scope.LOCAL in (op.src.buffer.scope, op.dst.buffer.scope)
    return Fragment.blocked(extents, 1 if own else ctx.num_threads, width)


@lowering(Copy, when=lambda op, ctx: not is_static(op.src, op.dst))
def _elements(op: Copy, ctx: LowerContext) -> Iterable[Stmt]:
    """An extent known only at run time: threads move the elements that both sides have in turn."""
    private = Scope.LOCAL in (op.src.buffer.scope, op.dst.buffer.scope)
    mine = replace(ctx, tid=as_expr(0), num_threads=1) if private else ctx
    return move_each(mine, op.src, op.dst, op.loc)


@lowering(Copy, needs={Feature.TMA, Feature.MBARRIER}, when=lambda op, ctx: op.barrier is not None)
def _tma(op: Copy, ctx: LowerContext) -> Iterable[Stmt]:
    """TMA: one thread asks for whole boxes, the mbarrier counts their bytes."""
    assert op.barrier is not None
    return tma_load_tile(ctx, op.src, op.dst, op.barrier, op.loc)


@lowering(
    Copy,
    needs={Feature.CP_ASYNC},
    when=lambda op, ctx: op.is_async and async_width(op.src, op.dst, ctx) is not None,
)
def _cp_async(op: Copy, ctx: LowerContext) -> Iterable[Stmt]:
    """cp.async: every thread starts copies of 4 to 16 bytes that bypass registers."""
    return cp_async_tile(ctx, op.src, op.dst, op.loc)


@lowering(
    Copy,
    needs={Feature.TMA},
    when=lambda op, ctx: op.best == "tma" and staged_plan(op.src, op.dst, ctx) is not None,
)
def _staged_accumulator_store(op: Copy, ctx: LowerContext) -> Iterable[Stmt]:
    """Accumulator to global: stmatrix into staging tiles, stored by TMA while work goes on."""
    plan = staged_plan(op.src, op.dst, ctx)
    assert plan is not None
    return staged_store(ctx, op.src, op.dst, plan, op.loc)


@lowering(Copy, when=lambda op, ctx: quad_store_plan(op.src, op.dst, ctx) is not None)
def _wide_accumulator_store(op: Copy, ctx: LowerContext) -> Iterable[Stmt]:
    """Accumulator to global: quads of lanes transpose 4x4 pairs, then store 16 bytes each."""
    plan = quad_store_plan(op.src, op.dst, ctx)
    assert plan is not None
    return quad_store(ctx, op.src, op.dst, plan, op.loc)


@lowering(Copy)
def _threads(op: Copy, ctx: LowerContext) -> Iterable[Stmt]:
    """Threads move the tile through registers, as wide as alignment allows."""
    return move(ctx, op.src, op.dst, spread_of(op, ctx), op.loc)
