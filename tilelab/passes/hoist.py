"""Scalar statements that every warp role may run: offsets and flags computed before the tiles.

With roles, values that both need (where a group of rows starts, which expert a block serves) are
computed by all threads before the roles part. Only statements that read tensors the kernel does
not write and registers of their own qualify.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilelab.ir import (
    Alloc,
    Break,
    Buffer,
    Continue,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Node,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    walk,
)
from tilelab.tile.op import TileOp

_SCALAR = (Let, Store, For, If, While, Seq, Break, Continue, Alloc)


def split_scalar(kernel: Kernel) -> tuple[list[Stmt], list[Stmt]]:
    """The kernel's statements as (scalar ones that may run first, the others); no allocations."""
    written = _stored(kernel)
    scalar: list[Stmt] = []
    rest: list[Stmt] = []
    made: set[int] = set()  # registers and variables that the others write
    read: set[int] = set()  # registers that the others read
    for stmt in kernel.body.body:
        if isinstance(stmt, Alloc):
            continue
        free = not made.intersection(_names(stmt)) and not read.intersection(_stored(stmt))
        if free and _is_scalar(stmt, written):
            scalar.append(stmt)
            continue
        rest.append(stmt)
        made.update(_stored(stmt))
        made.update(id(n.var) for n in walk(stmt) if isinstance(n, Let))
        read.update(id(n.buffer) for n in walk(stmt) if isinstance(n, Load))
    return scalar, rest


def unavailable(needed: Iterable[Expr], rest: Sequence[Stmt]) -> str:
    """Why expressions cannot be evaluated before `rest` has run; empty when they can."""
    bound = {id(n.var) for s in rest for n in walk(s) if isinstance(n, Let)}
    stored = {i for s in rest for i in _stored(s)}
    for node in (n for e in needed for n in walk(e)):
        if isinstance(node, Var) and id(node) in bound:
            return f"{node.name} is computed by the threads that use the tiles"
        if isinstance(node, Load) and id(node.buffer) in stored:
            return f"{node.buffer.name} is changed by the threads that use the tiles"
    return ""


def _is_scalar(stmt: Stmt, written: set[int]) -> bool:
    nodes = list(walk(stmt))
    stores = (n.buffer.scope is Scope.LOCAL for n in nodes if isinstance(n, Store))
    loads = (_readable(n.buffer, written) for n in nodes if isinstance(n, Load))
    return all(_plain(n) for n in nodes) and all(stores) and all(loads)


def _plain(node: Node) -> bool:
    """Whether a node is no statement, or one of the scalar kinds that runs in order."""
    if isinstance(node, For):
        return node.kind is not LoopKind.PIPELINED
    return isinstance(node, _SCALAR) or not isinstance(node, Stmt)


def _readable(buffer: Buffer, written: set[int]) -> bool:
    if buffer.scope is Scope.GLOBAL:
        return id(buffer) not in written
    return buffer.scope is Scope.LOCAL


def _stored(node: Node) -> set[int]:
    """Buffers that a node writes, by single elements or whole tiles."""
    found = {id(n.buffer) for n in walk(node) if isinstance(n, Store)}
    ops = [n for n in walk(node) if isinstance(n, TileOp)]
    return found | {id(r.buffer) for op in ops for r in op.written_regions()}


def _names(stmt: Stmt) -> set[int]:
    """Registers and variables that a scalar statement reads or writes."""
    found = {id(n.buffer) for n in walk(stmt) if isinstance(n, Load | Store)}
    return found | {id(n) for n in walk(stmt) if isinstance(n, Var)}
