"""Draws scalar expressions over the names that a place of a program sees.

Hides which index expressions stay inside a tile, and how an operation that would not be exact is
replaced by one that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fuzz.choices import Choices
from tests.fuzz.scalars import (
    COMPARISONS,
    FLOATS,
    INTS,
    Inexact,
    Value,
    binary,
    both,
    cast,
    halved,
    is_float,
    literal,
    select,
    unary,
)
from tests.fuzz.tiles import Tile, load

ARITHMETIC = ("+", "-", "*", "T.min", "T.max", "//", "%", "&", "|", "^", "<<", ">>")


@dataclass(frozen=True)
class Place:
    """What an expression may use: numbers that all threads agree on, the axes of the T.Parallel
    loop around it with their extents, and tiles. `fixed`: tiles that the loop writes, which may
    be read at these indices only."""

    numbers: Sequence[Value] = ()
    axes: Sequence[tuple[Value, int]] = ()
    tiles: Sequence[Tile] = ()
    fixed: dict[str, Sequence[Value]] = field(default_factory=dict)
    lets: Sequence[Value] = ()


def draw_value(c: Choices, place: Place, depth: int) -> Value:
    """An expression of at most `depth` operations in each other."""
    if depth <= 0 or c.chance(15):
        return draw_leaf(c, place)
    form = c.below(12)
    a = draw_value(c, place, depth - 1)
    try:
        if form < 6:
            return _arithmetic(c, place, a, depth)
        if form < 8:
            cond = draw_condition(c, place, depth - 1)
            return select(cond, a, draw_value(c, place, depth - 1), c.chance(40))
        if form == 8:
            return unary(c.pick(("-", "abs", "~", "floor", "ceil", "trunc")), a)
        if form == 9:
            return cast(a, c.pick((*INTS, *FLOATS)))
        if form == 10:
            return halved(a, 1 + c.below(2))
        return cast(draw_condition(c, place, depth - 1), c.pick(("int32", "float32")))
    except Inexact:
        return a


def _arithmetic(c: Choices, place: Place, a: Value, depth: int) -> Value:
    op = c.pick(ARITHMETIC)
    if op in ("//", "%"):
        divisor = literal(c.pick((2, 3, 4, 7, 8, 16, -3, -4)))
        if c.chance(25):
            divisor = binary("T.max", draw_leaf(c, place), literal(1 + c.below(3)))
        return binary(op, a, divisor)
    if op in ("<<", ">>"):
        return binary(op, a, literal(c.below(5)))
    b = draw_value(c, place, depth - 1)
    return binary(op, a, b) if c.chance(60) else binary(op, b, a)


def draw_condition(c: Choices, place: Place, depth: int) -> Value:
    """A truth value."""
    form = c.below(8) if depth > 0 else 0
    if form < 5:
        a, b = draw_value(c, place, depth - 1), draw_value(c, place, depth - 1)
        try:
            return binary(c.pick(COMPARISONS), a, b)
        except Inexact:
            return _plain_condition(c, place)
    first = draw_condition(c, place, depth - 1)
    if form == 7:
        return unary("not", first)
    return both(c.pick(("and", "or")), first, draw_condition(c, place, depth - 1))


def _plain_condition(c: Choices, place: Place) -> Value:
    known = [*place.numbers, *(v for v, _ in place.axes)]
    return binary(c.pick(COMPARISONS), c.pick(known), literal(c.below(9)))


def draw_leaf(c: Choices, place: Place) -> Value:
    """A number, a variable or an element."""
    form = c.below(10)
    try:
        if form < 5 and place.tiles:
            return draw_load(c, place, c.pick(place.tiles))
        if form == 5 and place.lets:
            return c.pick(place.lets)
        if form < 8 and place.axes:
            return c.pick(place.axes)[0]
        if form == 8 and place.numbers:
            return c.pick(place.numbers)
    except Inexact:
        pass
    if c.chance(20):
        return literal(c.pick((0.5, 1.5, -2.0, 3.0)))
    return literal(c.pick((0, 1, 2, 3, 5, 7, 12, -1, -5)))


def draw_load(c: Choices, place: Place, tile: Tile) -> Value:
    """An element of a tile, at indices that exist (a tensor may be read past its end)."""
    if tile.name in place.fixed:
        return load(tile, place.fixed[tile.name])
    indices = [draw_index(c, place, n, tile) for n in tile.shape]
    return load(tile, indices)


def draw_index(c: Choices, place: Place, extent: int, tile: Tile) -> Value:
    """An index into an axis of `extent` elements."""
    fits = [v for v, n in place.axes if n <= extent]
    if tile.scope == "fragment" and fits and c.chance(70):
        return c.pick(fits)
    form = c.below(8)
    if fits and form < 4:
        return c.pick(fits)
    if fits and form == 4:
        return binary("-", literal(extent - 1), c.pick(fits))
    if form == 5 and (place.axes or place.numbers):
        value = draw_value(c, Place(place.numbers, place.axes), 2)
        if not is_float(value.dtype) and not value.literal and value.dtype != "bool":
            return inside(c, value, extent)
    known = [v for v in place.numbers if v.dtype == "int32"]
    if form == 6 and known:
        return inside(c, c.pick(known), extent)
    return literal(c.below(extent))


def inside(c: Choices, value: Value, extent: int) -> Value:
    """`value` brought into 0..extent-1 (an index of at least 32 bits)."""
    if value.dtype not in ("int32", "int64"):
        value = cast(value, "int32")
    if value.lo >= 0 and value.hi < extent:
        return value
    if c.chance(50):
        return binary("T.min", binary("T.max", value, literal(0)), literal(extent - 1))
    return binary("%", value, literal(extent)) if extent > 1 else literal(0)
