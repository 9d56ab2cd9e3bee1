"""Rebuild a tree with variables, buffers or whole nodes replaced, simplifying on the way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tilelab.ir.buffer import Buffer
from tilelab.ir.build import binary, call, cast, select, unary
from tilelab.ir.core import Node, NodeT, map_children
from tilelab.ir.expr import Binary, Call, Cast, Const, Expr, Select, Unary, Var
from tilelab.ir.simplify import fold_binary, fold_minmax

Replace = Callable[[Node], "Node | None"]


def _binary(node: Binary, fn: Callable[[Any], Any]) -> Expr:
    a, b = fn(node.a), fn(node.b)
    if a is node.a and b is node.b:
        return node
    if a.dtype == node.a.dtype and b.dtype == node.b.dtype:
        return fold_binary(node.op, a, b, node.dtype)
    return binary(node.op, a, b)  # what stands for a variable is wider than it


def _unary(node: Unary, fn: Callable[[Any], Any]) -> Expr:
    a = fn(node.a)
    return node if a is node.a else unary(node.op, a)


def _cast(node: Cast, fn: Callable[[Any], Any]) -> Expr:
    a = fn(node.a)
    return node if a is node.a else cast(a, node.dtype)


def _select(node: Select, fn: Callable[[Any], Any]) -> Expr:
    cond, a, b = fn(node.cond), fn(node.a), fn(node.b)
    if cond is node.cond and a is node.a and b is node.b:
        return node
    return select(cond, a, b, guard=node.guard)


def _call(node: Call, fn: Callable[[Any], Any]) -> Expr:
    args = tuple(fn(a) for a in node.args)
    if all(a is b for a, b in zip(args, node.args, strict=True)):
        return node
    if any(new.dtype != old.dtype for new, old in zip(args, node.args, strict=True)):
        return call(node.fn, *args)
    if node.fn in ("min", "max"):
        return fold_minmax(node.fn, args, node.dtype)
    return dataclasses.replace(node, args=args)


_REBUILD: dict[type[Node], Callable[[Any, Callable[[Any], Any]], Expr]] = {
    Binary: _binary, Unary: _unary, Cast: _cast, Select: _select, Call: _call,
}  # fmt: skip


def rewrite(node: Node, replace: Replace) -> Any:
    """`node` with every node for which `replace` returns something replaced by that.

    Parents are asked first; what `replace` returns is not visited again. Expressions above a
    change are simplified anew; unchanged subtrees are the same objects.
    """

    def visit(n: Node) -> Node:
        new = replace(n)
        if new is not None:
            return new
        rebuild = _REBUILD.get(type(n))
        return rebuild(n, visit) if rebuild is not None else map_children(n, visit)

    return visit(node)


def rewrite_statements(node: NodeT, replace: Replace) -> NodeT:
    """Like `rewrite`, below `node`, but expressions are neither asked nor entered."""

    def visit(n: Node) -> Node:
        if isinstance(n, Expr):
            return n
        new = replace(n)
        return map_children(n, visit) if new is None else new

    return map_children(node, visit)


def map_statements(node: NodeT, fn: Callable[[Node], Node]) -> NodeT:
    """`node` with `fn` applied to every node below it that is no expression, innermost first."""

    def visit(n: Node) -> Node:
        return n if isinstance(n, Expr) else fn(map_children(n, visit))

    return map_children(node, visit)


def substitute(
    node: Node,
    variables: Mapping[Var, Expr | int] | None = None,
    buffers: Mapping[Buffer, Buffer] | None = None,
) -> Any:
    """`node` with variables and buffers exchanged."""
    by_var = {
        id(k): v if isinstance(v, Expr) else Const(v, k.dtype) for k, v in (variables or {}).items()
    }
    by_buffer = {id(k): v for k, v in (buffers or {}).items()}

    def replace(n: Node) -> Node | None:
        found = by_var.get(id(n))
        return by_buffer.get(id(n)) if found is None else found

    return rewrite(node, replace)
