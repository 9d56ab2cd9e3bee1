"""Whether statements that a mask denies everything to leave a program's state as it was.

The statements are run on what is known of whole tiles: a constant, or "what this tile held before".
A softmax's iteration without admitted scores is the example: all scores are -inf, so the row
maximum stays, the old sums are scaled by exp2(0) = 1, and zeros are added. Sums and maxima are
taken to be finite, as relaxed arithmetic does; the first iteration may make them so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilelab.ir import (
    Binary,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Let,
    Load,
    Node,
    ParallelFor,
    Region,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    const_int,
)
from tilelab.passes.touch import touches
from tilelab.thread.mathfn import math_fn
from tilelab.thread.nodes import Invoke
from tilelab.tile.operands import is_whole
from tilelab.tile.ops.copy import Copy
from tilelab.tile.ops.fill import Fill
from tilelab.tile.ops.gemm import Gemm
from tilelab.tile.ops.reduce import Reduce


@dataclass(frozen=True)
class Before:
    """What element `at` of a tile held when the statements began, times a factor."""

    tile: int
    at: tuple[Any, ...]
    factor: float = 1.0


Known = float | Before | None
"""A constant, a value from before, or nothing known."""


def leaves_unchanged(body: Sequence[Stmt], false: Collection[int], used: Collection[int]) -> bool:
    """Whether statements with conditions `false` (ids) change no tile that matters: one that is
    in `used` (ids of storage that is read elsewhere) or that they read before they write it."""
    run = _Run(frozenset(false))
    if not all(run.statement(s) for s in body):
        return False
    matter = run.needed | set(used)
    return all(run.kept(tile) for tile in run.tiles if tile in matter)


@dataclass
class _Run:
    """The state: what each tile (by id of its storage) holds, element for element. `needed` are
    the tiles read before they were written whole."""

    false: frozenset[int]
    tiles: dict[int, Known] = field(default_factory=dict[int, Known])
    needed: set[int] = field(default_factory=set[int])

    def kept(self, tile: int) -> bool:
        """Whether a tile holds what it held."""
        value = self.tiles[tile]
        return isinstance(value, Before) and value.tile == tile and value.factor == 1.0

    def statement(self, stmt: Stmt) -> bool:
        """Run a statement; False where that is not understood."""
        rule = _STATEMENTS.get(type(stmt))
        return rule is not None and rule(self, stmt)

    # ---- statements --------------------------------------------------------------------------

    def sequence(self, s: Seq) -> bool:
        return all(self.statement(inner) for inner in s.body)

    def scalar(self, s: Let) -> bool:
        return True  # names of numbers: what they are is not asked

    def instruction(self, s: Invoke) -> bool:
        """Waits and releases: they may touch no tile in registers."""
        return not any(t.buffer.scope is Scope.FRAGMENT for t in touches(s))

    def elementwise(self, loop: ParallelFor) -> bool:
        for stmt in loop.body.body:
            if not isinstance(stmt, Store) or stmt.buffer.scope is not Scope.FRAGMENT:
                return False
            value = self.value(stmt.value)
            self._set(stmt.buffer, value, stmt.indices, self._covers(loop, stmt))
        return True

    def _covers(self, loop: ParallelFor, store: Store) -> bool:
        same = len(store.indices) == len(loop.vars) == store.buffer.rank and all(
            a is b for a, b in zip(store.indices, loop.vars, strict=True)
        )
        sizes = zip(loop.extents, store.buffer.shape, strict=False)
        return same and all(const_int(a) == const_int(b) for a, b in sizes)  # type: ignore[arg-type]

    def fill(self, s: Fill) -> bool:
        value = float(s.value.value) if isinstance(s.value, Const) else None
        return self._region(s.dst, value)

    def copy(self, s: Copy) -> bool:
        if s.src.buffer.scope is not Scope.FRAGMENT or not is_whole(s.src):
            return False
        return self._region(s.dst, self._tile(s.src.buffer))

    def reduce(self, s: Reduce) -> bool:
        source = self._tile(s.src.buffer)
        neutral = {"sum": 0.0, "max": -math.inf}.get(s.kind)
        if neutral is None or source != neutral:
            return False
        return self._region(s.dst, neutral if s.clear else self._tile(s.dst.buffer))

    def gemm(self, s: Gemm) -> bool:
        zero = any(
            r.buffer.scope is Scope.FRAGMENT and self._tile(r.buffer) == 0.0 for r in (s.a, s.b)
        )
        cleared = const_int(s.clear_accum)
        if cleared is None:
            return False
        held = 0.0 if cleared else self._tile(s.c.buffer)
        stays = zero or held == -math.inf
        return self._region(s.c, held if stays else None)

    # ---- tiles -------------------------------------------------------------------------------

    def _tile(self, buffer: Buffer) -> Known:
        """What a whole tile holds."""
        return self._load(buffer, ())

    def _load(self, buffer: Buffer, at: tuple[Any, ...]) -> Known:
        tile = id(buffer.storage)
        if buffer.scope is not Scope.FRAGMENT or buffer.alias_of is not None:
            return None
        if tile not in self.tiles:
            self.needed.add(tile)
            return Before(tile, at)
        known = self.tiles[tile]
        return replace(known, at=at) if isinstance(known, Before) else known

    def _region(self, region: Region, value: Known) -> bool:
        if region.buffer.scope is not Scope.FRAGMENT:
            return False
        self._set(region.buffer, value, (), is_whole(region))
        return True

    def _set(self, buffer: Buffer, value: Known, indices: Iterable[Expr], whole: bool) -> None:
        tile, at = id(buffer.storage), tuple(i.key for i in indices)
        if not whole or buffer.alias_of is not None:
            if tile not in self.tiles:
                self.needed.add(tile)
            value = None
        if isinstance(value, Before):
            value = replace(value, at=()) if value.at == at else None
        self.tiles[tile] = value

    # ---- values ------------------------------------------------------------------------------

    def value(self, e: Expr) -> Known:
        """What is known of an element's value."""
        rule = _VALUES.get(type(e))
        return None if rule is None else rule(self, e)

    def constant(self, e: Const) -> Known:
        return float(e.value)

    def load(self, e: Load) -> Known:
        return self._load(e.buffer, tuple(i.key for i in e.indices))

    def cast(self, e: Cast) -> Known:
        value = self.value(e.a)
        return value if isinstance(value, float) or e.dtype == e.a.dtype else None

    def select(self, e: Select) -> Known:
        if self._is_false(e.cond):
            return self.value(e.b)
        a, b = self.value(e.a), self.value(e.b)
        return a if a == b else None

    def _is_false(self, condition: Expr) -> bool:
        if id(condition) in self.false:
            return True
        if not isinstance(condition, Binary) or condition.op != "and":
            return False
        return self._is_false(condition.a) or self._is_false(condition.b)

    def call(self, e: Call) -> Known:
        values = [self.value(a) for a in e.args]
        constants = [np.float32(v) for v in values if isinstance(v, float)]
        if len(constants) == len(values):
            with np.errstate(all="ignore"):
                return _number(float(math_fn(e.fn).numpy(*constants)))
        if e.fn == "max" and -math.inf in values:
            return next(v for v in values if v != -math.inf)
        return values[0] if e.fn in ("max", "min") and values[0] == values[1] else None

    def binary(self, e: Binary) -> Known:
        rule = _OPERATIONS.get(e.op)
        return None if rule is None else rule(self.value(e.a), self.value(e.b))


