"""Gather: a shared tile filled by cp.async from places of a tensor that expressions name.

Made out of T.Parallel loops (`KV_shared[i, j] = KV[Indices[i], j]`) and T.im2col, never written by
a program. Hides which neighbours lie together in both memories.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tilelab.ir import Expr, Load, LoopKind, Node, Region, Stmt, Store, Var, as_expr, select, walk
from tilelab.ir.rewrite import rewrite, substitute
from tilelab.ir.verify import BINDERS
from tilelab.layout import Fragment
from tilelab.target import Feature
from tilelab.thread.intrinsics.cp_async import cp_async, cp_async_zfill
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import VECTOR_BYTES, LowerContext
from tilelab.tile.elementwise import Walk, both, expand, guarded, tile_extents, walk_tile
from tilelab.tile.op import TileOp, lowering, reads, writes


@dataclass(frozen=True, eq=False)
class Gather(TileOp):
    """`dst[vars] = src[indices]`, 0 where `when` does not hold. It is only started: the tile has
    arrived once its cp.async group has been waited for. `src` is the whole tensor. `together`:
    runs of the tile that are aligned in both memories lie together in the tensor too."""

    op_name: ClassVar[str] = "gather"
    team: ClassVar[str] = "any"

    src: Region = reads()
    dst: Region = writes()
    vars: tuple[Var, ...] = ()
    indices: tuple[Expr, ...] = ()
    when: Expr | None = None
    together: bool = False

    def label(self) -> str:
        return f"rows of {self.src.buffer.name} -> {self.dst.buffer.name}"


BINDERS[Gather] = lambda s: s.vars


def gather_width(op: Gather, ctx: LowerContext) -> int | None:
    """Elements of one cp.async (4, 8 or 16 bytes); None where it cannot be used."""
    src, last = op.src.buffer, op.vars[-1]
    extent = tile_extents(op.dst)[-1]
    limit = VECTOR_BYTES // src.dtype.bytes
    if src.dtype != op.dst.dtype or not ctx.zero_outside(src):
        return None
    if op.together:
        width = min(ctx.vector_width(r, extent, limit) for r in (op.src, op.dst))
        return width if width * src.dtype.bytes >= 4 else None
    fixed = [*op.indices[:-1], *(() if op.when is None else (op.when,))]
    if any(n is last for e in fixed for n in walk(e)):
        return None
    width = ctx.vector_width(op.dst, extent, limit)
    while width * src.dtype.bytes >= 4:
        chunk = Var("q", lo=0, hi=extent // width - 1) * width
        first = substitute(op.indices[-1], {last: chunk})
        step = substitute(op.indices[-1], {last: chunk + 1}) - first
        starts = (*op.indices[:-1], first)
        run = Region(src, starts, (*(1 for _ in op.indices[:-1]), width), (src.rank - 1,))
        if step.key == as_expr(1).key and ctx.vector_width(run, width, width) == width:
            return width
        width //= 2
    return None


@lowering(Gather, needs=(Feature.CP_ASYNC,))
def _threads(op: Gather, ctx: LowerContext) -> Iterable[Stmt]:
    """Every thread starts its share of the tile; what does not exist becomes zeros."""
    width = gather_width(op, ctx)
    assert width is not None
    walk = walk_tile(ctx, Fragment.blocked(tile_extents(op.dst), ctx.num_threads, width), width)
    tables = _Tables(op, ctx, walk)
    indices = tuple(tables.value(i) for i in op.indices)
    when = None if op.when is None else tables.value(op.when)
    exists = both(when, ctx.indices_in_bounds(op.src.buffer, indices))
    source = Ref(op.src.buffer, indices, width)
    target = Ref(ctx.placed(op.dst.buffer), op.dst.index(expand(op.dst, walk.index)), width)
    nbytes = width * op.src.dtype.bytes
    if exists is None:
        copy = Invoke(cp_async(nbytes), (target, source), loc=op.loc)
    else:
        copy = Invoke(cp_async_zfill(nbytes), (target, source, exists), loc=op.loc)
    if tables.entries:
        yield walk.over(LoopKind.UNROLL, [guarded(walk.inside, tables.entries, op.loc)], op.loc)
    yield walk.over(LoopKind.UNROLL, [guarded(walk.inside, [copy], op.loc)], op.loc)


class _Tables:
    """The entries of tables that a thread's chunks ask for, read into registers before its first
    copy is started, so that their latencies overlap."""

    def __init__(self, op: Gather, ctx: LowerContext, walk: Walk) -> None:
        self.ctx, self.walk, self.loc = ctx, walk, op.loc
        self.here = dict(zip(op.vars, walk.index, strict=True))
        self.known: dict[object, Expr] = {}
        self.entries: list[Stmt] = []

    def value(self, e: Expr) -> Expr:
        """An expression of the tile's coordinates, for a chunk."""
        return rewrite(substitute(e, self.here), self._entry)

    def _entry(self, n: Node) -> Node | None:
        if not isinstance(n, Load):
            return None
        if n.key not in self.known:
            ctx, chunk = self.ctx, self.walk.chunk
            indices = tuple(rewrite(i, self._entry) for i in n.indices)
            read: Expr = Load(ctx.placed(n.buffer), indices)
            exists = ctx.indices_in_bounds(n.buffer, indices)
            if exists is not None:
                read = select(exists, read, ctx.outside(n.buffer, n.dtype), guard=True)
            held = ctx.temp(f"{n.buffer.name}_entry", self.walk.chunks, n.dtype)
            self.entries.append(Store(held, (chunk,), read, loc=self.loc))
            self.known[n.key] = Load(held, (chunk,))
        return self.known[n.key]
