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
    if not _mentions(variable, node):
        return None
    rule = _RULES.get(type(node))
    return True if rule is None else rule(variable, node)


def _store(variable: Buffer, node: Store) -> bool:
    return node.buffer is not variable or any(_mentions(variable, c) for c in children(node))


def _seq(variable: Buffer, node: Seq) -> bool | None:
    found = (_unset(variable, s) for s in node.body)
    return next((f for f in found if f is not None), None)


def _loop(variable: Buffer, node: For) -> bool:
    runs = (const_int(node.extent) or 0) > 0 and not _mentions(variable, node.extent)
    return not runs or may_be_unset(variable, node.body)


def _branch(variable: Buffer, node: If) -> bool:
    if node.orelse is None or _mentions(variable, node.cond):
        return True
    return any(_unset(variable, side) is not False for side in (node.then, node.orelse))


def _instruction(variable: Buffer, node: Invoke) -> bool:
    pairs = zip(node.operands, node.intrinsic.operands, strict=False)
    return not any(
        isinstance(o, Ref) and o.buffer is variable and p.role == "writes" for o, p in pairs
    )


def _mentions(variable: Buffer, node: Node) -> bool:
    places = (n for n in walk(node) if isinstance(n, Load | Store | Ref))
    return any(n.buffer is variable for n in places)


_RULES: dict[type[Node], Callable[[Buffer, Any], bool | None]] = {
    Store: _store, Seq: _seq, For: _loop, If: _branch, Invoke: _instruction,
}  # fmt: skip
