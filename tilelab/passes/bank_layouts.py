"""Layouts of shared tiles that only threads touch, chosen by counting their bank conflicts.

TMA, ldmatrix and wgmma say how they want a tile; where elementwise loops and copies alone use one,
any layout will do: a tile that is written by rows and read by columns, say. Hides how a warp's
addresses are found, which layouts are tried, and what a conflict must cost to be worth one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilelab.ir import Alloc, Buffer, Expr, Kernel, Load, Node, ParallelFor, Scope, Store, Var, walk
from tilelab.layout import Fragment, SharedLayout
from tilelab.layout.banks import wavefronts
from tilelab.layout.shared import padded, row_major
from tilelab.layout.swizzle import Swizzle
from tilelab.passes.evaluated import evaluated
from tilelab.passes.layout_solver import Solution
from tilelab.passes.touch import touches
from tilelab.target import WARP
from tilelab.thread.intrinsic import Array
from tilelab.tile.context import VECTOR_BYTES, LowerContext
from tilelab.tile.elementwise import expand, is_static, tile_extents
from tilelab.tile.ops.copy import Copy, spread_of

WORTH = 0.75  # of a row-major tile's wavefronts: less is not worth longer addresses
MOST_REGISTERS = 64  # of a thread that are looked at
PADS = (4, 8, 16)  # bytes after each row


@dataclass
class Use:
    """One warp's accesses to a tile: `indices` on each axis, of shape (accesses, lanes), each of
    `vector` neighbours on the last axis."""

    indices: tuple[Array, ...]
    vector: int
    is_load: bool


@dataclass
class _Tile:
    """A shared tile: its uses, or `fixed` where something else than loops and copies uses it."""

    buffer: Buffer
    uses: list[Use] = field(default_factory=list[Use])
    fixed: bool = False

    def add(self, use: Use | None, *, is_load: bool) -> None:
        """One more use; one that is not known leaves the tile as it is."""
        if use is None:
            self.fixed = True
        else:
            self.uses.append(replace(use, is_load=is_load))


Chosen = tuple[Buffer, SharedLayout, str]


def bank_layouts(
    kernel: Kernel, nodes: Sequence[tuple[Node, LowerContext]], solution: Solution
) -> Iterator[Chosen]:
    """Layouts for tiles that nothing else decides, with the reason. `nodes`: every statement of
    the kernel, with the context of the threads that run it."""
    tiles = {id(b): _Tile(b) for b in _free(kernel, solution)}
    if not tiles:
        return
    inside: set[int] = set()  # accesses of loops and copies
    for node, ctx in nodes:
        if isinstance(node, ParallelFor):
            _of_loop(node, solution, tiles)
            inside.update(id(n) for n in walk(node))
        elif isinstance(node, Copy) and node.barrier is None and is_static(node.src, node.dst):
            _of_copy(node, solution, ctx, tiles)
            inside.add(id(node))
    for t in touches(kernel.body):
        tile = tiles.get(id(t.buffer))
        if tile is not None and id(t.stmt) not in inside:
            tile.fixed = True
    for tile in tiles.values():
        chosen = None if tile.fixed else _best(tile)
        if chosen is not None:
            yield tile.buffer, *chosen


def _free(kernel: Kernel, solution: Solution) -> Iterator[Buffer]:
    """Shared tiles of rows that no instruction and no program has laid out."""
    for n in walk(kernel.body):
        if not isinstance(n, Alloc):
            continue
        b = n.buffer
        alone = b.alias_of is None and not solution.views.others(b)
        known = b.layout is not None or solution.layout(b) is not None
        whole = b.dtype.bits in (8, 16, 32, 64)
        if b.scope is Scope.SHARED and b.rank > 1 and alone and whole and not known:
            yield b


def _of_loop(node: ParallelFor, solution: Solution, tiles: dict[int, _Tile]) -> None:
    spread = solution.loops.get(id(node))
    for n in walk(node.body):
        if not isinstance(n, Load | Store) or id(n.buffer) not in tiles:
            continue
        use = None if spread is None else _use(n.buffer, n.indices, node.vars, spread)
        tiles[id(n.buffer)].add(use, is_load=isinstance(n, Load))


def _of_copy(node: Copy, solution: Solution, ctx: LowerContext, tiles: dict[int, _Tile]) -> None:
    spread = solution.loops.get(id(node)) or spread_of(node, ctx)
    vars = tuple(Var(f"c{n}", lo=0, hi=e - 1) for n, e in enumerate(tile_extents(node.dst)))
    for region in (node.src, node.dst):
        tile = tiles.get(id(region.buffer))
        if tile is None:
            continue
        indices = region.index(expand(region, vars))
        # A single element is spread over one axis, or, where the solver decided, over none.
        points = vars or (Var("c0", lo=0, hi=0),) * len(spread.shape)
        use = _use(tile.buffer, indices, points, spread)
        tile.add(use, is_load=region is node.src)


def _use(
    buffer: Buffer, indices: Sequence[Expr], vars: Sequence[Var], spread: Fragment
) -> Use | None:
    """What the first warp does; None where an index depends on more than the loop's point (names
    that all threads have in common, such as a slot's number, count as 0)."""
    run = min(spread.contiguous(-1), VECTOR_BYTES * 8 // buffer.dtype.bits) if spread.shape else 1
    registers = np.arange(min(spread.num_registers, MOST_REGISTERS) // run * run)
    lanes = np.arange(min(spread.num_threads, WARP))
    point: Any = spread.element_of(lanes[None, :], registers[:, None])
    values = {id(v): np.asarray(p) for v, p in zip(vars, point, strict=True)}

    def leaf(e: Any) -> Array | None:
        return None if isinstance(e, Load) else values.get(id(e), np.asarray(0))

    found = [evaluated(i, leaf) for i in indices]
    known = [f for f in found if f is not None]
    if len(known) < len(found):
        return None
    shape = (len(registers), len(lanes))
    sizes = buffer.static_shape
    places = [np.broadcast_to(f, shape) % n for f, n in zip(known, sizes, strict=True)]
    while run > 1 and not _is_run(places, run):
        run //= 2
    return Use(tuple(p[::run] for p in places), run, False)


def _is_run(places: Sequence[Array], run: int) -> bool:
    """Whether every `run` registers of a thread are neighbours on the last axis, aligned."""
    first = [p[::run] for p in places]
    for n in range(run):
        here = [p[n::run] for p in places]
        if not (here[-1] == first[-1] + n).all():
            return False
        if any((a != b).any() for a, b in zip(here[:-1], first[:-1], strict=True)):
            return False
    return not (first[-1] % run).any()


def _best(tile: _Tile) -> tuple[SharedLayout, str] | None:
    """The layout with the fewest wavefronts, when it saves enough of them."""
    shape, bits = tile.buffer.static_shape, tile.buffer.dtype.bits
    plain = row_major(shape, bits)
    widest = max((u.vector for u in tile.uses), default=1) * bits // 8
    before = _count(plain, tile.uses)
    least = sum(u.indices[0].shape[0] for u in tile.uses)
    if not tile.uses or before <= least:
        return None
    best, after = plain, before
    for layout in _candidates(plain, widest):
        waves = _count(layout, tile.uses)
        if waves < after:
            best, after = layout, waves
    if after > before * WORTH:
        return None
    return best, (
        f"{_named(best)}: only threads touch it, and a warp's accesses take {after} wavefronts "
        f"instead of {before}"
    )


def _count(layout: SharedLayout, uses: Sequence[Use]) -> int:
    """Wavefronts of all uses."""
    width = layout.element_bits // 8
    total = 0
    for use in uses:
        at = np.asarray(layout.byte_offset_of(use.indices))
        total += int(np.sum(wavefronts(at, width * use.vector, load=use.is_load)))
    return total


def _candidates(plain: SharedLayout, widest: int) -> Iterator[SharedLayout]:
    """Layouts that keep accesses of `widest` bytes whole: XOR swizzles of the same size, then
    padded rows."""
    row = plain.cols * plain.element_bits // 8
    for panel in (128, 64, 32):
        if row % panel:
            continue
        for base in (b for b in (4, 3, 2) if 1 << b >= max(widest, plain.element_bits // 8)):
            bits = (panel >> base).bit_length() - 1
            for shift in range(bits, bits + 6):
                swizzle = Swizzle(bits, base, shift)
                fits = plain.rows * panel % swizzle.span == 0
                if fits and 1 << base << bits == panel:
                    yield SharedLayout(
                        plain.shape, plain.element_bits, swizzle, panel * 8 // plain.element_bits
                    )
    for pad in PADS:
        if (row + pad) % max(widest, 4) == 0 and pad * 8 % plain.element_bits == 0:
            yield padded(plain.shape, plain.element_bits, pad * 8 // plain.element_bits)


def _named(layout: SharedLayout) -> str:
    if layout.swizzle is None:
        return f"rows of {layout.row_pitch} elements"
    return f"{layout.swizzle.row}-byte swizzle of {1 << layout.swizzle.base}-byte chunks"
