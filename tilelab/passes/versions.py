"""One copy of a shared buffer for each pipeline stage: used by both realisers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilelab.ir import (
    Buffer,
    Expr,
    For,
    Let,
    Load,
    Node,
    ParallelFor,
    Region,
    Seq,
    Stmt,
    Store,
    Var,
    walk,
)
from tilelab.ir.rewrite import rewrite, substitute
from tilelab.layout.shared import BOX_ALIGNMENT, padded, row_major
from tilelab.tile.ops.copy import Copy


def versioned(buffer: Buffer, stages: int, boxes: bool = False) -> Buffer:
    """The buffer with a leading axis of `stages` slots; with `boxes`, those of a vector begin
    where TMA can write (other tiles: `slot_refusal`)."""
    layout = buffer.layout  # one that the program chose
    if layout is not None:
        layout = layout.staged(stages)
    if boxes and buffer.rank == 1 and slot_refusal(buffer, stages, vectors=True):
        bits = buffer.dtype.bits
        shape = (stages, *buffer.static_shape)
        layout = padded(shape, bits, -shape[-1] % (BOX_ALIGNMENT * 8 // bits))
    return replace(buffer, shape=(stages, *buffer.shape), origin=buffer, layout=layout)


def slot_refusal(buffer: Buffer, stages: int, vectors: bool = False) -> str:
    """Why TMA cannot write to each of `stages` slots of a tile; empty when it can. Vectors are
    padded, so only `vectors` asks about them."""
    if stages < 2 or (buffer.rank == 1 and not vectors):
        return ""
    layout = buffer.layout or row_major(buffer.static_shape, buffer.dtype.bits)
    if layout.num_bytes % BOX_ALIGNMENT == 0:
        return ""
    return (
        f"slots of {buffer.name} take {layout.num_bytes} bytes each, and TMA writes at "
        f"multiples of {BOX_ALIGNMENT}"
    )


def in_slot(
    body: Sequence[Stmt],
    buffers: Mapping[int, Buffer],
    slot: Expr,
    variables: Mapping[Var, Expr] | None = None,
) -> tuple[Stmt, ...]:
    """Statements with each buffer (by id) replaced by slot `slot` of its versioned form."""
    by_var = {id(v): e for v, e in (variables or {}).items()}

    def visit(n: Node) -> Node | None:
        found = by_var.get(id(n))
        if found is not None:
            return found
        rule = _ACCESSES.get(type(n))
        slots = None if rule is None else buffers.get(id(n.buffer))  # type: ignore[attr-defined]
        return None if rule is None or slots is None else rule(n, slots, slot, again)

    def again(n: Expr) -> Expr:
        return rewrite(n, visit)

    return tuple(rewrite(s, visit) for s in body)


Again = Callable[[Expr], Expr]


def _load(load: Load, slots: Buffer, slot: Expr, again: Again) -> Load:
    return Load(slots, (slot, *(again(i) for i in load.indices)))


def _store(store: Store, slots: Buffer, slot: Expr, again: Again) -> Store:
    indices = (slot, *(again(i) for i in store.indices))
    return Store(slots, indices, again(store.value), loc=store.loc)


def _region(region: Region, slots: Buffer, slot: Expr, again: Again) -> Region:
    """The region in its slot; `again` applies the same replacement to the indices."""
    starts = tuple(again(s) for s in region.starts)
    axes = tuple(a + 1 for a in region.tile_axes)
    return Region(slots, (slot, *starts), (1, *region.extents), axes)


_ACCESSES: dict[type[Node], Callable[[Any, Buffer, Expr, Again], Node]] = {
    Region: _region,
    Load: _load,
    Store: _store,
}


def entries_named(copies: Iterable[Copy]) -> tuple[list[Let], list[Copy]]:
    """Copies whose places come from tables (`KV[table[b, k], ...]`), each entry read once, into a
    name: the names, and the copies that use them."""
    names: dict[object, Let] = {}

    def named(n: Node) -> Node | None:
        if not isinstance(n, Load):
            return None
        if n.key not in names:
            entry = Var(f"{n.buffer.name}_entry", n.dtype)
            names[n.key] = Let(entry, n)
        return names[n.key].var

    done: list[Copy] = []
    for copy in copies:
        starts = tuple(rewrite(s, named) for s in copy.src.starts)
        done.append(replace(copy, src=replace(copy.src, starts=starts)))
    return [replace(let, loc=done[0].loc) for let in names.values()], done


def with_own_variables(
    body: Sequence[Stmt], values: Mapping[Var, Expr] | None = None
) -> tuple[Stmt, ...]:
    """A copy of statements whose loops and names have variables of their own; other variables as
    `values` says."""
    own: dict[Var, Expr] = dict(values or {})
    for n in (n for s in body for n in walk(s)):
        if isinstance(n, ParallelFor):
            own.update((v, _twin(v)) for v in n.vars)
        elif isinstance(n, For | Let):
            own[n.var] = _twin(n.var)
    return tuple(substitute(s, own) for s in body)


def _twin(v: Var) -> Var:
    return Var(v.name, v.dtype, v.lo, v.hi)


def sequence(body: Sequence[Stmt], like: Stmt) -> Seq:
    """A Seq at the place of `like`."""
    return Seq(tuple(body), loc=like.loc)
