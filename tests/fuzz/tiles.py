"""Tiles and statements of drawn programs: lines of Python, and their meaning on numpy arrays.

Hides how a loop over elements (T.Parallel) becomes one numpy expression, and what lies past the
end of a tensor (reads give 0, writes are dropped).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.scalars import (
    STORED,
    Env,
    Inexact,
    Value,
    as_type,
    binary,
    cast,
    is_float,
    literal,
    numpy_type,
    unary,
)

MASK, SHAPE = "the mask", "the shape"  # of the running T.Parallel loop; no names of Python


class Break(Exception):
    """A `break` of the running program."""


class Continue(Exception):
    """A `continue` of the running program."""


@dataclass(frozen=True)
class Tile:
    """A tensor, a tile, or a private array. `bound`: its elements lie in -bound..bound (unsigned
    ones in 0..bound); stores keep to half of it, so that sums may add to them."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str
    bound: int
    given: tuple[str, ...] = ()
    """The extents as the program spells them, where that differs (dynamic sizes)."""

    @property
    def low(self) -> int:
        return 0 if self.dtype == "bool" or self.dtype.startswith("u") else -self.bound

    def spelled(self) -> str:
        """The shape as text."""
        sizes = self.given or tuple(map(str, self.shape))
        return "(" + ", ".join(sizes) + ("," if len(sizes) == 1 else "") + ")"


def tile(name: str, shape: Sequence[int], dtype: str, scope: str, bound: int = 0) -> Tile:
    """A tile that holds whole numbers up to `bound` (by default what its type allows)."""
    return Tile(name, tuple(shape), dtype, scope, min(bound or STORED[dtype], STORED[dtype]))


@dataclass(frozen=True)
class Statement:
    """Lines of the program, and what they do to the running program's names."""

    lines: tuple[str, ...]
    run: Callable[[Env], None]


def indented(statements: Sequence[Statement], otherwise: str = "pass") -> tuple[str, ...]:
    """The lines of a block's body."""
    lines = [f"    {line}" for s in statements for line in s.lines]
    return tuple(lines) or (f"    {otherwise}",)


def run_all(statements: Sequence[Statement], env: Env) -> None:
    """The statements one after another."""
    for statement in statements:
        statement.run(env)


# ---- elements -----------------------------------------------------------------------------------


def _places(tile: Tile, indices: Sequence[Value], env: Env) -> tuple[list[Any], Any]:
    """Index arrays inside the tile, and which of them were inside."""
    found = [np.asarray(i.at(env)).astype(np.int64) for i in indices]
    found = list(np.broadcast_arrays(*found)) if found else []
    inside = np.ones(found[0].shape, bool)
    for index, extent in zip(found, tile.shape, strict=True):
        inside &= (index >= 0) & (index < extent)
    clipped = [np.clip(i, 0, n - 1) for i, n in zip(found, tile.shape, strict=True)]
    return clipped, inside


def _subscript(tile: Tile, indices: Sequence[Value]) -> str:
    return f"{tile.name}[{', '.join(i.text for i in indices)}]"


def load(tile: Tile, indices: Sequence[Value], guarded: bool = False) -> Value:
    """One element. Past the end of a tensor it is 0; tiles must be met inside, unless `guarded`
    by a condition that makes the rest of the expression not matter."""
    for index, extent in zip(indices, tile.shape, strict=True):
        past = index.hi >= extent and tile.scope != "global"
        if not guarded and (index.lo < 0 or past):
            raise Inexact("an index outside")

    def at(env: Env) -> Any:
        places, inside = _places(tile, indices, env)
        return np.where(inside, env[tile.name][tuple(places)], numpy_type(tile.dtype).type(0))

    return Value(_subscript(tile, indices), at, tile.dtype, tile.low, tile.bound)


