"""Draws matrix products as users write them: tiles through a pipelined loop, an operand that is
converted or scaled on its way, an epilogue, and several ways to spread tiles over the grid.

Hides how operands of drawn types come to be exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.fuzz.choices import Choices
from tests.fuzz.program import SENTINEL, Launch, Program, Tensor
from tests.fuzz.scalars import STORED, Env, Value, as_type, binary, cast, literal, name
from tests.fuzz.tiles import (
    Statement,
    Tile,
    atomic_add,
    branch,
    guard,
    let,
    load,
    loop,
    parallel,
    store,
    tile,
)
from tests.fuzz.whole import Region, copy, fill, gemm, whole

KINDS = (("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32"),
         ("float32", "float32"), ("float8_e4m3fn", "float32"), ("float16", "float16"),
         ("uint8", "int32"), ("float64", "float64"))  # fmt: skip
TILES = (64, 32, 16, 128, 48, 80, 96, 24, 40, 8)


def times(number: Value, factor: int) -> Value:
    """`number * factor`."""
    return binary("*", number, literal(factor)) if factor != 1 else number


def block_of(source: Tile, rows: Value, columns: Value, shape: tuple[int, int], form: str,
             lead: Value | None = None) -> Region:  # fmt: skip
    """A part of a matrix, or of one matrix of a batch."""
    front = () if lead is None else (lead,)
    return Region(
        source, (*front, rows, columns), (*(1,) * len(front), *shape),
        (*(False,) * len(front), True, True), form,
    )  # fmt: skip


@dataclass
class Operands:
    """Sizes, tensors and tiles of one drawn product, and how its operands are filled."""

    c: Choices

    def __post_init__(self) -> None:
        c = self.c
        self.dtype, self.acc = c.pick(KINDS)
        self.tile = tuple(c.pick(TILES) for _ in range(3))
        if self.acc == "float16":
            self.tile = (*self.tile[:2], min(self.tile[2], 32))
        if self.dtype == "float64":
            self.tile = tuple(min(n, 32) for n in self.tile)
        m, n, k = self.tile
        self.sizes = (self._size(m, 2), self._size(n, 2), self._size(k, 4 if k < 64 else 3))
        self.ta, self.tb = c.chance(30), c.chance(45)
        self.batch = c.pick((0, 0, 2))
        self.threads = c.pick((128, 256, 64, 32, 96))
        self.stages = c.below(5)
        self.form = c.pick(("point", "slice"))
        self.a: Tile
        self.b: Tile
        self.fill_a: Any
        self.fill_b: Any
        self.sums: Tile
        self.out: Tile
        self.tensors: list[Tensor] = []
        self.tiles: list[Tile] = []
        self.allocations: list[str] = []
        self.grid_form = c.pick(("plain", "swizzle", "persistent", "split", "uneven"))
        self.dynamic: dict[str, int] = {}
        if self.grid_form in ("plain", "swizzle") and c.chance(35):
            self.dynamic = dict(zip("mnk", self.sizes, strict=True))

    def _size(self, step: int, most: int) -> int:
        c = self.c
        tiles = 1 + c.below(most)
        return tiles * step if c.chance(50) else max(tiles * step - c.below(step), 1)

    def global_tile(self, named: str, shape: tuple[int, ...], axes: str, dtype: str, most: int
                    ) -> Tile:  # fmt: skip
        """A tensor whose last axes are called `axes`: letters that are sizes when dynamic."""
        made = tile(named, shape, dtype, "global", most)
        if not self.dynamic:
            return made
        given = (*map(str, shape[: len(shape) - len(axes)]), *axes)
        return replace(made, given=given)

    def tensor(self, named: str, shape: tuple[int, ...], axes: str, dtype: str, most: int) -> Tile:
        """An input of whole numbers from -most to most (0 to most when unsigned)."""
        low = 0 if dtype.startswith("u") else -most
        made = self.global_tile(named, shape, axes, dtype, most)
        self.tensors.append(Tensor(made, low, most, len(self.tensors)))
        return made

    def alloc(self, named: str, shape: tuple[int, ...], dtype: str, scope: str, bound: int) -> Tile:
        """A tile of the kernel."""
        made = tile(named, shape, dtype, scope, bound)
        self.tiles.append(made)
        self.allocations.append(f'{named} = T.alloc_{scope}({made.spelled()}, "{dtype}")')
        return made

    def shape_of(self, axes: str) -> tuple[int, ...]:
        """The extents of a matrix, or of a batch of them."""
        sizes = dict(zip("mnk", self.sizes, strict=True))
        shape = tuple(sizes[a] for a in axes)
        return (self.batch, *shape) if self.batch else shape

    # ---- operands -----------------------------------------------------------------------------

    def operand(
        self, named: str, axes: str, tiles: tuple[int, int], fragment: bool
    ) -> tuple[Any, Tile]:
        """A tensor and the tile that T.gemm reads: a function from offsets to the statements that
        fill it, and the tile."""
        c = self.c
        how = c.pick(("plain", "plain", "cast", "scaled", "fragment"))
        most = 1 if self.acc == "float16" else 3
        stored = self.dtype
        if how == "cast" and self.dtype in ("float16", "bfloat16", "float32"):
            stored = c.pick(("int8", "uint8", "float32", "float16"))
        source = self.tensor(named, self.shape_of(axes), axes, stored, most)
        first = self.alloc(f"{named}_shared", tiles, stored, "shared", most)
        if how == "plain" or (how == "cast" and stored == self.dtype):
            return self._load(source, [first], []), first
        scope = "fragment" if fragment and (how == "fragment" or c.chance(50)) else "shared"
        last = self.alloc(f"{named}_operand", tiles, self.dtype, scope, 2 * most)
        if how == "fragment":
            return self._load(source, [first, last], []), last
        return self._load(source, [first], [self._convert(named, first, last, how)]), last

    def _load(self, source: Tile, tiles: list[Tile], then: list[Statement]) -> Any:
        first, rest = tiles[0], tiles[1:]
        lead = name("bz", "int32", 0, self.batch - 1) if self.batch else None

        def fills(rows: Value, columns: Value) -> list[Statement]:
            shape = (first.shape[0], first.shape[1])
            region = block_of(source, rows, columns, shape, self.form, lead)
            moved = [copy(region, whole(first))]
            moved += [copy(whole(first), whole(t)) for t in rest]
            return [*moved, *then]

        return fills

    def _convert(self, named: str, first: Tile, last: Tile, how: str) -> Statement:
        names = (f"i{named}", f"j{named}")
        axes = [name(n, "int32", 0, e - 1) for n, e in zip(names, first.shape, strict=True)]
        value = cast(load(first, axes), self.dtype)
        if how == "scaled" and not self.dtype.startswith(("u", "float8")):
            value = binary("*", value, literal(2 if self.c.chance(50) else -1))
        return parallel(list(zip(names, first.shape, strict=True)), [store(last, axes, value)])


class Sums(Operands):
    """The loop over the depth, and what becomes of its sums."""

    def tile_of(self, by: Value, bx: Value, first: Value | None, trips: Any) -> list[Statement]:
        """The sums of one tile: `trips` is (text, function of the environment, largest)."""
        c = self.c
        (m, n, k), acc = self.tile, self.sums
        ko = name("ko", "int32", 0, 8)
        step = ko if first is None else binary("+", first, ko)
        a_at, b_at = (times(by, m), times(step, k)), (times(step, k), times(bx, n))
        fills = self.fill_a(*(reversed(a_at) if self.ta else a_at))
        fills += self.fill_b(*(reversed(b_at) if self.tb else b_at))
        policy = c.pick(("", "FullRow", "FullCol", "Square"))
        options = f", policy=T.GemmWarpPolicy.{policy}" if policy else ""
        body = [*fills, self._where(gemm(self.a, self.b, acc, self.ta, self.tb, options), ko)]
        if c.chance(15):
            body += [self._each(acc, lambda v: binary("+", v, literal(1)), "u")]
        text, count, _ = trips
        head = f"T.Pipelined({text}, num_stages={self.stages})"
        return [
            fill(whole(acc), 0), loop("ko", head, lambda env: range(count(env)), body),
            *self.epilogue(acc, by, bx),
        ]  # fmt: skip

    def _where(self, product: Statement, ko: Value) -> Statement:
        """The product in the loop's body, or in a statement of it."""
        where = self.c.pick(("body", "body", "body", "branch", "loop"))
        if where == "branch":
            return branch(binary("!=", binary("%", ko, literal(3)), literal(1)), [product])
        if where == "loop" and self.acc != "float16":
            return loop("again", "T.serial(2)", lambda env: range(2), [product])
        return product

    def _each(self, target: Tile, function: Any, suffix: str) -> Statement:
        names = (f"i{suffix}", f"j{suffix}")
        axes = [name(x, "int32", 0, e - 1) for x, e in zip(names, target.shape, strict=True)]
        value = function(load(target, axes))
        return parallel(list(zip(names, target.shape, strict=True)), [store(target, axes, value)])

    def epilogue(self, acc: Tile, by: Value, bx: Value) -> list[Statement]:
        """Bias, scale, a clamp below, and the way out."""
        c, made = self.c, list[Statement]()
        (m, n, _), names = self.tile, ("ie", "je")
        axes = [name(x, "int32", 0, e - 1) for x, e in zip(names, acc.shape, strict=True)]
        value = load(acc, axes)
        for kind in [k for k in ("bias", "row", "relu", "twice", "residual") if c.chance(25)]:
            value = self._after(kind, value, axes, by, bx)
        if value.text != load(acc, axes).text:
            value = Value(value.text, value.at, value.dtype, -acc.bound // 2, acc.bound // 2)
            made.append(parallel(list(zip(names, acc.shape, strict=True)),
                                 [store(acc, axes, value)]))  # fmt: skip
        return made + self.way_out(acc, by, bx)

    def _after(self, kind: str, value: Value, axes: list[Value], by: Value, bx: Value) -> Value:
        m, n, _ = self.tile
        column, row = binary("+", times(bx, n), axes[1]), binary("+", times(by, m), axes[0])
        most = 256 if self.acc == "float16" else 1 << 18
        bound = Value(value.text, value.at, value.dtype, -most, most)
        if kind == "bias":
            return binary("+", bound, self._element("Bias", "n", [column]))
        if kind == "row":
            return binary("*", bound, self._element("Rows", "m", [row]))
        if kind == "residual":
            return binary("-", bound, self._element("Rest", "mn", [row, column]))
        if kind == "relu":
            return binary("T.max", bound, literal(0))
        return binary("*", bound, literal(2))

    def _element(self, named: str, axes: str, indices: list[Value]) -> Value:
        known = [t.tile for t in self.tensors if t.tile.name == named]
        kind = self.acc if self.c.chance(50) or self.acc == "int32" else "float16"
        sizes = dict(zip("mnk", self.sizes, strict=True))
        shape = tuple(sizes[a] for a in axes)
        source = known[0] if known else self.tensor(named, shape, axes, kind, 2)
        return load(source, indices)

    def way_out(self, acc: Tile, by: Value, bx: Value) -> list[Statement]:
        """The sums into C: straight, through a tile, by a loop, or added to what is there."""
        c = self.c
        (m, n, _), lead = self.tile, (name("bz", "int32", 0, self.batch - 1),) * bool(self.batch)
        rows, columns = times(by, m), times(bx, n)
        target = block_of(self.out, rows, columns, (m, n), self.form, lead[0] if lead else None)
        how = c.below(4) if self.grid_form != "split" else 3
        if how == 1:
            staged = self.alloc("C_shared", (m, n), self.out.dtype, "shared", 1 << 20)
            return [copy(whole(acc), whole(staged)), copy(whole(staged), target)]
        if how < 2:
            return [copy(whole(acc), target)]
        names = ("io", "jo")
        axes = [name(x, "int32", 0, e - 1) for x, e in zip(names, acc.shape, strict=True)]
        row, column = binary("+", rows, axes[0]), binary("+", columns, axes[1])
        value, spot = load(acc, axes), [*lead, row, column]
        written = store(self.out, spot, as_type(value, self.out.dtype))
        if self.grid_form == "split":
            written = atomic_add(self.out, spot, value)
        size = name("m", "int32", 1, 1 << 12) if self.dynamic else literal(self.sizes[0])
        inside = binary("<", row, size)
        body = [guard(inside, [written])] if c.chance(30) else [written]
        return [parallel(list(zip(names, acc.shape, strict=True)), body)]


class Product(Sums):
    """The whole program: tiles spread over the grid in one of several ways."""

    def program(self) -> Program:
        """The whole program."""
        (m, n, k), (rows, columns, depth) = self.tile, self.sizes
        a_axes, a_tile = ("km", (k, m)) if self.ta else ("mk", (m, k))
        b_axes, b_tile = ("nk", (n, k)) if self.tb else ("kn", (k, n))
        self.fill_a, self.a = self.operand("A", a_axes, a_tile, True)
        self.fill_b, self.b = self.operand("B", b_axes, b_tile, False)
        self.sums = self.alloc("acc", (m, n), self.acc, "fragment", STORED[self.acc])
        out = self.acc if self.acc != "float32" or self.grid_form == "split" else (
            self.c.pick(("float32", "float32")))  # fmt: skip
        self.out = self.global_tile("C", self.shape_of("mn"), "mn", out, 1 << 20)
        self.tensors.append(Tensor(self.out, *(((0,) * 2) if self.grid_form == "split" else
                                               (SENTINEL, SENTINEL))))  # fmt: skip
        across, down, steps = -(-columns // n), -(-rows // m), -(-depth // k)
        grid, body = getattr(self, f"_{self.grid_form}")(across, down, steps)
        if self.batch:
            grid = (*grid, *(1,) * (2 - len(grid)), self.batch)
        heads = list(map(str, grid))
        if self.dynamic:
            heads[:2] = f"T.ceildiv(n, {n})", f"T.ceildiv(m, {m})"
        launch = Launch(grid, self.threads, self.allocations, self.tiles, body, heads)
        roles = {} if self.c.chance(75) else {"tl.disable_warp_specialized": True}
        return Program(self.tensors, [launch], self.dynamic, configs=roles)

    def _plain(self, across: int, down: int, steps: int) -> tuple[tuple[int, ...], Any]:
        by, bx = name("by", "int32", 0, down - 1), name("bx", "int32", 0, across - 1)
        text = f"T.ceildiv(k, {self.tile[2]})" if self.dynamic else str(steps)
        return (across, down), self.tile_of(by, bx, None, (text, lambda env: steps, steps))

    def _swizzle(self, across: int, down: int, steps: int) -> tuple[tuple[int, ...], Any]:
        grid, body = self._plain(across, down, steps)
        order = Statement((f"T.use_swizzle({self.c.pick((2, 4, 10))})",), lambda env: None)
        return grid, [order, *body]

    def _uneven(self, across: int, down: int, steps: int) -> tuple[tuple[int, ...], Any]:
        """Blocks of a row run as many steps as the row's number says."""
        by, bx = name("by", "int32", 0, down - 1), name("bx", "int32", 0, across - 1)
        more = self.c.below(2)

        def count(env: Env) -> int:
            return min(int(env["by"]) + more, steps)

        return (across, down), self.tile_of(by, bx, None, (f"T.min(by + {more}, {steps})", count,
                                                           steps))  # fmt: skip

    def _split(self, across: int, down: int, steps: int) -> tuple[tuple[int, ...], Any]:
        """Part of the depth for each block, sums added to the output."""
        parts = 1 + self.c.below(3)
        each = -(-steps // parts)
        if self.batch:
            self.batch_fixed = True
            return self._plain(across, down, steps)
        bz, by = name("bz", "int32", 0, parts - 1), name("by", "int32", 0, down - 1)
        bx = name("bx", "int32", 0, across - 1)
        body = self.tile_of(by, bx, times(bz, each), (str(each), lambda env: each, each))
        return (across, down, parts), body

    def _persistent(self, across: int, down: int, steps: int) -> tuple[tuple[int, ...], Any]:
        """A loop over tiles in each block."""
        total = across * down
        blocks = 1 + self.c.below(min(total, 3))
        waves = -(-total // blocks)
        w = name("w", "int32", 0, waves - 1)
        block = name("bx", "int32", 0, blocks - 1)
        number = binary("+", times(w, blocks), block)
        t = name("t", "int32", 0, waves * blocks - 1)
        column, row = binary("%", t, literal(across)), binary("//", t, literal(across))
        body = self.tile_of(row, column, None, (str(steps), lambda env: steps, steps))
        inner = branch(binary("<", t, literal(total)), body)
        head = self.c.pick((f"T.serial({waves})", f"range({waves})"))
        return (blocks,), [loop("w", head, lambda env: range(waves), [let("t", number), inner])]


def draw_product(c: Choices) -> Program:
    """A matrix product of one of the kinds."""
    return Product(c).program()
