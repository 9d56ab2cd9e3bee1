"""Tensors whose address a table holds: what T.make_tensor gives a body, and how it is written down.

The body sees a tensor of its own shape. When its kernel closes, every access gets the place in
the table in front of its indices and goes to an `ir.Pool`, so that later passes meet an ordinary
index and no pointer. Hides that rewriting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tilelab.errors import TileNotSupported, TileValueError
from tilelab.frontend.session import OpenKernel, Session
from tilelab.frontend.types import Dim, TensorType
from tilelab.ir import (
    Alloc,
    Buffer,
    Expr,
    Let,
    Load,
    Node,
    Pool,
    Region,
    Scope,
    Seq,
    Store,
    Var,
    as_expr,
    const_int,
    map_children,
    walk,
)
from tilelab.ir.printer import to_text
from tilelab.thread.nodes import Ref

_STATE = "pools"
_PLACES = (Load, Store, Ref)


@dataclass(frozen=True, eq=False)
class Pointed(Buffer):
    """A tensor of a pool, at the place `entry` of its table."""

    pool: Pool = field(kw_only=True)
    entry: tuple[Expr, ...] = field(kw_only=True)


def pointed(session: Session, kernel: OpenKernel, address: Expr, kind: TensorType) -> Pointed:
    """The tensor of type `kind` at `address`, which must be an element of a tensor of addresses.

    The place in the table is taken now: variables in its index may change later. Raises
    TileValueError (TL1770) for other addresses, TileNotSupported (TL1770) for shapes known at run
    time and for elements that share bytes.
    """
    load = _looked_up(session, address)
    _check_kind(kind)
    name = session.hinted("tensor")
    pool = _pool(session, kernel, load.buffer, kind, name)
    entry: list[Expr] = []
    for index, extent in zip(load.indices, pool.table.shape, strict=True):
        known = const_int(extent)
        place = Var(
            session.fresh(f"{name}_entry"), index.dtype, 0, None if known is None else known - 1
        )
        session.emit(Let(place, index, loc=session.loc()), anywhere=True)
        entry.append(place)
    made = Pointed(
        name, kind.shape, kind.dtype, Scope.GLOBAL, strides=kind.strides, loc=session.loc(),
        pool=pool, entry=tuple(entry),
    )  # fmt: skip
    if _STATE not in kernel.state:
        kernel.closing.append(_follow)
    kernel.state.setdefault(_STATE, []).append(made)
    return made


def _looked_up(session: Session, address: Expr) -> Load:
    """The element of a table that an address is, by itself or by a name for it."""
    load: Any = address
    if isinstance(address, Var):
        lets = (s for block in session.blocks for s in block if isinstance(s, Let))
        load = next((s.value for s in lets if s.var is address), address)
    table = load.buffer if isinstance(load, Load) else None
    if table is None or table.scope is not Scope.GLOBAL or isinstance(table, Pool | Pointed):
        raise TileValueError(
            f"the address {to_text(address)} is no element of a tensor parameter", code="TL1770",
            loc=session.loc(),
            hint="declare a table, `ptrs: T.Tensor([n], T.ptr)`, and pass `ptrs[e]`",
        )  # fmt: skip
    moving = [n for i in load.indices for n in walk(i) if isinstance(n, Load)]
    if load is not address and moving:
        raise TileValueError(
            f"{to_text(address)} was read at {to_text(load)}, whose index may have changed since",
            code="TL1770", loc=session.loc(),
            hint=f"write T.make_tensor({to_text(load)}, shape, dtype)",
        )  # fmt: skip
    return load


def _check_kind(kind: TensorType) -> None:
    sizes = [*kind.shape, *(kind.strides or ())]
    unknown = next((to_text(as_expr(s)) for s in sizes if const_int(s) is None), None)
    if unknown is not None:
        raise TileNotSupported(
            f"a tensor of a table has the size {unknown}, which is known at run time only",
            code="TL1770",
            hint="give all tensors of the table one shape of constants, and guard what is less",
        )  # fmt: skip
    if not kind.shape:
        raise TileNotSupported(
            "a tensor of a table has no axis", code="TL1770", hint="give a number the shape (1,)"
        )
    if kind.dtype.per_byte > 1:
        raise TileNotSupported(
            f"a tensor of a table holds {kind.dtype}, several in a byte", code="TL1770",
            hint="make a uint8 tensor of it, and take the elements out of its bytes",
        )  # fmt: skip


def _pool(
    session: Session, kernel: OpenKernel, table: Buffer, kind: TensorType, name: str
) -> Pool:  # fmt: skip
    """The pool of a table and a type: one for each pair in a kernel."""
    made: list[Pointed] = kernel.state.get(_STATE, [])
    shape: tuple[Dim, ...] = (*table.shape, *kind.shape)
    strides = (*(0 for _ in table.shape), *kind.buffer(name).effective_strides())
    for known in (p.pool for p in made if p.pool.table is table):
        if (known.dtype, known.shape, known.strides) == (kind.dtype, shape, strides):
            return known
    pool = Pool(
        name, shape, kind.dtype, Scope.GLOBAL, strides=strides, loc=session.loc(), table=table
    )
    session.blocks[1].append(Alloc(pool, loc=session.loc()))
    return pool


# ---- when the kernel closes ---------------------------------------------------------------------


def _follow(body: Seq, kernel: OpenKernel) -> Seq:
    """A kernel's body with its accesses of pointed tensors sent to their pools.

    Raises TileNotSupported (TL1770) where something else is done with such a tensor.
    """
    for value in (*kernel.attrs.values(), tuple(kernel.layouts)):
        _refuse(next(_mentioned(value), None), kernel.loc, "it is named in an annotation")
    done = _sent(body)
    assert isinstance(done, Seq)
    for node in walk(done):
        held = node.buffer.alias_of if isinstance(node, Alloc) else node
        if isinstance(held, Pointed):
            loc = node.loc if isinstance(node, Alloc) else held.loc
            _refuse(held, loc, "it is used as a whole")
    return done


def _sent(node: Node) -> Node:
    node = map_children(node, _sent)
    held = getattr(node, "buffer", None)
    if not isinstance(held, Pointed):
        return node
    if isinstance(node, _PLACES):
        return replace(node, buffer=held.pool, indices=(*held.entry, *node.indices))
    if not isinstance(node, Region):
        return node
    ahead = len(held.entry)
    return replace(
        node,
        buffer=held.pool,
        starts=(*held.entry, *node.starts),
        extents=(*(1 for _ in held.entry), *node.extents),
        tile_axes=tuple(axis + ahead for axis in node.tile_axes),
    )


def _mentioned(value: Any) -> Iterator[Pointed]:
    """Pointed tensors that an annotation holds."""
    if isinstance(value, Pointed):
        yield value
        return
    items: Any = getattr(value, "items", None)
    parts: Any = items() if callable(items) else value
    if isinstance(value, dict | tuple | list):
        for part in parts:
            yield from _mentioned(part)


def _refuse(tensor: Pointed | None, loc: Any, why: str) -> None:
    if tensor is not None:
        raise TileNotSupported(
            f"{tensor.name} has its address in a table, and {why}", code="TL1770", loc=loc,
            hint="copy tiles of it, or access its elements",
        )  # fmt: skip
