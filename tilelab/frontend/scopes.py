"""The last check of a trace: every variable and buffer is used where it exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelab.errors import Loc, TileRuntimeError, TileValueError
from tilelab.ir import (
    Buffer,
    For,
    Function,
    Kernel,
    Load,
    Node,
    ParallelFor,
    ScalarParam,
    Seq,
    Stmt,
    Store,
    TensorParam,
    Var,
    children,
)
from tilelab.ir.verify import DECLARES

Known = dict[int, Node]
_BINDS: dict[type[Node], Callable[[Any], tuple[Node, ...]]] = {
    For: lambda s: (s.var,),
    ParallelFor: lambda s: s.vars,
    Kernel: lambda s: (*s.block_vars, *s.thread_vars),
}


def check_scopes(function: Function) -> None:
    """Raise TileRuntimeError (TL1410) for a variable or buffer used outside its region, and
    TileValueError (TL1484) for a dynamic size that no tensor determines."""
    known: Known = {id(v): v for v in function.sizes}
    for param in function.params:
        thing = param.var if isinstance(param, ScalarParam) else param.buffer
        known[id(thing)] = thing
    known.update({id(b): b for b in function.workspaces})
    for kernel in function.kernels:
        _visit(kernel, known, kernel.loc)
    assert all(isinstance(p, TensorParam | ScalarParam) for p in function.params)


def _visit(node: Node, known: Known, loc: Loc | None) -> None:
    if isinstance(node, Stmt):
        loc = node.loc or loc
    binds = _BINDS.get(type(node))
    if binds is not None:
        known = {**known, **{id(v): v for v in binds(node)}}
    if isinstance(node, Seq):
        _visit_seq(node, known, loc)
        return
    for child in _used(node):
        if isinstance(child, Var | Buffer):
            _check(child, known, loc)
        else:
            _visit(child, known, loc)


def _visit_seq(block: Seq, known: Known, loc: Loc | None) -> None:
    inside = dict(known)
    for stmt in block.body:
        declares = DECLARES.get(type(stmt))
        found = None if declares is None else declares(stmt)
        if found is None:
            _visit(stmt, inside, loc)
            continue
        new, uses = found
        for use in uses:
            _visit(use, inside, stmt.loc)
        inside[id(new)] = new


def _used(node: Node) -> Iterator[Node]:
    yield from children(node)
    if isinstance(node, Var):
        yield node
    if isinstance(node, Load | Store):
        yield node.buffer


def _check(thing: Var | Buffer, known: Known, loc: Loc | None) -> None:
    if id(thing) in known:
        return
    if isinstance(thing, Var) and thing.role == "size":
        raise TileValueError(
            f"the dynamic size {thing.name} appears in no tensor's shape, so no call determines it",
            code="TL1484", loc=loc, hint=f"give a tensor parameter the extent {thing.name}",
        )  # fmt: skip
    raise TileRuntimeError(
        f"{thing.name} is used outside its defining region", code="TL1410", loc=loc,
        hint="define it before the branch or loop, or carry the value in a T.alloc_var",
    )  # fmt: skip
