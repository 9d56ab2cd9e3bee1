"""Loops of one thread over neighbours in memory: `for i in T.vectorized(4)` moves 16 bytes at once.

The loop is taken as a T.Parallel loop of a single thread. Hides when its iterations may load before
any of them stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilelab.ir import (
    Expr,
    For,
    Let,
    Load,
    LoopKind,
    ParallelFor,
    Scope,
    Stmt,
    Store,
    Var,
    as_expr,
    const_int,
    walk,
)
from tilelab.ir.rewrite import substitute
from tilelab.ir.simplify import linear
from tilelab.layout import Fragment
from tilelab.passes.guards import let_values
from tilelab.passes.lower_loops import order_of
from tilelab.passes.lower_wide import BATCH_BYTES, either
from tilelab.tile.context import LowerContext

MAX_ITERATIONS = 64  # of a loop that is written out


def lower_own(
    s: For, ctx: LowerContext, may_alias: bool, elements: Callable[[], list[Stmt]]
) -> list[Stmt]:
    """A loop that one thread runs, by wide accesses where its iterations allow them; else what
    `elements` gives. `may_alias`: tensors of different names may share memory."""
    extent = const_int(s.extent) or 0
    if not _is_short(s, extent) or not _independent(s, may_alias):
        return elements()
    node = ParallelFor((s.var,), (extent,), s.body, loc=s.loc)
    mine = replace(ctx, tid=as_expr(0), num_threads=1)
    kind = LoopKind.LANES if order_of(s) is LoopKind.LANES else LoopKind.UNROLL
    return either(node, Fragment.blocked((extent,), 1, extent), mine, elements, kind)


def _is_short(s: For, extent: int) -> bool:
    """Whether a loop counts few iterations from 0: a serial one no more than one batch of loads."""
    if const_int(s.start) != 0 or const_int(s.step) != 1 or not 2 <= extent <= MAX_ITERATIONS:
        return False
    if s.kind is LoopKind.SERIAL:
        accesses = [n for n in walk(s.body) if isinstance(n, Load) and n.buffer.scope.is_memory]
        return extent * sum(n.buffer.dtype.bytes for n in accesses) <= BATCH_BYTES
    return s.kind in (LoopKind.LANES, LoopKind.UNROLL)


def _independent(s: For, may_alias: bool) -> bool:
    """Whether all iterations may read memory before the first one writes it: each touches an
    element of its own of every tensor and tile that the loop writes."""
    nodes = list(walk(s.body))
    accesses = [n for n in nodes if isinstance(n, Load | Store)]
    if any(not (n.buffer.scope.is_memory or n.buffer.scope is Scope.LOCAL) for n in accesses):
        return False  # fragments are spread over threads
    stored = {id(n.buffer.storage) for n in accesses if isinstance(n, Store)}
    named = (x for n in nodes if isinstance(n, Let) for x in walk(n.value) if isinstance(x, Load))
    if any(id(n.buffer.storage) in stored for n in named):
        return False  # a name keeps what was there before
    lets = let_values(s.body)
    places: dict[int, set[object]] = {}
    for n in accesses:
        if n.buffer.scope.is_memory and id(n.buffer.storage) in stored:
            indices = [substitute(i, lets) for i in n.indices]
            if not _apart(indices, s.var):
                return False
            key = (id(n.buffer), *(i.key for i in indices))
            places.setdefault(id(n.buffer.storage), set()).add(key)
    if any(len(p) > 1 for p in places.values()):
        return False
    return not (may_alias and places and s.kind is not LoopKind.LANES)


def _apart(indices: Sequence[Expr], var: Var) -> bool:
    """Whether different iterations have different places: an index grows with the loop's variable
    and nothing else in it does."""
    for index in indices:
        terms, _ = linear(index)
        own = terms.pop(var.key, None)
        rest = (n for t, _ in terms.values() for n in walk(t))
        if own is not None and not any(n is var for n in rest):
            return True
    return False
