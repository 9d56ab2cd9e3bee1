"""recognise-copies: a T.Parallel loop that only moves a tile becomes a copy.

`for i, j in T.Parallel(64, 32): s[i, j] = A[r + i, c + j]` means T.copy(A[r, c], s): as a copy it
may run ahead in a pipeline (TMA, cp.async) and takes wide accesses.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelab.ir import (
    Cast,
    Expr,
    Function,
    Load,
    Node,
    ParallelFor,
    Region,
    Scope,
    Store,
    Var,
    as_expr,
    const_int,
    walk,
)
from tilelab.ir.rewrite import rewrite_statements
from tilelab.ir.simplify import linear, rebuild
from tilelab.passes.base import PassContext, tile_pass
from tilelab.tile.ops.copy import Copy


@tile_pass("recognise-copies", needs=("checked",))
def recognise_copies(function: Function, ctx: PassContext) -> Function:
    """Turn elementwise loops that only move a tile into copies."""

    unguarded = bool(ctx.option("tl.disable_safe_memory_legalize", False))

    def recognise(node: Node) -> Node | None:
        if not isinstance(node, ParallelFor):
            return None
        copy = _as_copy(node)
        if copy is not None and unguarded and not _inside(copy):
            copy = None  # a copy is always guarded: the program asked for plain accesses
        if copy is not None:
            ctx.note(f"the loop only moves a tile: copy {copy.label()}", node)
        return node if copy is None else copy

    return rewrite_statements(function, recognise)


def _inside(copy: Copy) -> bool:
    """Whether bounds prove that both regions of a copy lie inside their buffers."""
    return all(
        start.bounds[0] is not None
        and start.bounds[0] >= 0
        and (room := (size - extent - start).bounds[0]) is not None
        and room >= 0
        for region in (copy.src, copy.dst)
        for start, extent, size in zip(
            map(as_expr, region.starts),
            map(as_expr, region.extents),
            map(as_expr, region.buffer.shape),
            strict=True,
        )
    )


@dataclass(frozen=True)
class _Side:
    """An access as a tile: where it starts, and which axis each loop variable runs along."""

    starts: tuple[Expr, ...]
    axes: tuple[int, ...]


def _as_copy(loop: ParallelFor) -> Copy | None:
    statement = loop.body.body[0] if len(loop.body.body) == 1 else None
    if not isinstance(statement, Store) or loop.attrs:
        return None
    value = statement.value
    if isinstance(value, Cast) and value.dtype == statement.buffer.dtype:
        value = value.a
    extents = tuple(const_int(e) for e in loop.extents)
    if not isinstance(value, Load) or any(e is None for e in extents):
        return None
    if Scope.FRAGMENT in (value.buffer.scope, statement.buffer.scope):
        return None  # layouts of fragments follow from loops; nothing is gained by a copy
    if Scope.LOCAL in (value.buffer.scope, statement.buffer.scope):
        return None
    src, dst = (_side(x.indices, loop.vars) for x in (value, statement))
    if src is None or dst is None:
        return None
    sizes = tuple(int(e or 0) for e in extents)
    regions = (_region(value, src, sizes), _region(statement, dst, sizes))
    if _overlap(value, statement):
        return None
    return Copy(*regions, loc=statement.loc or loop.loc)


def _overlap(value: Load, statement: Store) -> bool:
    """A tensor copied onto itself depends on the order of elements: leave it as written."""
    return value.buffer is statement.buffer


def _region(access: Load | Store, side: _Side, sizes: tuple[int, ...]) -> Region:
    extents: list[Expr | int] = [1] * access.buffer.rank
    for axis, size in zip(side.axes, sizes, strict=True):
        extents[axis] = size
    return Region(access.buffer, side.starts, tuple(extents), side.axes)


def _side(indices: tuple[Expr, ...], vars: tuple[Var, ...]) -> _Side | None:
    """None unless every loop variable runs along one axis of its own, in order, with step 1."""
    where: dict[int, int] = {}
    starts: list[Expr] = []
    for axis, index in enumerate(indices):
        terms, constant = linear(as_expr(index))
        for number, var in enumerate(vars):
            term = terms.pop(var.key, None)
            if term is None:
                continue
            if term[1] != 1 or number in where or axis in where.values():
                return None
            where[number] = axis
        start = rebuild((terms, constant), as_expr(index).dtype)
        if any(n is v for v in vars for n in walk(start)):
            return None
        starts.append(start)
    axes = tuple(where[n] for n in range(len(vars)) if n in where)
    if len(axes) != len(vars) or list(axes) != sorted(axes):
        return None
    return _Side(tuple(starts), axes)
