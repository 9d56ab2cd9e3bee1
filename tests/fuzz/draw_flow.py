"""Draws statements and the loops and branches around them, and whole programs of them.

Hides how much of each kind is drawn, and where the results of a block go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fuzz.choices import Choices
from tests.fuzz.draw_block import TYPES, Block
from tests.fuzz.program import SENTINEL, Launch, Program, Tensor
from tests.fuzz.scalars import STORED, Env, Value, binary, is_float, literal, name, range_of
from tests.fuzz.tiles import (
    Statement,
    Tile,
    assign,
    atomic_add,
    jump,
    loop,
    parallel,
    tile,
    while_loop,
)
from tests.fuzz.whole import Region, copy, gemm, reduce, scan, whole

Draws = Callable[[Block], list[Statement]]


def some_move(b: Block) -> list[Statement]:
    return [b.move()]


def some_elements(b: Block) -> list[Statement]:
    return [b.elementwise(b.some_tile())]


def some_reduce(b: Block) -> list[Statement]:
    """A reduction of a tile along an axis."""
    c, source = b.c, b.some_tile()
    if len(source.shape) < 2 or source.dtype == "bool":
        return some_elements(b)
    dim = c.below(len(source.shape))
    kind = c.pick(("sum", "max", "min", "absmax", "abssum"))
    shape = list(source.shape)
    shape[dim : dim + 1] = [1] if c.chance(20) else []
    most = source.bound * (source.shape[dim] if "sum" in kind else 1)
    clear = kind == "abssum" or c.chance(60)
    room = most if clear else most * b.trips * 2
    dtype = source.dtype if room <= STORED[source.dtype] else "float32"
    if c.chance(20) and not source.dtype.startswith("u"):
        dtype = c.pick(("float32", "int32"))
    if room > STORED[dtype]:
        return some_elements(b)
    target = b.new_tile(shape, dtype, "fragment" if c.chance(80) else "shared", zero=True)
    return [reduce(kind, source, target, dim, clear)]


def some_scan(b: Block) -> list[Statement]:
    """A running sum or maximum along an axis."""
    c, source = b.c, b.some_tile()
    if source.dtype == "bool":
        return some_elements(b)
    dim = c.below(len(source.shape))
    kind = c.pick(("cumsum", "cummax"))
    most = source.bound * (source.shape[dim] if kind == "cumsum" else 1)
    if most > STORED[source.dtype]:
        return some_elements(b)
    target = b.new_tile(source.shape, source.dtype, source.scope, most)
    return [scan(kind, source, target, dim, c.chance(40))]


GEMM_TYPES = (("float16", "float32"), ("bfloat16", "float32"), ("float16", "float16"),
              ("int8", "int32"), ("float32", "float32"), ("float8_e4m3fn", "float32"),
              ("uint8", "int32"))  # fmt: skip


def some_gemm(b: Block) -> list[Statement]:
    """A product of new operands, or of tiles that were made for one."""
    c = b.c
    m, n, k = (min(c.pick(b.dims), 128) for _ in range(3))
    kinds = [t for t in GEMM_TYPES if t[0] not in ("uint8",)]
    dtype, out = c.pick(kinds)
    ta, tb = c.chance(30), c.chance(40)
    if out == "float16" and 9 * k * b.trips > 256:
        out = "float32"
    a = b.new_tile((k, m) if ta else (m, k), dtype, "fragment" if c.chance(20) else "shared", 3)
    right = b.new_tile((n, k) if tb else (k, n), dtype, "shared", 3)
    acc = b.new_tile((m, n), out, "fragment", zero=c.chance(70))
    policy = c.pick(("", "Square", "FullRow", "FullCol"))
    options = f", policy=T.GemmWarpPolicy.{policy}" if policy else ""
    refresh = [b.load_tile(t) for t in (a, right) if c.chance(60)]
    return [*refresh, gemm(a, right, acc, ta, tb, options, c.chance(20))]


def some_branch(b: Block) -> list[Statement]:
    body = statements(b, 1 + b.c.below(2))
    other = statements(b, 1) if b.c.chance(40) else []
    return [b.chosen(body, other)]


def some_number(b: Block) -> list[Statement]:
    """A T.alloc_var variable: a new one, or an assignment to one."""
    known = [n for n in b.numbers if n.text.startswith("n")]
    if known and b.c.chance(60):
        return [b.set_number(b.c.pick(known))]
    named, dtype = b.fresh("n"), b.c.pick(("int32", "float32", "int32"))
    start = b.c.below(5)
    b.allocations.append(f'{named} = T.alloc_var("{dtype}", init={start})')
    variable = name(named, dtype, -16 if dtype == "int32" else -8, 16 if dtype == "int32" else 8)
    b.first.append(assign_silently(named, dtype, start))
    b.numbers.append(variable)
    return [b.set_number(variable)]


def assign_silently(named: str, dtype: str, start: int) -> Statement:
    """The value that a variable begins with: its allocation says it."""
    return Statement((), assign(named, dtype, literal(start)).run)


def some_loop(b: Block) -> list[Statement]:
    """A loop of one of the kinds, with statements inside."""
    c = b.c
    kind = c.pick(("Pipelined", "serial", "unroll", "range", "Pipelined"))
    if kind == "Pipelined" and b.pipelined and c.chance(60):
        kind = "serial"
    head, values, most = _range(b, kind)
    variable = name(b.fresh("k"), "int32", 0, most)
    before, b.pipelined = b.pipelined, kind == "Pipelined"
    with b.number(variable, min(most + 1, 8)):
        body = [b.load_tile(b.some_tile()) for _ in range(c.below(3))] if b.pipelined else []
        body += statements(b, 1 + c.below(3))
        if kind in ("serial", "range") and c.chance(25):
            cond = binary(c.pick(("==", ">")), variable, literal(1 + c.below(3)))
            body.insert(c.below(len(body) + 1), jump(cond, c.pick(("break", "continue"))))
    b.pipelined = before
    return [loop(variable.text, head, values, body)]


def _range(b: Block, kind: str) -> tuple[str, Callable[[Env], Any], int]:
    """A loop's head, its values, and the largest of them."""
    c = b.c
    count = 1 + c.below(5)
    if kind == "range" and c.chance(60):
        start, step = c.below(3), c.pick((1, 2, 3))
        stop = start + count
        return f"range({start}, {stop}, {step})", lambda env: range(start, stop, step), stop
    text, trips, most = str(count), lambda env: count, count - 1
    if c.chance(30) and kind != "unroll":
        block = b.numbers[c.below(2)]
        text = f"{block.text} + {count}"
        trips, most = (lambda env: int(block.at(env)) + count), int(block.hi) + count - 1
    forms = {
        "range": f"range({text})", "serial": f"T.serial({text})", "unroll": f"T.unroll({text})",
        "Pipelined": f"T.Pipelined({text}, num_stages={c.below(5)})",
    }  # fmt: skip
    return forms[kind], lambda env: range(trips(env)), most


