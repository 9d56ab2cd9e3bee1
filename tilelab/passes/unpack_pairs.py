"""Conversions of 4-bit integers in registers to 16-bit floats, by pairs instead of one by one.

A loop over registers that takes numbers out of bytes by shifts and masks, in whatever spelling, is
found by running its expression on all 256 bytes. Hides the search and the proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelab.ir import (
    Cast,
    Expr,
    For,
    Let,
    Load,
    LoopKind,
    Node,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_expr,
    const_int,
    walk,
)
from tilelab.ir.rewrite import map_statements, rewrite, substitute
from tilelab.ir.simplify import divisibility
from tilelab.passes.evaluated import evaluated
from tilelab.passes.guards import flat_statements, let_values
from tilelab.thread.intrinsic import Array
from tilelab.thread.intrinsics.nibbles import MANTISSA, MOST_OFFSET, unpack_nibbles
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import loop

GROUPS = (8, 4, 2)  # numbers that one instruction takes out of 4, 2 or 1 bytes


@dataclass(frozen=True)
class Numbers:
    """What a conversion gives for the numbers n of a byte: `(n ^ flipped) + offset`."""

    flipped: int
    offset: int
    high_first: bool


def by_pairs(body: Sequence[Stmt], ctx: LowerContext) -> list[Stmt]:
    """Statements in which loops over registers convert numbers of 4 bits by pairs."""

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or node.kind not in (LoopKind.LANES, LoopKind.UNROLL):
            return node
        return _converted(node, ctx) or node

    return list(map_statements(Seq(tuple(body)), visit).body)


def _converted(node: For, ctx: LowerContext) -> Stmt | None:
    extent = const_int(node.extent) or 0
    node = replace(node, body=replace(node.body, body=tuple(flat_statements(node.body))))
    if const_int(node.start) != 0 or not all(isinstance(s, Let | Store) for s in node.body.body):
        return None
    lets = let_values(node.body)
    stored = {id(s.buffer.storage) for s in node.body.body if isinstance(s, Store)}
    casts = {id(c): c for s in node.body.body for c in walk(s) if _is_conversion(c)}
    for group in (g for g in GROUPS if extent % g == 0):
        place = ctx.fresh("g", extent // group) if extent > group else as_expr(0)
        found = {
            key: made
            for key, c in casts.items()
            if (made := _numbers(c, lets, node.var, place, group, stored)) is not None
        }
        if found:
            return _rebuilt(node, casts, found, place, group, ctx)
    return None


def _is_conversion(node: Node) -> bool:
    return isinstance(node, Cast) and node.dtype.name in MANTISSA and node.a.dtype.is_int


def _numbers(
    node: Any, lets: Mapping[Var, Expr], var: Var, place: Expr, group: int, stored: set[int]
) -> tuple[Numbers, Load] | None:
    """What a conversion gives in groups of neighbours, and the first byte of a group; None where
    they do not fill whole bytes of registers."""
    code = substitute(node.a, lets)
    first: Load | None = None
    kinds: set[Numbers | None] = set()
    for half in range(0, group, 2):
        pair = [substitute(code, {var: place * group + half + n}) for n in (0, 1)]
        loads = [n for x in pair for n in walk(x) if isinstance(n, Load)]
        if not loads or not all(_is_byte(n, stored) for n in loads):
            return None
        first = loads[0] if first is None else first
        wanted = first.indices[-1] + half // 2
        if any(n.buffer is not first.buffer or n.indices[-1].key != wanted.key for n in loads):
            return None
        kinds.add(_kind(_table(pair[0]), _table(pair[1])))
    (kind, *others) = kinds
    if others or kind is None or first is None or divisibility(first.indices[-1]) % (group // 2):
        return None
    return kind, first


def _is_byte(load: Load, stored: set[int]) -> bool:
    buffer = load.buffer
    own = buffer.scope is Scope.LOCAL and buffer.rank == 1 and id(buffer.storage) not in stored
    return own and buffer.dtype.is_int and buffer.dtype.bits == 8


def _kind(low: Array | None, high: Array | None) -> Numbers | None:
    """The form of the numbers that a byte's two conversions give, by byte."""
    if low is None or high is None:
        return None
    codes = np.arange(256)
    for high_first in (False, True):
        first, second = (high, low) if high_first else (low, high)
        for flipped in (0, 8):
            offset = int(first[0]) - flipped
            values = (np.arange(16) ^ flipped) + offset
            same = (values[codes & 15] == first).all() and (values[codes >> 4] == second).all()
            if same and abs(offset) <= MOST_OFFSET:
                return Numbers(flipped, offset, high_first)
    return None


def _table(e: Expr) -> Array | None:
    """An expression of one byte for all its values; None where it has others in it."""
    found = evaluated(e, _every_byte)
    return None if found is None else np.broadcast_to(found, (256,))


def _every_byte(leaf: Load | Var) -> Array | None:
    is_byte = isinstance(leaf, Load)
    return np.arange(256, dtype=np.uint8).view(leaf.dtype.numpy) if is_byte else None


def _rebuilt(
    node: For,
    casts: Mapping[int, Any],
    found: Mapping[int, tuple[Numbers, Load]],
    place: Expr,
    group: int,
    ctx: LowerContext,
) -> Stmt:
    """The loop in groups: the numbers of one come first, then the statements that use them."""
    count = (const_int(node.extent) or 0) // group
    inner = ctx.fresh(node.var.name, group)
    unpack: list[Stmt] = []
    values: dict[int, Load] = {}
    for key, (kind, byte) in found.items():
        dtype = casts[key].dtype
        made = ctx.temp(f"{byte.buffer.name}_numbers", count * group, dtype)
        record = unpack_nibbles(group, dtype.name, kind.flipped, kind.offset, kind.high_first)
        to, source = Ref(made, (place * group,)), Ref(byte.buffer, byte.indices)
        unpack.append(Invoke(record, (to, source), loc=node.loc))
        values[key] = Load(made, (place * group + inner,))

    def visit(n: Node) -> Node | None:
        return place * group + inner if n is node.var else values.get(id(n))

    body = list(_used([rewrite(s, visit) for s in node.body.body]))
    steps: list[Stmt] = [*unpack, loop(inner, group, node.kind, body, node.loc)]
    names = ", ".join(sorted({byte.buffer.name for _, byte in found.values()}))
    ctx.note(f"4-bit integers in {names} become floats by pairs", node)
    if not isinstance(place, Var):
        return Seq(tuple(steps), loc=node.loc)
    return replace(loop(place, count, LoopKind.UNROLL, steps, node.loc), attrs=node.attrs)


def _used(body: Sequence[Stmt]) -> Iterator[Stmt]:
    """Statements without names that nothing refers to any more."""
    for number, s in enumerate(body):
        rest = (n for later in body[number + 1 :] for n in walk(later))
        if not isinstance(s, Let) or any(n is s.var for n in rest):
            yield s