def fitted(value: Value, tile: Tile) -> Value:
    """`value` made to fit the tile: rounded down, and kept between its bounds."""
    keep = max(tile.bound // 2, 1)
    if value.frac and is_float(tile.dtype):
        if value.literal:
            raise Inexact("a literal with a fraction")
        value = unary("floor", value)
    low = max(tile.low, -keep)
    if value.lo >= low and value.hi <= keep:
        return value
    if tile.dtype == "bool":
        return value
    if value.dtype == "bool" or value.literal:
        raise Inexact("nothing to limit")
    if is_float(value.dtype):
        return binary("T.min", binary("T.max", value, literal(low)), literal(keep))
    return binary("%", value, literal(keep + 1))


def store(tile: Tile, indices: Sequence[Value], value: Value, op: str = "") -> Statement:
    """`tile[indices] = value`, with the conversion that a store makes."""
    kept = as_type(value, tile.dtype)
    for index, extent in zip(indices, tile.shape, strict=True):
        if index.lo < 0 or (index.hi >= extent and tile.scope != "global"):
            raise Inexact("an index outside")

    def run(env: Env) -> None:
        places, inside = _places(tile, indices, env)
        shape, mask = env.get(SHAPE, ()), env.get(MASK, np.ones((), bool))
        got = np.broadcast_to(kept.at(env), shape)
        chosen = np.broadcast_to(inside, shape) & np.broadcast_to(mask, shape)
        spots = tuple(np.broadcast_to(p, shape)[chosen] for p in places)
        env[tile.name][spots] = got[chosen]

    return Statement((f"{_subscript(tile, indices)} {op}= {value.text}",), run)


def atomic_add(tile: Tile, indices: Sequence[Value], value: Value) -> Statement:
    """T.atomic_add of a value of the tensor's own type."""
    kept = cast(value, tile.dtype) if value.dtype != tile.dtype else value

    def run(env: Env) -> None:
        places, inside = _places(tile, indices, env)
        shape, mask = env.get(SHAPE, ()), env.get(MASK, np.ones((), bool))
        chosen = np.broadcast_to(inside, shape) & np.broadcast_to(mask, shape)
        spots = tuple(np.broadcast_to(p, shape)[chosen] for p in places)
        np.add.at(env[tile.name], spots, np.broadcast_to(kept.at(env), shape)[chosen])

    return Statement((f"T.atomic_add({_subscript(tile, indices)}, {kept.text})",), run)


def let(name: str, value: Value) -> Statement:
    """`name = value`: a name for a value."""

    def run(env: Env) -> None:
        env[name] = value.at(env)

    return Statement((f"{name} = {value.text}",), run)


def assign(name: str, dtype: str, value: Value) -> Statement:
    """A store into a T.alloc_var variable."""
    kept = as_type(value, dtype)

    def run(env: Env) -> None:
        env[name] = np.asarray(kept.at(env)).astype(numpy_type(dtype))

    return Statement((f"{name} = {value.text}",), run)


# ---- control ------------------------------------------------------------------------------------


def parallel(axes: Sequence[tuple[str, int]], body: Sequence[Statement]) -> Statement:
    """`for i, j in T.Parallel(...)` over elements that do not meet."""
    names, extents = ", ".join(n for n, _ in axes), ", ".join(str(e) for _, e in axes)
    head = f"for {names} in T.Parallel({extents}):"

    def run(env: Env) -> None:
        inner = dict(env)
        shape = tuple(e for _, e in axes)
        for at, (axis, extent) in enumerate(axes):
            inner[axis] = np.arange(extent).reshape(
                [-1 if a == at else 1 for a in range(len(axes))]
            )
        inner[SHAPE], inner[MASK] = shape, np.ones(shape, bool)
        run_all(body, inner)

    return Statement((head, *indented(body)), run)


def guard(cond: Value, body: Sequence[Statement], other: Sequence[Statement] = ()) -> Statement:
    """`if cond:` inside T.Parallel: each element for itself."""

    def run(env: Env) -> None:
        taken = np.broadcast_to(cond.at(env), env[SHAPE])
        run_all(body, {**env, MASK: env[MASK] & taken})
        run_all(other, {**env, MASK: env[MASK] & ~taken})

    tail = ("else:", *indented(other)) if other else ()
    return Statement((f"if {cond.text}:", *indented(body), *tail), run)


def branch(cond: Value, body: Sequence[Statement], other: Sequence[Statement] = ()) -> Statement:
    """`if cond:` with one answer for the whole block."""

    def run(env: Env) -> None:
        run_all(body if bool(cond.at(env)) else other, env)

    tail = ("else:", *indented(other)) if other else ()
    return Statement((f"if {cond.text}:", *indented(body), *tail), run)


def loop(
    name: str, head: str, values: Callable[[Env], Any], body: Sequence[Statement]
) -> Statement:
    """`for name in head:` one iteration after the other."""

    def run(env: Env) -> None:
        for value in values(env):
            env[name] = value
            try:
                run_all(body, env)
            except Continue:
                continue
            except Break:
                break
        env.pop(name, None)

    return Statement((f"for {name} in {head}:", *indented(body)), run)


def while_loop(cond: Value, body: Sequence[Statement]) -> Statement:
    """`while cond:`; the body makes it false in the end."""

    def run(env: Env) -> None:
        while bool(cond.at(env)):
            try:
                run_all(body, env)
            except Continue:
                continue
            except Break:
                break

    return Statement((f"while {cond.text}:", *indented(body)), run)


def jump(cond: Value, which: str) -> Statement:
    """`if cond: break` or `continue`."""
    kind = Break if which == "break" else Continue

    def run(env: Env) -> None:
        if bool(cond.at(env)):
            raise kind

    return Statement((f"if {cond.text}:", f"    {which}"), run)
