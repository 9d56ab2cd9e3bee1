"""Sums over a tile that was rounded to 16 bits just before: they add the float32 values instead.

Saves a conversion for each element, and the sum is the better for it: the tile's own rounding
errors are not in it.
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.ir import Buffer, Cast, Expr, Load, ParallelFor, Scope, Seq, Stmt, Store, cast
from tilelab.passes.base import PassContext
from tilelab.passes.forward_scale import whole_store
from tilelab.passes.touch import writes
from tilelab.tile.operands import is_whole, whole
from tilelab.tile.ops.reduce import Reduce


def unrounded_sums(block: Seq, made: list[Buffer], ctx: PassContext) -> Seq:
    """A block whose sums of rounded tiles take the values before; new tiles go to `made`."""
    body = list(block.body)
    for place, stmt in enumerate(body):
        wide = _before_rounding(stmt)
        later = None if wide is None else _sum_of_it(body, place, stmt)
        if wide is None or later is None:
            continue
        store, summed = whole_store(stmt), body[later]
        assert store is not None and isinstance(summed, Reduce) and isinstance(stmt, ParallelFor)
        tile = Buffer(
            f"{store.buffer.name}_wide", store.buffer.shape, wide.dtype, Scope.FRAGMENT,
            loc=store.buffer.loc,
        )  # fmt: skip
        made.append(tile)
        rounded = cast(Load(tile, store.indices), store.buffer.dtype)
        both = (Store(tile, store.indices, wide, loc=store.loc), replace(store, value=rounded))
        body[place] = replace(stmt, body=replace(stmt.body, body=both))
        body[later] = replace(summed, src=whole(tile))
        ctx.note(f"{summed.label()}: adds the values before they are rounded", summed)
    changed = any(a is not b for a, b in zip(body, block.body, strict=True))
    return replace(block, body=tuple(body)) if changed else block


def _before_rounding(stmt: Stmt) -> Expr | None:
    """The float32 value that a statement rounds to 16 bits and stores."""
    store = whole_store(stmt)
    if store is None or not store.buffer.dtype.is_float or store.buffer.dtype.bits != 16:
        return None
    value = store.value.a if isinstance(store.value, Cast) else store.value
    return value if value.dtype.name == "float32" else None


def _sum_of_it(body: list[Stmt], place: int, stmt: Stmt) -> int | None:
    """The place of a float32 sum over the tile that `stmt` fills, before it is written again."""
    store = whole_store(stmt)
    assert store is not None
    for later in range(place + 1, len(body)):
        other = body[later]
        if isinstance(other, Reduce) and other.src.buffer is store.buffer:
            fits = other.kind == "sum" and other.dst.dtype.name == "float32"
            return later if fits and is_whole(other.src) else None
        if writes(other, store.buffer):
            return None
    return None


__all__ = ["unrounded_sums"]
