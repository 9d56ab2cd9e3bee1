"""Nodes of both dialects: immutable, generically walkable, and cheap to keep before and after.

Every node is a frozen dataclass. `map_children` returns the node itself when nothing changed, so
a pass that touches one statement shares the rest of the tree, and a view can grey it by identity.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar, TypeVar

NodeT = TypeVar("NodeT", bound="Node")


class Node:
    """Base of expressions, statements, buffers and whole kernels.

    A leaf class (Buffer, Var) is compared by identity and never rebuilt by `map_children`.
    """

    is_leaf: ClassVar[bool] = False


@cache
def child_fields(kind: type[Node]) -> tuple[str, ...]:
    """Names of the fields of a node class that may hold nodes or tuples of nodes."""
    if kind.is_leaf:
        return ()
    skipped = {"loc", "dtype", "name", "reason", "note"}
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    return tuple(f.name for f in fields if f.name not in skipped and f.init)


def _parts(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _parts(item)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly under `node`, in field order."""
    for name in child_fields(type(node)):
        yield from _parts(getattr(node, name))


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything under it, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(list(children(top))))


def _map_value(value: Any, fn: Callable[[Node], Node]) -> Any:
    if isinstance(value, Node):
        return fn(value)
    if isinstance(value, tuple):
        mapped = [_map_value(item, fn) for item in value]  # pyright: ignore[reportUnknownVariableType]
        same = all(a is b for a, b in zip(mapped, value, strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return value if same else tuple(mapped)  # pyright: ignore[reportUnknownVariableType]
    return value


def map_children(node: NodeT, fn: Callable[[Node], Node]) -> NodeT:
    """`node` with `fn` applied to each direct child; the same object when no child changed."""
    changes: dict[str, Any] = {}
    for name in child_fields(type(node)):
        old = getattr(node, name)
        new = _map_value(old, fn)
        if new is not old:
            changes[name] = new
    if not changes:
        return node
    return dataclasses.replace(node, **changes)  # type: ignore[type-var]
