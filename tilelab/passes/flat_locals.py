"""A private array of several axes becomes registers in a row. Hides the order: row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tilelab.ir import Buffer, Expr, Load, Node, Seq, Store, as_expr
from tilelab.ir.rewrite import rewrite
from tilelab.thread.nodes import Ref


def flat_locals(body: Seq, arrays: Sequence[Buffer]) -> tuple[Seq, tuple[Buffer, ...]]:
    """`body` and its register arrays with every array on one axis; the same objects where all of
    them are."""
    flat = _flattened(arrays)
    if not flat:
        return body, tuple(arrays)

    def renamed(n: Node) -> Node | None:
        if isinstance(n, Load | Store | Ref) and id(n.buffer) in flat:
            place: dict[str, Any] = {"buffer": flat[id(n.buffer)], "indices": _number(n)}
            if isinstance(n, Store):
                place["value"] = rewrite(n.value, renamed)
            return replace(n, **place)
        return flat.get(id(n))

    def _number(n: Load | Store | Ref) -> tuple[Expr, ...]:
        return (_in_a_row(n.buffer, (rewrite(i, renamed) for i in n.indices)),)

    return rewrite(body, renamed), tuple(flat.get(id(b), b) for b in arrays)


def _flattened(arrays: Sequence[Buffer]) -> dict[int, Buffer]:
    """The arrays that change, by identity: those of several axes, and views of them."""
    flat: dict[int, Buffer] = {}
    for b in arrays:
        if b.alias_of is None and b.rank != 1:
            flat[id(b)] = replace(b, shape=(prod(b.static_shape),), origin=b)
    for b in arrays:
        storage = flat.get(id(b.storage))
        if b.alias_of is not None and (storage is not None or b.rank != 1):
            home = b.storage if storage is None else storage
            flat[id(b)] = replace(b, shape=(prod(b.static_shape),), alias_of=home, origin=b)
    return flat


def _in_a_row(buffer: Buffer, indices: Iterable[Expr]) -> Expr:
    number: Expr = as_expr(0)
    for extent, index in zip(buffer.static_shape, indices, strict=True):
        number = number * extent + index
    return number