def some_while(b: Block) -> list[Statement]:
    """A while loop with a counter of its own."""
    named, most = b.fresh("w"), 1 + b.c.below(4)
    b.allocations.append(f'{named} = T.alloc_var("int32", init=0)')
    b.first.append(assign_silently(named, "int32", 0))
    counter = name(named, "int32", 0, most)
    with b.number(counter, most):
        body = [assign(named, "int32", binary("+", counter, literal(1)))]
        body += statements(b, 1 + b.c.below(2))
    reset = assign(named, "int32", literal(0))
    return [reset, while_loop(binary("<", counter, literal(most)), body)]


KINDS: tuple[Draws, ...] = (
    some_elements, some_move, some_elements, some_reduce, some_loop, some_gemm, some_branch,
    some_number, some_scan, some_loop, some_while,
)  # fmt: skip
FLAT: tuple[Draws, ...] = (some_elements, some_move, some_reduce, some_gemm, some_scan, some_number)


def statements(b: Block, count: int, depth: int = 2) -> list[Statement]:
    """Statements one after another; loops in loops up to three deep."""
    made: list[Statement] = []
    for _ in range(count):
        kinds = KINDS if b.trips < 24 else FLAT
        made += b.c.pick(kinds)(b)
    return made


def draw_inputs(c: Choices) -> list[Tensor]:
    """One to three tensors to read."""
    made: list[Tensor] = []
    for at in range(1 + c.below(3)):
        dtype = c.pick(TYPES)
        most = min(STORED[dtype], 3)
        low = 0 if dtype == "bool" or dtype.startswith("u") else -most
        sizes = (64, 100, 128, 96, 33, 16, 256, 7)
        shape = [c.pick(sizes) for _ in range(c.pick((2, 2, 3, 1)))]
        if len(shape) == 3:
            shape[0] = 1 + c.below(4)
        made.append(Tensor(tile(f"A{at}", shape, dtype, "global", most), low, most, at))
    return made


