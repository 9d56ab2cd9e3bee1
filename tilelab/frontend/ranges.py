"""The check of a finished trace that no access is certain to lie outside its buffer.

Hides how certainty is found. Only accesses that every run makes count: nothing under a condition,
nor in a loop that may end early. Constant indices are checked for every buffer; indices made of
loop and thread variables, and whole tiles, for on-chip buffers, where nothing guards them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilelab.errors import Loc, TileIndexError
from tilelab.ir import (
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    Function,
    Kernel,
    Let,
    Load,
    Node,
    ParallelFor,
    Region,
    Scope,
    Select,
    Seq,
    Store,
    Var,
    children,
    const_int,
    walk,
)
from tilelab.ir.expr import LOGICAL
from tilelab.ir.stmt import may_leave
from tilelab.tile.op import TileOp

Range = tuple[int, int]
Ranges = Mapping[int, Range]


@dataclass(frozen=True)
class _Access:
    """The element at `indices`, or the tile that begins there."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    extents: tuple[int, ...] = ()


def check_ranges(function: Function) -> None:
    """Raise TileIndexError (TL1111) for an access that lies outside its buffer in every run."""
    for kernel in function.kernels:
        _seq(kernel.body, _launched(kernel))


def _launched(kernel: Kernel) -> dict[int, Range]:
    found = {
        id(v): (0, n - 1) for v, n in zip(kernel.thread_vars, kernel.threads, strict=True)
    }  # fmt: skip
    for var, extent in zip(kernel.block_vars, kernel.grid, strict=True):
        count = const_int(extent)
        if count:
            found[id(var)] = (0, count - 1)
    return found


def _seq(block: Seq, known: Ranges) -> None:
    for stmt in block.body:
        rule = _RULES.get(type(stmt))
        if rule is not None:
            rule(stmt, known)
        elif isinstance(stmt, TileOp):
            _tiles(stmt, known)


def _loop(loop: For, known: Ranges) -> None:
    if may_leave(loop.body):
        return
    start, extent, step = const_int(loop.start), const_int(loop.extent), const_int(loop.step)
    if extent == 0:
        return
    if start is not None and extent is not None and step is not None:
        ends = (start, start + (extent - 1) * step)
        known = {**known, id(loop.var): (min(ends), max(ends))}
    _seq(loop.body, known)


def _box(loop: ParallelFor, known: Ranges) -> None:
    extents = [const_int(e) for e in loop.extents]
    if 0 in extents or may_leave(loop.body):
        return
    pairs = zip(loop.vars, extents, strict=True)
    _seq(loop.body, {**known, **{id(v): (0, n - 1) for v, n in pairs if n is not None}})


def _let(let: Let, known: Ranges) -> None:
    _loads(let.value, known, let.loc)


def _store(store: Store, known: Ranges) -> None:
    for part in (*store.indices, store.value):
        _loads(part, known, store.loc)
    _check(_Access(store.buffer, store.indices), known, store.loc)


def _tiles(op: TileOp, known: Ranges) -> None:
    """Tiles of on-chip buffers; one of a tensor may hang over its end."""
    for region in walk(op):
        if isinstance(region, Region) and region.buffer.scope is not Scope.GLOBAL:
            extents = tuple(const_int(e) or 1 for e in region.extents)
            _check(_Access(region.buffer, region.starts, extents), known, op.loc)


_RULES: dict[type[Node], Callable[[Any, Ranges], None]] = {
    Seq: _seq, For: _loop, ParallelFor: _box, Let: _let, Store: _store,
}  # fmt: skip


def _loads(node: Node, known: Ranges, loc: Loc | None) -> None:
    if isinstance(node, Load):
        _check(_Access(node.buffer, node.indices), known, loc)
    for child in _certain(node):
        _loads(child, known, loc)


def _certain(node: Node) -> Iterator[Node]:
    """The parts that are evaluated whenever `node` is."""
    if isinstance(node, Select):
        yield node.cond
    elif isinstance(node, Binary) and node.op in LOGICAL:
        yield node.a
    else:
        yield from children(node)


def _check(access: _Access, known: Ranges, loc: Loc | None) -> None:
    buffer = access.buffer
    taken = access.extents or (1,) * buffer.rank
    for axis, (index, size) in enumerate(zip(access.indices, buffer.shape, strict=True)):
        extent = const_int(size)
        reached = _reached(index, {} if buffer.scope is Scope.GLOBAL else known)
        if extent is None or reached is None:
            continue
        low, high = reached[0], reached[1] + taken[axis] - 1
        if low >= 0 and high < extent:
            continue
        worst = high if high >= extent else low
        if isinstance(index, Const) and taken[axis] == 1:  # a negative one was counted from the end
            text = f"the index {worst - extent if worst < 0 else worst} is"
        else:
            what = "tile" if access.extents else "index"
            text = f"the {what} reaches {worst}, which is"
        raise TileIndexError(
            f"{text} outside axis {axis} of {buffer.name}, whose extent is {extent}",
            code="TL1111", loc=loc,
            hint=f"keep the index within 0 to {extent - 1}, or guard the access with an if",
        )  # fmt: skip


def _reached(index: Expr, known: Ranges) -> Range | None:
    """The smallest and the largest value that `index` takes, both reached; None if not certain.

    The variables of an index are independent, so a sum reaches its ends when no variable occurs
    twice in it.
    """
    variables = [id(n) for n in walk(index) if isinstance(n, Var)]
    if len(set(variables)) != len(variables):
        return None
    return _ends(index, known)


def _ends(e: Expr, known: Ranges) -> Range | None:
    if isinstance(e, Var):
        return known.get(id(e))
    constant = const_int(e)
    if constant is not None:
        return (constant, constant)
    if not isinstance(e, Binary):
        return None
    a, b = _ends(e.a, known), _ends(e.b, known)
    rule = _ENDS.get(e.op)
    return None if a is None or b is None or rule is None else rule(a, b)


def _floor(a: Range, b: Range) -> Range | None:
    return (a[0] // b[0], a[1] // b[0]) if b[0] == b[1] and b[0] > 0 else None


def _times(a: Range, b: Range) -> Range:
    products = [x * y for x in a for y in b]
    return (min(products), max(products))


_ENDS: dict[str, Callable[[Range, Range], Range | None]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _times, "//": _floor,
}  # fmt: skip
