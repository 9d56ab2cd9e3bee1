"""Which variables of a thread may be read before the program sets them: they begin at 0.

TileLang gives such a variable 0 too; the simulator reports the read (TL2002).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.ir import Buffer, For, If, Load, Node, Seq, Store, children, const_int, walk
from tilelab.thread.nodes import Invoke, Ref


def may_be_unset(variable: Buffer, body: Node) -> bool:
    """Whether some path through `body` may read a variable before it sets it."""
    return _unset(variable, body) is not False


def _unset(variable: Buffer, node: Node) -> bool | None:
    """False: set first, on every path; True: perhaps read first; None: not mentioned."""
    rule = _RULES.get(type(node), _other)
    return rule(variable, node)


def _other(variable: Buffer, node: Node) -> bool | None:
    return _mentions(variable, node) or None


def _store(variable: Buffer, node: Store) -> bool | None:
    if any(_mentions(variable, c) for c in children(node)):
        return True
    return False if node.buffer is variable else None


def _seq(variable: Buffer, node: Seq) -> bool | None:
    found = (_unset(variable, s) for s in node.body)
    return next((f for f in found if f is not None), None)


def _loop(variable: Buffer, node: For) -> bool | None:
    if any(_mentions(variable, e) for e in (node.start, node.extent, node.step)):
        return True
    inside = _unset(variable, node.body)
    runs = (const_int(node.extent) or 0) > 0
    return True if inside is False and not runs else inside


def _branch(variable: Buffer, node: If) -> bool | None:
    if _mentions(variable, node.cond):
        return True
    sides = [_unset(variable, s) for s in (node.then, node.orelse) if s is not None]
    if not any(s is not None for s in sides):
        return None
    return node.orelse is None or any(s is not False for s in sides)


def _instruction(variable: Buffer, node: Invoke) -> bool | None:
    pairs = zip(node.operands, node.intrinsic.operands, strict=False)
    sets = any(isinstance(o, Ref) and o.buffer is variable and p.role == "writes" for o, p in pairs)
    return False if sets else _other(variable, node)


def _mentions(variable: Buffer, node: Node) -> bool:
    places = (n for n in walk(node) if isinstance(n, Load | Store | Ref))
    return any(n.buffer is variable for n in places)


_RULES: dict[type[Node], Callable[[Buffer, Any], bool | None]] = {
    Store: _store, Seq: _seq, For: _loop, If: _branch, Invoke: _instruction,
}  # fmt: skip
