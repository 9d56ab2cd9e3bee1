"""Scale factors of whole tiles, moved to where the elements are used.

`tile = tile * c` with c > 0, then a row maximum and elementwise uses: the maximum commutes with
the factor exactly (products round monotonically), and a use `exp2(tile - m)` becomes one fused
multiply-add and the exponential. A mask's -inf stays what it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tilelab.ir import (
    Binary,
    Buffer,
    Const,
    Expr,
    Load,
    Node,
    ParallelFor,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    binary,
    const_int,
    select,
    walk,
)
from tilelab.ir.rewrite import rewrite
from tilelab.passes.base import PassContext
from tilelab.passes.touch import uses
from tilelab.tile.operands import is_whole
from tilelab.tile.ops.fill import Fill
from tilelab.tile.ops.gemm import Gemm
from tilelab.tile.ops.reduce import Reduce


@dataclass(frozen=True)
class Scaling:
    """`buffer = plain * factor` for every element; `plain` is what is left without the factor."""

    loop: ParallelFor
    store: Store
    factor: float
    plain: Expr


def forward_scales(block: Seq, ctx: PassContext) -> Seq:
    """A block with the factors of its scaled tiles moved to the uses."""
    body = list(block.body)
    for place in range(len(body)):
        found = scaling_of(body[place])
        moved = None if found is None else _moved(body, place, found)
        if found is None or moved is None:
            continue
        name = found.store.buffer.name
        ctx.note(
            f"{name}: the factor {found.factor:.6g} is applied where {name} is used", found.loop
        )
        body = moved
    changed = any(a is not b for a, b in zip(body, block.body, strict=True))
    return replace(block, body=tuple(body)) if changed else block


def whole_store(stmt: Stmt, scope: Scope = Scope.FRAGMENT) -> Store | None:
    """The only statement of an elementwise loop that writes each element of a fragment (or of a
    buffer of another scope)."""
    if not isinstance(stmt, ParallelFor) or len(stmt.body.body) != 1:
        return None
    store = stmt.body.body[0]
    if not isinstance(store, Store) or store.buffer.scope is not scope:
        return None
    identity = len(store.indices) == len(stmt.vars) and all(
        a is b for a, b in zip(store.indices, stmt.vars, strict=True)
    )
    sizes = zip(stmt.extents, store.buffer.shape, strict=False)
    return store if identity and all(const_int(a) == const_int(b) for a, b in sizes) else None


def scaling_of(stmt: Stmt) -> Scaling | None:
    """How a statement scales a float32 tile by a constant, if it does."""
    store = whole_store(stmt)
    if store is None or store.buffer.dtype.name != "float32":
        return None
    assert isinstance(stmt, ParallelFor)
    value = store.value
    masked = value if isinstance(value, Select) else None
    product = value if masked is None else masked.a
    if masked is not None and not _is_minus_infinity(masked.b):
        return None
    if not isinstance(product, Binary) or product.op != "*" or not isinstance(product.b, Const):
        return None
    factor = float(product.b.value)
    if not 0 < factor < math.inf or not _is_element(product.a, store):
        return None
    plain = product.a if masked is None else select(masked.cond, product.a, masked.b)
    return Scaling(stmt, store, factor, plain)


def _is_minus_infinity(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == -math.inf


def _is_element(e: Expr, store: Store) -> bool:
    """Whether an expression is the element that is stored."""
    if not isinstance(e, Load) or e.buffer is not store.buffer:
        return False
    return all(a is b for a, b in zip(e.indices, store.indices, strict=True))


def _moved(body: list[Stmt], place: int, found: Scaling) -> list[Stmt] | None:
    """The block with the factor at the uses; None where a use cannot take it."""
    tile = found.store.buffer
    out = list(body)
    out[place] = _unscaled(found)
    for later in range(place + 1, len(body)):
        stmt = body[later]
        if not uses(stmt, tile):
            continue
        if isinstance(stmt, Reduce) and stmt.kind == "max" and stmt.dst.buffer is not tile:
            if stmt.src.buffer is not tile:
                return None
            out[later] = replace(stmt, factor=stmt.factor * found.factor)
            continue
        used = _used_scaled(stmt, found)
        if used is None:
            return None
        out[later] = used
        if any(isinstance(n, Store) and n.buffer is tile for n in walk(stmt)):
            return out  # it holds other values from here on
    return out if _begins_anew(body, tile) else None


def _unscaled(found: Scaling) -> Stmt:
    """The scaling statement without its factor: nothing, or the mask alone."""
    if isinstance(found.plain, Load):
        return Seq((), loc=found.loop.loc)
    store = replace(found.store, value=found.plain)
    return replace(found.loop, body=replace(found.loop.body, body=(store,)))


def _used_scaled(stmt: Stmt, found: Scaling) -> Stmt | None:
    """An elementwise statement that multiplies what it reads of the tile by the factor."""
    tile = found.store.buffer
    if not isinstance(stmt, ParallelFor):
        return None
    stores = [n for n in walk(stmt) if isinstance(n, Store) and n.buffer.storage is tile.storage]
    if stores and (whole_store(stmt) is not stores[0] or not _reads_own(stmt, stores[0])):
        return None

    def scaled(n: Node) -> Node | None:
        if not isinstance(n, Load) or n.buffer is not tile:
            return None
        return binary("*", n, Const(found.factor, n.dtype))

    return rewrite(stmt, scaled)


def _reads_own(stmt: Stmt, store: Store) -> bool:
    """Whether a statement that overwrites the tile reads of it only the element it writes."""
    loads = [n for n in walk(stmt) if isinstance(n, Load) and n.buffer is store.buffer]
    return all(_is_element(n, store) for n in loads)


def _begins_anew(body: list[Stmt], tile: Buffer) -> bool:
    """Whether the first statement of the block that touches the tile overwrites all of it."""
    first = next(s for s in body if uses(s, tile))
    if isinstance(first, Fill):
        return is_whole(first.dst)
    return isinstance(first, Gemm) and first.clear_accum is True and is_whole(first.c)


__all__ = ["forward_scales", "scaling_of", "whole_store"]
