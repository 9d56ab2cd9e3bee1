"""Lowering of a scan: along lines of shared memory; fragments go through a shared tile.

A line is all elements that differ in the scanned axis alone. Every element is read and written by
the same thread, so a scan needs no barrier of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tilelab.dtypes import FLOAT32, INT32, UINT32, DType
from tilelab.errors import Loc
from tilelab.ir import (
    Buffer,
    Expr,
    Load,
    LoopKind,
    Region,
    Scope,
    Stmt,
    Store,
    as_expr,
    binary,
    cast,
    const_int,
    select,
)
from tilelab.layout.digits import unravel
from tilelab.target import WARP
from tilelab.thread.intrinsics.warp import SHFL_INDEX, SHFL_UP
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.combine import COMBINES, Combine
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import both, guarded, loop, own_loop
from tilelab.tile.held import from_memory, to_memory
from tilelab.tile.operands import whole

if TYPE_CHECKING:
    from tilelab.tile.ops.scan import Scan

WIDE = {"float": FLOAT32, "int": INT32, "uint": UINT32, "bool": INT32}


def accumulator_type(dtype: DType) -> DType:
    """Narrow values are combined in 32 bits."""
    return dtype if dtype.bits >= 32 else WIDE[dtype.kind]


def scan_tile(ctx: LowerContext, op: Scan) -> list[Stmt]:
    """Fetch fragments into a shared tile, scan it, and bring the result where it belongs."""
    wide = accumulator_type(op.dst.dtype)
    src, dst = op.src, op.dst
    apart = dst.buffer.storage is not src.buffer.storage or _same_place(src, dst)
    direct = dst.buffer.scope is Scope.SHARED and apart
    out: list[Stmt] = []
    tile: Region | None = None
    if src.buffer.scope is Scope.FRAGMENT or not direct:
        extents = tuple(int(const_int(e) or 1) for e in src.tile_shape)
        tile = whole(ctx.scratch(f"{dst.buffer.name}_scan", extents, wide, op.loc))
    if src.buffer.scope is Scope.FRAGMENT:
        assert tile is not None
        out.extend(to_memory(ctx, src, tile, op.loc))
        src = tile
    target = dst if direct else tile
    assert target is not None
    line = Lines(ctx, src, target, op.axis, op.reverse, COMBINES[op.kind], wide, op.loc)
    out.extend(line.by_threads() if line.suit_threads() else line.by_warps())
    if direct or tile is None:
        return out
    if dst.buffer.scope is Scope.FRAGMENT:
        return [*out, *from_memory(ctx, tile, dst, op.loc)]
    return [*out, *line.copied(tile, dst)]


def _same_place(a: Region, b: Region) -> bool:
    """Whether two regions of one shape start at the same element."""
    starts = zip(a.starts, b.starts, strict=True)
    same = a.buffer is b.buffer and a.tile_axes == b.tile_axes
    return same and all(x.key == y.key for x, y in starts)


@dataclass(frozen=True)
class Lines:
    """The lines of a tile and how their elements combine."""

    ctx: LowerContext
    src: Region
    dst: Region
    axis: int
    reverse: bool
    combine: Combine
    dtype: DType
    loc: Loc | None

    @property
    def extent(self) -> int:
        """Elements of a line."""
        return int(const_int(self.src.tile_shape[self.axis]) or 1)

    @property
    def others(self) -> tuple[int, ...]:
        """Extents of the other axes."""
        extents = [int(const_int(e) or 1) for e in self.src.tile_shape]
        return tuple(extents[: self.axis] + extents[self.axis + 1 :])

    @property
    def count(self) -> int:
        return prod(self.others)

    @property
    def identity(self) -> Expr:
        return as_expr(self.combine.identity(self.dtype), self.dtype)

    def suit_threads(self) -> bool:
        """One thread per line: warps that are not whole, or neighbouring lines side by side."""
        along_last = self.axis == len(self.src.tile_shape) - 1
        return self.ctx.num_threads % WARP != 0 or (not along_last and self.count >= WARP)

    def point(self, line: Expr, position: Expr) -> tuple[Expr, ...]:
        """Tile indices of element `position` of line `line`."""
        index = list(unravel(line, self.others))
        step = self.extent - 1 - position if self.reverse else position
        index.insert(self.axis, step)
        return tuple(index)

    def load(self, point: tuple[Expr, ...]) -> Expr:
        value = Load(self.ctx.placed(self.src.buffer), self.src.index(point))
        return cast(value, self.dtype)

    def store(self, point: tuple[Expr, ...], value: Expr) -> Stmt:
        target = self.dst.buffer
        value = cast(value, target.dtype)
        return Store(self.ctx.placed(target), self.dst.index(point), value, loc=self.loc)

    def by_threads(self) -> list[Stmt]:
        """Thread t takes lines t, t + threads, ... and walks along each."""
        ctx, loc, join = self.ctx, self.loc, self.combine.join
        rounds = -(-self.count // ctx.num_threads)
        turn, k = ctx.fresh("turn", rounds), ctx.fresh("k", self.extent)
        line = ctx.tid + turn * ctx.num_threads
        total = ctx.temp("total", 1, self.dtype)
        here = self.point(line, k)
        step = [_set(total, join(_get(total), self.load(here)), loc), self.store(here, _get(total))]
        body = [_set(total, self.identity, loc), own_loop(k, self.extent, step, loc)]
        inside = _below(line, self.count)
        return [own_loop(turn, rounds, [guarded(inside, body, loc)], loc)]

    def by_warps(self) -> list[Stmt]:
        """Warp w takes lines w, w + warps, ...: 32 elements by shuffles, the total is carried."""
        ctx, loc, join = self.ctx, self.loc, self.combine.join
        warps = ctx.num_threads // WARP
        rounds, chunks = -(-self.count // warps), -(-self.extent // WARP)
        turn, chunk = ctx.fresh("turn", rounds), ctx.fresh("chunk", chunks)
        lane = ctx.tid % WARP
        line, position = ctx.tid // WARP + turn * warps, chunk * WARP + lane
        inside = both(_below(line, self.count), _below(position, self.extent))
        here = self.point(line, position)
        carry, value, below = (ctx.temp(n, 1, self.dtype) for n in ("carry", "value", "below"))
        element = self.load(here)
        if inside is not None:
            element = select(inside, element, self.identity)
        step: list[Stmt] = [_set(value, element, loc)]
        for distance in (1, 2, 4, 8, 16):
            operands = (Ref(below, (as_expr(0),)), _get(value), as_expr(distance))
            step.append(Invoke(SHFL_UP, operands, loc=loc))
            joined = select(lane >= distance, join(_get(below), _get(value)), _get(value))
            step.append(_set(value, joined, loc))
        step.append(_set(value, join(_get(carry), _get(value)), loc))
        step.append(guarded(inside, [self.store(here, _get(value))], loc))
        last = (Ref(carry, (as_expr(0),)), _get(value), as_expr(WARP - 1))
        step.append(Invoke(SHFL_INDEX, last, loc=loc))
        body = [_set(carry, self.identity, loc), own_loop(chunk, chunks, step, loc)]
        return [own_loop(turn, rounds, body, loc)]

    def copied(self, tile: Region, dst: Region) -> list[Stmt]:
        """The scanned tile into a shared region that overlaps the source."""
        ctx, loc = self.ctx, self.loc
        extents = tuple(int(const_int(e) or 1) for e in tile.tile_shape)
        rounds = -(-prod(extents) // ctx.num_threads)
        turn = ctx.fresh("turn", rounds)
        number = ctx.tid + turn * ctx.num_threads
        index = unravel(number, extents)
        value: Expr = cast(Load(tile.buffer, index), dst.dtype)
        store = Store(ctx.placed(dst.buffer), dst.index(index), value, loc=loc)
        inside = _below(number, prod(extents))
        return [loop(turn, rounds, LoopKind.LANES, [guarded(inside, [store], loc)], loc)]


def _below(value: Expr, limit: int) -> Expr | None:
    """`value < limit`, or None where that is known."""
    test = binary("<", value, limit)
    return None if getattr(test, "value", None) is True else test


def _get(one: Buffer) -> Expr:
    return Load(one, (as_expr(0),))


def _set(one: Buffer, value: Expr, loc: Loc | None) -> Stmt:
    return Store(one, (as_expr(0),), value, loc=loc)
