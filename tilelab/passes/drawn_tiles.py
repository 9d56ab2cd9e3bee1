"""Tiles that blocks draw one after another, where tiles take different times. Hides the counter.

    producer:   tile = block, then blocks + (number drawn from the counter); publish it; load
    consumers:  wait for the tile's number; leave when there is no such tile; compute

A block that is done draws the next tile, whatever the others do: with the longest tiles first none
is left over (measured on an H200: 4 to 9% over tiles dealt out beforehand). The counter is
a workspace of the call, zero when its launch begins: launches, streams and replays of a graph
have one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilelab.dtypes import INT32
from tilelab.ir import (
    Alloc,
    Break,
    Buffer,
    For,
    If,
    Let,
    Load,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    binary,
)
from tilelab.passes.persist import DRAWN, Drawn, drawn_of
from tilelab.passes.ring import Ring, make_ring
from tilelab.passes.versions import versioned
from tilelab.thread.intrinsics.atomic import atomic
from tilelab.thread.intrinsics.barrier import MBARRIER_ARRIVE, MBARRIER_WAIT
from tilelab.thread.nodes import Invoke, Ref

SLOTS = 2  # the producer draws a tile while the consumers compute the one before


@dataclass(frozen=True)
class Draw:
    """The means of one kernel: a ring that carries numbers, and the producer's next number."""

    of: Drawn
    ring: Ring
    numbers: Buffer
    next: Buffer

    def allocations(self) -> list[Stmt]:
        """What the roles need, beside the ring's own."""
        return [Alloc(self.next, loc=self.ring.loop.loc)]


def make_draw(tiles: For | None, like: Ring, consumers: int) -> Draw | None:
    """The means to draw the tiles of a loop; None where they are dealt out."""
    of = drawn_of(tiles)
    if of is None or tiles is None:
        return None
    number = Buffer("next_tile", (1,), INT32, Scope.SHARED, loc=tiles.loc)
    slots = versioned(number, SLOTS)
    ring = make_ring(tiles, like.plan, (), "mbarrier_tile", like.thread, SLOTS, consumers)
    ring = replace(ring, slots={id(number): slots})
    return Draw(of, ring, slots, Buffer("drawn", (1,), INT32, Scope.LOCAL, loc=tiles.loc))


def computed_tiles(draw: Draw, tiles: For, body: Sequence[Stmt]) -> For:
    """A consumer's loop over the tiles that the producer draws."""
    ring, n, loc = draw.ring, tiles.var, tiles.loc
    arrived, number = (ring.full(n), ring.phase(n)), Var("number", lo=0)
    start = [
        Invoke(MBARRIER_WAIT, arrived, "the number of the next tile has come", loc=loc),
        Let(number, Load(draw.numbers, (ring.slot(n), as_expr(0))), loc=loc),
        Invoke(MBARRIER_ARRIVE, (ring.empty(n),), "the number has been read", loc=loc),
        *_unless_none(draw, tiles, number),
    ]
    return replace(tiles, attrs=_plain(tiles), body=Seq((*start, *body), loc=loc))


def loaded_tiles(draw: Draw, tiles: For, body: Sequence[Stmt]) -> list[Stmt]:
    """The producer's loop over the tiles that it draws."""
    ring, n, loc, of = draw.ring, tiles.var, tiles.loc, draw.of
    first, number = as_expr(0), Var("number", lo=0)
    free = (ring.empty(n), binary("^", ring.phase(n), 1))
    start = [
        Let(number, Load(draw.next, (first,)), loc=loc),
        Invoke(MBARRIER_WAIT, free, "the number before has been read", loc=loc),
        Store(draw.numbers, (ring.slot(n), first), number, loc=loc),
        Invoke(MBARRIER_ARRIVE, (ring.full(n),), "the number of the next tile", loc=loc),
        *_unless_none(draw, tiles, number),
    ]
    count = Var("count", lo=0)
    one = (Ref(of.counter, (first,)), as_expr(1))
    end = [
        Invoke(atomic("add", INT32), one, result=count, loc=loc),
        Store(draw.next, (first,), of.blocks + count, loc=loc),
    ]
    loop = replace(tiles, attrs=_plain(tiles), body=Seq((*start, *body, *end), loc=loc))
    return [Store(draw.next, (first,), of.block, loc=loc), loop]


def _unless_none(draw: Draw, tiles: For, number: Var) -> list[Stmt]:
    """Leave the loop when there is no tile of a number; else it is the tile's."""
    over = binary(">=", number, draw.of.total)
    leave = Seq((Break(loc=tiles.loc),), loc=tiles.loc)
    return [If(over, leave, loc=tiles.loc), Let(draw.of.tile, number, loc=tiles.loc)]


def _plain(tiles: For) -> tuple[tuple[str, object], ...]:
    return tuple(a for a in tiles.attrs if a[0] != DRAWN)


__all__ = ["Draw", "computed_tiles", "loaded_tiles", "make_draw"]
