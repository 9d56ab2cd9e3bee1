"""Draws kernels over tensors of dynamic sizes: row statistics, then a second pass that uses them.

As softmax, normalisations and scans of rows are written: a loop over the columns in tiles, a
reduction carried from tile to tile, and a private loop for each element.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.fuzz.choices import Choices
from tests.fuzz.draw_scalars import Place, draw_condition, draw_value
from tests.fuzz.program import SENTINEL, Launch, Program, Tensor
from tests.fuzz.scalars import (
    STORED,
    Env,
    Inexact,
    Value,
    as_type,
    binary,
    cast,
    literal,
    name,
    numpy_type,
    select,
)
from tests.fuzz.tiles import (
    SHAPE,
    Statement,
    Tile,
    assign,
    atomic_add,
    fitted,
    guard,
    load,
    loop,
    parallel,
    store,
    tile,
)
from tests.fuzz.whole import Region, copy, fill, reduce, whole

TYPES = ("float32", "float16", "int32", "bfloat16", "int8", "uint8", "int64", "float64")


class Rows:
    """One kernel over the rows of A: (m, n), both maybe dynamic."""

    def __init__(self, c: Choices) -> None:
        self.c = c
        self.rows, self.columns = c.pick((16, 32, 8, 64, 1, 5)), c.pick((64, 32, 128, 16, 100, 24))
        self.m = 1 + c.below(3 * self.rows)
        self.n = 1 + c.below(3 * self.columns)
        self.dynamic = c.chance(70)
        self.threads = c.pick((128, 64, 256, 32))
        self.stages = c.below(4)
        self.tiles: list[Tile] = []
        self.allocations: list[str] = []
        self.tensors: list[Tensor] = []
        self.count = 0
        self.a = self.tensor("A", "mn", c.pick(TYPES), 3)
        self.blocks, self.steps = -(-self.m // self.rows), -(-self.n // self.columns)
        self.bx = name("bx", "int32", 0, self.blocks - 1)
        sizes = [name("m", "int32", 1, 512), name("n", "int32", 1, 512)]
        self.numbers = [self.bx, *sizes] if self.dynamic else [self.bx]

    def tensor(self, named: str, axes: str, dtype: str, most: int, out: bool = False) -> Tile:
        """A tensor over rows, columns or both."""
        shape = tuple({"m": self.m, "n": self.n}[a] for a in axes)
        made = tile(named, shape, dtype, "global", most)
        made = replace(made, given=tuple(axes)) if self.dynamic else made
        low = 0 if dtype.startswith("u") else -most
        held = min(SENTINEL, STORED[dtype])
        given = Tensor(made, held, held) if out else Tensor(made, low, most, len(self.tensors))
        self.tensors.append(given)
        return made

    def alloc(self, shape: tuple[int, ...], dtype: str, scope: str, bound: int = 0) -> Tile:
        """A tile of the kernel."""
        self.count += 1
        made = tile(f"t{self.count}", shape, dtype, scope, bound)
        self.tiles.append(made)
        self.allocations.append(f'{made.name} = T.alloc_{scope}({made.spelled()}, "{dtype}")')
        return made

    def axes(self, shape: tuple[int, ...]) -> tuple[list[tuple[str, int]], list[Value]]:
        """Names of a loop over a tile."""
        self.count += 1
        names = [f"{'ij'[a]}{self.count}" for a in range(len(shape))]
        ranges = list(zip(names, shape, strict=True))
        return ranges, [name(x, "int32", 0, e - 1) for x, e in ranges]

    def value(self, target: Tile, place: Place, depth: int = 2) -> Value:
        """A drawn value that the target holds."""
        for _ in range(4):
            try:
                made = fitted(draw_value(self.c, place, depth), target)
                if made.lo >= target.low and made.hi <= target.bound:
                    return made
            except Inexact:
                continue
        return literal(1)

    # ---- a pass over the columns ----------------------------------------------------------------

    def first_pass(self, total: Tile, kind: str, k: str) -> Statement:
        """Statistics of each row over all columns."""
        c, step = self.c, name(k, "int32", 0, self.steps - 1)
        held = self.alloc((self.rows, self.columns), self.a.dtype,
                          c.pick(("shared", "fragment")), 3)  # fmt: skip
        body = [copy(self.part(step), whole(held))]
        source = held
        if c.chance(60):
            source = self.alloc(held.shape, total.dtype, "fragment", 16)
            ranges, axes = self.axes(held.shape)
            column = binary("+", _times(step, self.columns), axes[1])
            place = Place(self.numbers, list(zip(axes, held.shape, strict=True)), [held, self.a],
                          {held.name: axes})  # fmt: skip
            value = self.value(source, place)
            if c.chance(40):
                zero = as_type(literal(0), source.dtype)
                value = select(binary("<", column, self.end()), as_type(value, source.dtype), zero,
                               c.chance(30))  # fmt: skip
            body.append(parallel(ranges, [store(source, axes, value)]))
        body.append(reduce(kind, source, total, 1, False))
        return self.over_columns(k, body)

    def end(self) -> Value:
        """The number of columns."""
        return name("n", "int32", 1, 512) if self.dynamic else literal(self.n)

    def part(self, step: Value) -> Region:
        """The tile of A at this block's rows and a step's columns."""
        starts = (_times(self.bx, self.rows), _times(step, self.columns))
        form = self.c.pick(("point", "slice"))
        return Region(self.a, starts, (self.rows, self.columns), (True, True), form)

    def over_columns(self, k: str, body: list[Statement]) -> Statement:
        """A loop over the tiles of a row."""
        count = f"T.ceildiv(n, {self.columns})" if self.dynamic else str(self.steps)
        heads = (f"T.Pipelined({count}, num_stages={self.stages})", f"T.serial({count})")
        return loop(k, self.c.pick(heads), lambda env: range(self.steps), body)

    def second_pass(self, total: Tile, out: Tile, k: str) -> Statement:
        """Every element again, with its row's statistics."""
        c, step = self.c, name(k, "int32", 0, self.steps - 1)
        body: list[Statement] = []
        ranges, axes = self.axes((self.rows, self.columns))
        row, column = (
            binary("+", _times(b, e), a)
            for b, e, a in ((self.bx, self.rows, axes[0]), (step, self.columns, axes[1]))
        )
        known = [(a, e) for a, (_, e) in zip(axes, ranges, strict=True)]
        direct = load(self.a, [row, column])
        lets = [direct, load(total, axes[:1])]
        if c.chance(50):
            held = self.alloc((self.rows, self.columns), self.a.dtype, "shared", 3)
            body.append(copy(self.part(step), whole(held)))
            lets.append(load(held, axes))
        place = Place([*self.numbers, step], known, (), {}, lets)
        value = self.value(out, place, 3)
        written = store(out, [row, column], as_type(value, out.dtype))
        if c.chance(30):
            written = guard(draw_condition(c, place, 1), [written])
        if c.chance(35):
            staged = self.alloc(
                (self.rows, self.columns), out.dtype, c.pick(("shared", "fragment"))
            )
            body.append(parallel(ranges, [store(staged, axes, value)]))
            starts = (_times(self.bx, self.rows), _times(step, self.columns))
            target = Region(out, starts, (self.rows, self.columns), (True, True), "point")
            body.append(copy(whole(staged), target))
        else:
            body.append(parallel(ranges, [written]))
        return self.over_columns(k, body)

    def private(self, total: Tile) -> list[Statement]:
        """For each row a variable of its own, filled by a loop over some columns."""
        named = "mine"
        kind = self.c.pick(("int32", "float32"))
        self.allocations.append(f'{named} = T.alloc_var("{kind}")')
        ranges, axes = self.axes((self.rows,))
        trips = 1 + self.c.below(6)
        k = name("p", "int32", 0, trips - 1)
        row = binary("+", _times(self.bx, self.rows), axes[0])
        element = load(self.a, [row, k])
        wide = element if element.dtype == kind else cast(element, kind)
        mine = name(named, kind, -64, 64)
        joined = binary(self.c.pick(("+", "T.max", "-")), mine, wide)
        inner = loop("p", f"T.serial({trips})", lambda env: range(trips),
                     [assign(named, kind, joined)])  # fmt: skip
        summed = binary("T.max", binary("T.min", mine, literal(9)), literal(-9))
        last = store(total, axes, summed)
        return [parallel(ranges, [assign_each(named, kind, 0), inner, last])]

    def program(self) -> Program:
        """The whole program."""
        c = self.c
        kinds = ("sum", "max", "min", "absmax")
        total = self.alloc((self.rows,), c.pick(("float32", "int32")), "fragment", 1 << 16)
        body: list[Statement] = [fill(whole(total), c.below(3))]
        if c.chance(30):
            body += self.private(total)
        body.append(self.first_pass(total, c.pick(kinds), "k"))
        if c.chance(50):
            ranges, axes = self.axes((self.rows,))
            place = Place(self.numbers, [(axes[0], self.rows)], [total], {total.name: axes})
            body.append(parallel(ranges, [store(total, axes, self.value(total, place))]))
        if c.chance(80):
            out = self.tensor("O", "mn", c.pick(TYPES), STORED["int8"], True)
            body.append(self.second_pass(total, out, "q"))
        sums = self.tensor("S", "m", total.dtype, 1 << 20, True)
        region = Region(sums, (_times(self.bx, self.rows),), (self.rows,), (True,), "slice")
        body.append(copy(whole(total), region))
        if c.chance(30):
            body += self.counted(total)
        heads = (f"T.ceildiv(m, {self.rows})",) if self.dynamic else ()
        launch = Launch((self.blocks,), self.threads, self.allocations, self.tiles, body, heads)
        sizes = {"m": self.m, "n": self.n} if self.dynamic else {}
        return Program(self.tensors, [launch], sizes)

    def counted(self, total: Tile) -> list[Statement]:
        """How many rows have which rest: sums by T.atomic_add."""
        spread = tile("H", (5,), "int32", "global")
        self.tensors.append(Tensor(spread, 0, 0))
        ranges, axes = self.axes((self.rows,))
        kept = load(total, axes)
        whole_number = kept if kept.dtype == "int32" else cast(kept, "int32")
        spot = binary("%", whole_number, literal(5))
        return [parallel(ranges, [atomic_add(spread, [spot], as_type(literal(1), "int32"))])]


def assign_each(named: str, dtype: str, value: int) -> Statement:
    """A variable of each element of a T.Parallel loop."""

    def run(env: Env) -> None:
        env[named] = np.full(env[SHAPE], value, numpy_type(dtype))

    return Statement((f"{named} = {value}",), run)


def _times(number: Value, factor: int) -> Value:
    return binary("*", number, literal(factor)) if factor != 1 else number


def draw_rows(c: Choices) -> Program:
    """A kernel over rows."""
    return Rows(c).program()
