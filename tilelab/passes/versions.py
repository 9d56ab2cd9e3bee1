"""One copy of a shared buffer for each pipeline stage: used by both realisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilelab.ir import Buffer, Expr, Load, Node, Region, Seq, Stmt, Store, Var
from tilelab.ir.rewrite import rewrite


def versioned(buffer: Buffer, stages: int) -> Buffer:
    """The buffer with a leading axis of `stages` slots."""
    return replace(buffer, shape=(stages, *buffer.shape), origin=buffer)


def in_slot(
    body: Sequence[Stmt],
    buffers: Mapping[int, Buffer],
    slot: Expr,
    variables: Mapping[Var, Expr] | None = None,
) -> tuple[Stmt, ...]:
    """Statements with each buffer (by id) replaced by slot `slot` of its versioned form."""
    by_var = {id(v): e for v, e in (variables or {}).items()}

    def visit(n: Node) -> Node | None:
        if id(n) in by_var:
            return by_var[id(n)]
        if isinstance(n, Region) and id(n.buffer) in buffers:
            return _region(n, buffers[id(n.buffer)], slot, again)
        if isinstance(n, Load) and id(n.buffer) in buffers:
            return Load(buffers[id(n.buffer)], (slot, *(again(i) for i in n.indices)))
        if isinstance(n, Store) and id(n.buffer) in buffers:
            indices = (slot, *(again(i) for i in n.indices))
            return Store(buffers[id(n.buffer)], indices, again(n.value), loc=n.loc)
        return None

    def again(n: Expr) -> Expr:
        return rewrite(n, visit)

    return tuple(rewrite(s, visit) for s in body)


def _region(region: Region, buffer: Buffer, slot: Expr, again: Callable[[Expr], Expr]) -> Region:
    """The region in its slot; `again` applies the same replacement to the indices."""
    starts = tuple(again(s) for s in region.starts)
    axes = tuple(a + 1 for a in region.tile_axes)
    return Region(buffer, (slot, *starts), (1, *region.extents), axes)


def sequence(body: Sequence[Stmt], like: Stmt) -> Seq:
    """A Seq at the place of `like`."""
    return Seq(tuple(body), loc=like.loc)
