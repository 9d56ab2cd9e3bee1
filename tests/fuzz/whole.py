"""Statements on whole tiles: copies of regions, fills, products, reductions, scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.scalars import Env, Inexact, Value, is_float, numpy_type
from tests.fuzz.tiles import Statement, Tile


@dataclass(frozen=True)
class Region:
    """A part of a tile: for each axis where it begins and how long it is; an axis of which one
    element is taken (`kept` False) is none of the part's own. `form`: "whole", "point", "slice"."""

    tile: Tile
    starts: tuple[Value, ...]
    extents: tuple[int, ...]
    kept: tuple[bool, ...]
    form: str = "slice"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(e for e, k in zip(self.extents, self.kept, strict=True) if k)

    def text(self) -> str:
        """As the program spells it."""
        if self.form == "whole":
            return self.tile.name
        parts: list[str] = []
        for start, extent, kept in zip(self.starts, self.extents, self.kept, strict=True):
            if self.form == "point" or not kept:
                parts.append(start.text)
            elif start.literal:
                parts.append(f"{start.text}:{int(start.lo) + extent}")
            else:
                parts.append(f"{start.text} : {start.text} + {extent}")
        return f"{self.tile.name}[{', '.join(parts)}]"

    def places(self, env: Env) -> tuple[tuple[Any, ...], Any]:
        """Index arrays, and which places exist."""
        starts = [int(s.at(env)) for s in self.starts]
        spans = [np.arange(s, s + e) for s, e in zip(starts, self.extents, strict=True)]
        inside = [(s >= 0) & (s < n) for s, n in zip(spans, self.tile.shape, strict=True)]
        grid = np.ix_(*[np.clip(s, 0, n - 1) for s, n in zip(spans, self.tile.shape, strict=True)])
        exists = np.ones(self.extents, bool)
        for axis, part in enumerate(inside):
            shape = [-1 if a == axis else 1 for a in range(len(inside))]
            exists = exists & part.reshape(shape)
        return grid, exists


def copy(source: Region, target: Region, options: str = "") -> Statement:
    """T.copy: elements that the source lacks are 0, elements that the target lacks are dropped."""
    if source.shape != target.shape:
        raise Inexact(f"{source.shape} into {target.shape}")
    kind = numpy_type(target.tile.dtype)

    def run(env: Env) -> None:
        grid, exists = source.places(env)
        got = np.where(exists, env[source.tile.name][grid], env[source.tile.name].dtype.type(0))
        got = _converted(got.reshape(target.extents), kind)
        spots, there = target.places(env)
        full = np.broadcast_arrays(*spots)
        env[target.tile.name][tuple(s[there] for s in full)] = got[there]

    return Statement((f"T.copy({source.text()}, {target.text()}{options})",), run)


def _converted(got: Any, kind: Any) -> Any:
    return got != 0 if kind == np.bool_ else got.astype(np.float64).astype(kind)


def fill(target: Region, value: float) -> Statement:
    """T.fill with a number (T.clear for a whole tile and 0)."""

    def run(env: Env) -> None:
        spots, there = target.places(env)
        full = np.broadcast_arrays(*spots)
        kind = numpy_type(target.tile.dtype)
        env[target.tile.name][tuple(s[there] for s in full)] = kind.type(value)

    plain = value == 0 and target.form == "whole"
    text = f"T.clear({target.text()})" if plain else f"T.fill({target.text()}, {value})"
    return Statement((text,), run)


def gemm(a: Tile, b: Tile, c: Tile, ta: bool, tb: bool, options: str = "",
         clear: bool = False) -> Statement:  # fmt: skip
    """T.gemm: the exact product of whole numbers added to `c`."""

    def run(env: Env) -> None:
        wide = np.float64 if is_float(a.dtype) else np.int64
        left, right = (env[t.name].astype(wide) for t in (a, b))
        product = (left.T if ta else left) @ (right.T if tb else right)
        old = 0 if clear else env[c.name].astype(np.float64)
        env[c.name][...] = (product + old).astype(numpy_type(c.dtype))

    flags = f", transpose_A={ta}" * ta + f", transpose_B={tb}" * tb
    flags += ", clear_accum=True" * clear
    return Statement((f"T.gemm({a.name}, {b.name}, {c.name}{flags}{options})",), run)


_REDUCE: Mapping[str, Any] = {
    "sum": np.sum, "max": np.max, "min": np.min, "abssum": lambda x, axis: np.abs(x).sum(axis),
    "absmax": lambda x, axis: np.abs(x).max(axis),
}  # fmt: skip
_JOIN: Mapping[str, Any] = {
    "sum": np.add, "max": np.maximum, "min": np.minimum, "absmax": np.maximum
}  # fmt: skip


def reduce(kind: str, source: Tile, target: Tile, dim: int, clear: bool = True) -> Statement:
    """T.reduce_kind of a tile along an axis into a tile without it (or with 1 in its place)."""

    def run(env: Env) -> None:
        wide = env[source.name].astype(np.float64)
        got = _REDUCE[kind](wide, dim).reshape(target.shape)
        if not clear:
            got = _JOIN[kind](env[target.name].astype(np.float64), got)
        env[target.name][...] = got.astype(numpy_type(target.dtype))

    flags = "" if clear else ", clear=False"
    text = f"T.reduce_{kind}({source.name}, {target.name}, dim={dim}{flags})"
    return Statement((text,), run)


def scan(kind: str, source: Tile, target: Tile, dim: int, reverse: bool) -> Statement:
    """T.cumsum or T.cummax along an axis, in place where both tiles are one."""

    def run(env: Env) -> None:
        wide = env[source.name].astype(np.float64)
        wide = np.flip(wide, dim) if reverse else wide
        got = np.cumsum(wide, dim) if kind == "cumsum" else np.maximum.accumulate(wide, dim)
        got = np.flip(got, dim) if reverse else got
        env[target.name][...] = got.astype(numpy_type(target.dtype))

    into = "" if source is target else f", {target.name}"
    flags = f"{into}, dim={dim}" + ", reverse=True" * reverse
    return Statement((f"T.{kind}({source.name}{flags})",), run)


def whole(tile: Tile) -> Region:
    """All of a tile, by its name."""
    zero = Value("0", lambda env: 0, "int32", 0, 0, literal=True)
    rank = len(tile.shape)
    return Region(tile, (zero,) * rank, tile.shape, (True,) * rank, "whole")


def transposed(source: Tile, target: Tile) -> Statement:
    """T.transpose of a shared tile."""

    def run(env: Env) -> None:
        env[target.name][...] = env[source.name].T

    return Statement((f"T.transpose({source.name}, {target.name})",), run)


def first_of(tiles: Sequence[Tile], **wanted: Any) -> list[Tile]:
    """The tiles with these attributes."""
    return [t for t in tiles if all(getattr(t, k) == v for k, v in wanted.items())]
