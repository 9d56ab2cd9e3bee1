"""Rules of T.Parallel that a program may break without noticing."""

from __future__ import annotations

from collections.abc import Iterator

from tilelab.errors import TileValueError
from tilelab.ir import (
    If,
    Load,
    Node,
    ParallelFor,
    ReducerBuffer,
    Scope,
    Store,
    Var,
    children,
    const_int,
    walk,
)


def check_parallel(loop: ParallelFor) -> None:
    """Refuse to accumulate into a fragment along a loop axis that does not index it.

    Points of the loop run side by side, on different threads: `s[i] += x[i, j]` over i and j has
    no order along j. Raises TileValueError (TL1715).
    """
    vars = [v for v, e in zip(loop.vars, loop.extents, strict=True) if const_int(e) != 1]
    for store in _unconditional_stores(loop.body):
        if isinstance(store.buffer, ReducerBuffer):
            continue  # gathers partial results and combines them at the end
        if store.buffer.scope is not Scope.FRAGMENT or not _reads(store):
            continue
        used = {id(n) for i in store.indices for n in walk(i) if isinstance(n, Var)}
        missing = [v.name for v in vars if id(v) not in used]
        if missing:
            name = store.buffer.name
            axes = ", ".join(missing)
            raise TileValueError(
                f"{name} is accumulated along {axes}, which does not index it: the points of "
                "T.Parallel run side by side on different threads",
                code="TL1715",
                loc=store.loc or loop.loc,
                hint=f"use T.reduce_sum (or another T.reduce_*), or a T.serial loop over {axes}",
            )


def _unconditional_stores(node: Node) -> Iterator[Store]:
    for child in children(node):
        if isinstance(child, Store):
            yield child
        elif not isinstance(child, If):
            yield from _unconditional_stores(child)


def _reads(store: Store) -> bool:
    """Whether the new value depends on the old one."""
    return any(isinstance(n, Load) and n.buffer is store.buffer for n in walk(store.value))