def results(b: Block, tensors: list[Tensor]) -> list[Statement]:
    """Copies of tiles to tensors of their own, each block's beside the others'."""
    made: list[Statement] = []
    for source in b.tiles:
        dtype = source.dtype
        if b.c.chance(25) and dtype != "bool":
            wide = ("float32", "float64") if is_float(dtype) or b.c.chance(50) else ("int32",)
            dtype = next((d for d in wide if range_of(d)[1] >= source.bound), dtype)
        made.append(_result(b, source, dtype, tensors))
    return made


def _result(b: Block, source: Tile, dtype: str, tensors: list[Tensor]) -> Statement:
    c, (gx, gy) = b.c, b.grid
    shape = [n * g for n, g in zip(source.shape, (gx, gy), strict=False)]
    lead = len(source.shape) == 1
    shape = [gy, *shape] if lead else [*shape, *source.shape[2:]]
    if c.chance(35):
        shape = [max(n - c.below(min(n, 5)), 1) for n in shape]
    target = tile(b.fresh("O"), shape, dtype, "global", STORED[dtype])
    tensors.append(Tensor(target, min(SENTINEL, STORED[dtype]), min(SENTINEL, STORED[dtype])))
    numbers = [b.numbers[1], b.numbers[0]] if lead else [b.numbers[0], b.numbers[1]]
    extents = (1, *source.shape) if lead else source.shape
    kept = tuple(not (lead and at == 0) for at in range(len(shape)))
    starts = [
        _times(n, e) if e > 1 else n for n, e in zip(numbers, extents, strict=False)
    ] + [literal(0)] * (len(shape) - 2)  # fmt: skip
    form = "slice" if lead else c.pick(("slice", "point"))
    return copy(whole(source), Region(target, tuple(starts), tuple(extents), kept, form))


def _times(number: Value, extent: int) -> Value:
    return Value(f"{number.text} * {extent}", lambda env: int(number.at(env)) * extent, "int32",
                 0, number.hi * extent)  # fmt: skip


def some_atomic(b: Block, tensors: list[Tensor]) -> list[Statement]:
    """Sums of a tile's elements into a tensor that all blocks share."""
    c, source = b.c, b.some_tile()
    if source.dtype not in ("int32", "float32", "float16", "int64", "int16", "int8"):
        return []
    dtype = "float32" if is_float(source.dtype) else "int32"
    size = 1 + c.below(40)
    target = tile(b.fresh("S"), (size,), dtype, "global")
    elements = 1
    for n in source.shape:
        elements *= n
    if elements * source.bound * b.grid[0] * b.grid[1] > 1 << 23:
        return []
    tensors.append(Tensor(target, 0, 2))
    names = [b.fresh("i") for _ in source.shape]
    axes = [name(n, "int32", 0, e - 1) for n, e in zip(names, source.shape, strict=True)]
    from_tile = Value(f"{source.name}[{', '.join(names)}]", _elements(source, axes), source.dtype,
                      source.low, source.bound)  # fmt: skip
    total = axes[0]
    for axis in axes[1:]:
        total = binary("+", total, axis)
    spot = binary("%", total, literal(size)) if size > 1 else literal(0)
    body = [atomic_add(target, [spot], from_tile)]
    return [parallel(list(zip(names, source.shape, strict=True)), body)]


def _elements(source: Tile, axes: list[Value]) -> Callable[[Env], Any]:
    return lambda env: env[source.name][tuple(a.at(env) for a in axes)]


def draw_flow(c: Choices) -> Program:
    """A program of one or two kernels with drawn statements."""
    tensors = draw_inputs(c)
    launches: list[Launch] = []
    for at in range(2 if c.chance(15) else 1):
        b = Block(c, list(tensors), "xy"[at])
        for _ in range(1 + c.below(2)):
            b.draw_tile()
        body = statements(b, 1 + c.below(4))
        if c.chance(20):
            body += some_atomic(b, tensors)
        launches.append(b.launch([*body, *results(b, tensors)]))
    return Program(tensors, launches)