def _number(value: float) -> Known:
    return None if math.isnan(value) else value


def _sum(a: Known, b: Known) -> Known:
    if isinstance(a, float) and isinstance(b, float):
        return _number(a + b)
    if -math.inf in (a, b):
        return -math.inf
    return b if a == 0.0 else a if b == 0.0 else None


def _difference(a: Known, b: Known) -> Known:
    if isinstance(b, float):
        return _sum(a, -b)
    if a == -math.inf:
        return a
    return 0.0 if a is not None and a == b else None


def _product(a: Known, b: Known) -> Known:
    if isinstance(a, float) and isinstance(b, float):
        return _number(a * b)
    if 0.0 in (a, b):
        return 0.0
    known, factor = (a, b) if isinstance(a, Before) else (b, a)
    if not isinstance(known, Before) or not isinstance(factor, float) or math.isinf(factor):
        return None
    return replace(known, factor=known.factor * factor)


def _quotient(a: Known, b: Known) -> Known:
    if isinstance(b, float) and b != 0.0:
        return _product(a, 1.0 / b)
    return 0.0 if a == 0.0 and isinstance(b, Before) else None


_OPERATIONS: dict[str, Callable[[Known, Known], Known]] = {
    "+": _sum, "-": _difference, "*": _product, "/": _quotient,
}  # fmt: skip
_STATEMENTS: dict[type[Stmt], Callable[[_Run, Any], bool]] = {
    Seq: _Run.sequence, Let: _Run.scalar, Invoke: _Run.instruction, Fill: _Run.fill,
    ParallelFor: _Run.elementwise, Copy: _Run.copy, Reduce: _Run.reduce, Gemm: _Run.gemm,
}  # fmt: skip
_VALUES: dict[type[Node], Callable[[_Run, Any], Known]] = {
    Const: _Run.constant, Load: _Run.load, Cast: _Run.cast, Select: _Run.select,
    Call: _Run.call, Binary: _Run.binary,
}  # fmt: skip

__all__ = ["leaves_unchanged"]
