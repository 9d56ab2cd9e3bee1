"""Draws the body of one kernel: tiles, and statements on them in loops and branches.

Hides how tiles come to exist when a statement wants one, what may still be added to a tile before
its sums would round, and which names each place sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from tests.fuzz.choices import Choices
from tests.fuzz.draw_scalars import Place, draw_condition, draw_value, inside
from tests.fuzz.program import Launch, Tensor
from tests.fuzz.scalars import Inexact, Value, is_float, literal, name
from tests.fuzz.tiles import (
    Statement,
    Tile,
    assign,
    branch,
    fitted,
    guard,
    let,
    parallel,
    store,
    tile,
)
from tests.fuzz.whole import Region, copy, fill, whole

TYPES = ("float32", "float16", "int32", "bfloat16", "int8", "float32", "float16", "uint8", "int16",
         "int64", "uint32", "float8_e4m3fn", "bool", "uint16", "float64")  # fmt: skip
EXTENTS = (16, 32, 64, 8, 48, 128, 24, 100, 33, 7, 12, 1)
MOST = 8192  # elements of a tile


class Block:
    """The kernel being drawn."""

    def __init__(self, c: Choices, tensors: list[Tensor], prefix: str = "") -> None:
        self.c = c
        self.prefix = prefix
        self.tensors = tensors
        self.inputs = [t.tile for t in tensors]
        self.dims = [c.pick(EXTENTS) for _ in range(3)]
        self.grid = (c.pick((1, 2, 3)), c.pick((1, 2)))
        self.threads = c.pick((128, 64, 32, 256, 96, 160))
        self.tiles: list[Tile] = []
        self.allocations: list[str] = []
        self.first: list[Statement] = []
        self.numbers = [name("bx", "int32", 0, self.grid[0] - 1),
                        name("by", "int32", 0, self.grid[1] - 1)]  # fmt: skip
        self.trips = 1
        self.pipelined = False
        self.count = 0

    def fresh(self, kind: str) -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{kind}{self.prefix}{self.count}"

    # ---- tiles --------------------------------------------------------------------------------

    def new_tile(self, shape: Sequence[int], dtype: str, scope: str, bound: int = 0,
                 zero: bool = False) -> Tile:  # fmt: skip
        """A tile that is filled before anything else runs."""
        made = tile(self.fresh("s" if scope == "shared" else "f"), shape, dtype, scope, bound)
        self.tiles.append(made)
        self.allocations.append(f'{made.name} = T.alloc_{scope}({made.spelled()}, "{dtype}")')
        inner, self.numbers = self.numbers, self.numbers[:2]
        if zero or self.c.chance(40):
            self.first.append(fill(whole(made), 0 if zero else self.c.below(2)))
        elif self.c.chance(50):
            self.first.append(self.elementwise(made, depth=2, plain=True))
        else:
            self.first.append(self.load_tile(made))
        self.numbers = inner
        return made

    def draw_tile(self) -> Tile:
        """A new tile of a drawn kind."""
        c = self.c
        rank = c.pick((2, 2, 1, 3))
        shape = [c.pick(self.dims) for _ in range(rank)]
        while _size(shape) > MOST:
            shape[shape.index(max(shape))] = 4
        return self.new_tile(shape, c.pick(TYPES), c.pick(("shared", "fragment")))

    def some_tile(self) -> Tile:
        """A tile that exists, or a new one."""
        return self.c.pick(self.tiles) if self.tiles and self.c.chance(80) else self.draw_tile()

    def place(self, **more: Any) -> Place:
        """What expressions see that all threads compute alike."""
        return Place(numbers=self.numbers, **more)

    @contextmanager
    def number(self, value: Value, trips: int = 1):
        """Inside, `value` is a name in use and statements run `trips` times as often."""
        self.numbers.append(value)
        before, self.trips = self.trips, self.trips * max(trips, 1)
        yield
        self.numbers.remove(value)
        self.trips = before

    # ---- copies -------------------------------------------------------------------------------

    def offset(self, extent: int, size: int) -> Value:
        """Where a region of `extent` elements begins on an axis of `size`: maybe near its end."""
        c = self.c
        form = c.below(5)
        if form < 2:
            return literal(c.below(max(size - extent, 0) + 1))
        if form == 2:
            return literal(c.below(size))
        number = c.pick([n for n in self.numbers if n.dtype == "int32"])
        scaled = Value(f"{number.text} * {extent}", lambda env: number.at(env) * extent, "int32",
                       number.lo * extent, number.hi * extent)  # fmt: skip
        return scaled if scaled.lo >= 0 else literal(0)

    def region(self, source: Tile, shape: Sequence[int]) -> Region:
        """A part of a tensor as large as a tile of this shape (of at most the tensor's rank)."""
        lead = len(source.shape) - len(shape)
        extents = (*(1,) * lead, *shape)
        kept = (*(False,) * lead, *(True,) * len(shape))
        starts = [
            self.offset(e, n) if k else inside(self.c, self.c.pick(self.numbers), n)
            for e, n, k in zip(extents, source.shape, kept, strict=True)
        ]
        # A base point of a tile of fewer axes means the axes that the language guesses.
        form = "slice" if lead else self.c.pick(("slice", "point"))
        return Region(source, tuple(starts), tuple(extents), kept, form)

    def load_tile(self, target: Tile, options: str = "") -> Statement:
        """A copy from a tensor, if one has the rank and values that fit."""
        fits = [t for t in self.inputs if len(t.shape) >= len(target.shape)
                and t.bound <= max(target.bound // 2, 1) and t.low >= target.low
                and _converts(t, target)]  # fmt: skip
        if not fits:
            return fill(whole(target), self.c.below(2))
        return copy(self.region(self.c.pick(fits), target.shape), whole(target), options)

    def move(self) -> Statement:
        """A copy between tiles, or of a part of one."""
        c, target = self.c, self.some_tile()
        twins = [t for t in self.tiles if t.shape == target.shape and t is not target
                 and t.bound <= target.bound and t.low >= target.low
                 and _converts(t, target)]  # fmt: skip
        if c.chance(30) or not twins:
            return self.load_tile(target)
        source = c.pick(twins)
        if c.chance(70):
            return copy(whole(source), whole(target))
        extents = [1 + c.below(n) for n in target.shape]
        sides = [Region(t, tuple(literal(c.below(n - e + 1)) for n, e in
                                 zip(t.shape, extents, strict=True)),
                        tuple(extents), (True,) * len(extents))
                 for t in (source, target)]  # fmt: skip
        return copy(*sides)

    # ---- elements -----------------------------------------------------------------------------

    def elementwise(self, target: Tile, depth: int = 3, plain: bool = False) -> Statement:
        """A T.Parallel loop that writes a tile, all of it or a part."""
        c = self.c
        extents = list(target.shape)
        starts = [0] * len(extents)
        if not plain and c.chance(15):
            extents = [1 + c.below(n) for n in extents]
            if target.scope == "shared" or c.chance(20):
                starts = [c.below(n - e + 1) for n, e in zip(target.shape, extents, strict=True)]
        names = [self.fresh("ijl"[at]) for at in range(len(extents))]
        axes = [(name(n, "int32", 0, e - 1), e) for n, e in zip(names, extents, strict=True)]
        indices = [_shifted(v, s) for (v, _), s in zip(axes, starts, strict=True)]
        known = [t for t in self.tiles if t is not target] + self.inputs
        place = self.place(axes=axes, tiles=known if not plain else self.inputs,
                           fixed={target.name: indices})  # fmt: skip
        if not plain and starts == [0] * len(starts):
            place = self.place(axes=axes, tiles=[*known, target], fixed=place.fixed)
        body = self.element_body(target, indices, place, depth, plain)
        return parallel(list(zip(names, extents, strict=True)), body)

    def element_body(self, target: Tile, indices: Sequence[Value], place: Place, depth: int,
                     plain: bool) -> list[Statement]:  # fmt: skip
        """Lets, a store, and maybe a condition around it."""
        c, body = self.c, list[Statement]()
        if not plain and c.chance(25):
            value = draw_value(c, place, 2)
            if not value.literal:
                named = self.fresh("v")
                body.append(let(named, value))
                lets = [Value(named, _named(named), value.dtype, value.lo, value.hi, value.frac)]
                place = Place(place.numbers, place.axes, place.tiles, place.fixed, lets)
        written = self.stored(target, indices, place, depth)
        if plain or not c.chance(25):
            return [*body, written]
        other = [self.stored(target, indices, place, 1)] if c.chance(40) else []
        return [*body, guard(draw_condition(c, place, 2), [written], other)]

    def stored(self, target: Tile, indices: Sequence[Value], place: Place, depth: int) -> Statement:
        """A store of a drawn value that the target holds."""
        for _ in range(3):
            try:
                value = draw_value(self.c, place, depth)
                if target.dtype == "bool" and value.dtype != "bool":
                    value = draw_condition(self.c, place, depth)
                return store(target, indices, _fits(fitted(value, target), target))
            except Inexact:
                continue
        return store(target, indices, literal(self.c.below(2)))

    def pick_uniform(self, depth: int) -> Value:
        """An int32 that all threads compute alike."""
        value = draw_value(self.c, self.place(), depth)
        return self.c.pick(self.numbers) if value.literal or is_float(value.dtype) else value

    def launch(self, body: Sequence[Statement]) -> Launch:
        """The kernel."""
        return Launch(self.grid, self.threads, self.allocations, self.tiles,
                      [*self.first, *body])  # fmt: skip

    def set_number(self, variable: Value) -> Statement:
        """An assignment to a T.alloc_var variable, inside its bounds."""
        holder = tile(variable.text, (), variable.dtype, "var", int(variable.hi))
        for _ in range(3):
            try:
                value = draw_value(self.c, self.place(), 2)
                return assign(variable.text, variable.dtype, _fits(fitted(value, holder), holder))
            except Inexact:
                continue
        return assign(variable.text, variable.dtype, literal(1))

    def chosen(self, body: Sequence[Statement], other: Sequence[Statement]) -> Statement:
        """A branch that all threads take alike."""
        return branch(draw_condition(self.c, self.place(), 1), body, other)


def _shifted(v: Value, start: int) -> Value:
    if not start:
        return v
    return Value(f"{v.text} + {start}", lambda env: v.at(env) + start, v.dtype, v.lo + start,
                 v.hi + start)  # fmt: skip


def _named(named: str) -> Any:
    return lambda env: env[named]


def _size(shape: Sequence[int]) -> int:
    total = 1
    for n in shape:
        total *= n
    return total


def _converts(source: Tile, target: Tile) -> bool:
    return source.dtype != "bool" or target.dtype != "bool" or source.dtype == target.dtype


def _fits(value: Value, target: Tile) -> Value:
    """Refuse what a store would wrap: a negative number in an unsigned tile."""
    if value.lo < target.low or value.hi > target.bound:
        if target.dtype == "bool":
            return value
        raise Inexact("does not fit")
    return value
