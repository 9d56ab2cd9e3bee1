"""Who reads and writes which buffer: whole-program facts of tile IR, one record per access."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilelab.ir import Buffer, Load, Node, Stmt, Store, children, walk
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.op import TileOp

_ROLES = {"reads": (False,), "writes": (True,), "updates": (False, True)}


@dataclass(frozen=True)
class Touch:
    """One access of one statement to a buffer."""

    buffer: Buffer
    stmt: Stmt
    is_write: bool


def touches(node: Node) -> Iterator[Touch]:
    """Every access under `node`: operands of tile ops and instructions, stores, and elements read
    in values, indices, conditions and loop bounds."""
    for n in walk(node):
        if isinstance(n, Stmt):
            yield from _of_statement(n)


def uses(node: Node, buffer: Buffer) -> bool:
    """Whether something under `node` reads or writes the storage of `buffer`."""
    return any(t.buffer.storage is buffer.storage for t in touches(node))


def writes(node: Node, buffer: Buffer) -> bool:
    """Whether something under `node` writes the storage of `buffer`."""
    return any(t.is_write and t.buffer.storage is buffer.storage for t in touches(node))


def _of_statement(stmt: Stmt) -> Iterator[Touch]:
    for load in _loads(stmt):
        yield Touch(load.buffer, stmt, False)
    if isinstance(stmt, TileOp):
        yield from _of_op(stmt)
        return
    rule = _RULES.get(type(stmt))
    if rule is not None:
        yield from rule(stmt)


def _loads(node: Node) -> Iterator[Load]:
    """Elements read by a statement itself, not by statements inside it."""
    for child in children(node):
        if isinstance(child, Stmt):
            continue
        if isinstance(child, Load):
            yield child
        yield from _loads(child)


def _of_op(op: TileOp) -> Iterator[Touch]:
    yield from (Touch(r.buffer, op, False) for r in op.read_regions())
    yield from (Touch(r.buffer, op, True) for r in op.written_regions())


def _of_store(stmt: Store) -> Iterator[Touch]:
    yield Touch(stmt.buffer, stmt, True)


def _of_invoke(stmt: Invoke) -> Iterator[Touch]:
    for param, operand in zip(stmt.intrinsic.operands, stmt.operands, strict=True):
        if isinstance(operand, Ref):
            for is_write in _ROLES.get(param.role, ()):
                yield Touch(operand.buffer, stmt, is_write)


_RULES: dict[type[Stmt], Callable[[Any], Iterator[Touch]]] = {Store: _of_store, Invoke: _of_invoke}
