"""What the end of a while loop depends on: a backward slice (Weiser 1984) of the loop.

Hides how values reach the condition and the branches to a `break`: through variables, registers
and memory, and the conditions under which these are written. Barriers and waits are no part of it:
they say when a value is there, not which; a loop that stays at one ends no more than one that goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import lcm
from typing import Any

from tilelab.ir import Binary, Buffer, Expr, For, If, Let, Load, Node, Scope, Store, Var, While
from tilelab.ir.core import children
from tilelab.ir.expr import const_int
from tilelab.ir.stmt import Break, Continue
from tilelab.thread import Invoke, Ref, TensorMap, VectorCopy

Source = Buffer | Var
"""What a value comes from: a buffer (its storage) or a variable."""
_EXACT = 0
"""The period of what must be the same; of other numbers, only the rest of a division matters."""
_LONGEST = 1 << 20
"""Periods beyond which a number is taken to matter exactly."""


@dataclass(frozen=True)
class Deciding:
    """The state whose coming back means that a loop has no end.

    written: the buffers of it that the loop writes, each with the number modulo which its values
    matter (0: they matter exactly), as those of `k` in `k % 4` do. memory: the shared and global
    buffers among all that it depends on. flying: whether asynchronous instructions write any of it.
    """

    written: tuple[tuple[Buffer, int], ...]
    memory: frozenset[Buffer]
    flying: bool


@dataclass(frozen=True)
class _Flow:
    """A statement that gives `targets` values that depend on `value`, modulo what is needed of
    them, and on `exact`."""

    stmt: Node
    targets: frozenset[Source]
    exact: tuple[Node, ...]
    value: Expr | None = None


class _Needs(dict[Source, int]):
    """What an end depends on, each with its period."""

    def add(self, node: Node, period: int = _EXACT) -> None:
        """An expression or operand matters, modulo `period`."""
        if isinstance(node, Load | Ref | TensorMap | Var):
            self._add_source(node, period)
        if not isinstance(node, Binary):
            for child in children(node):
                self.add(child)
            return
        divisor = const_int(node.b) or 0
        whole = node.dtype.is_int and node.dtype.bits >= 32
        if not whole or divisor <= 0 or node.op not in _DIVIDES:
            period = period if whole and node.op in ("+", "-", "*") else _EXACT
            self.add(node.b, period)
        else:
            period = _DIVIDES[node.op](period, divisor)
        self.add(node.a, period)

    def _add_source(self, node: Load | Ref | TensorMap | Var, period: int) -> None:
        if isinstance(node, Var):
            source, wraps = node, not node.dtype.is_int or node.dtype.bits < 32
        else:
            buffer = node.tensor if isinstance(node, TensorMap) else node.buffer
            source, wraps = buffer.storage, buffer.scope is not Scope.LOCAL
            wraps = wraps or buffer.alias_of is not None or buffer.dtype.bits < 32
        period = _EXACT if wraps else lcm(self.get(source, 1), period)
        self[source] = period if period <= _LONGEST else _EXACT


def _masked(period: int, mask: int) -> int:
    return mask + 1 if mask & (mask + 1) == 0 else _EXACT


_DIVIDES: dict[str, Callable[[int, int], int]] = {
    "%": lambda period, divisor: divisor,
    "//": lambda period, divisor: period * divisor,
    "&": _masked,
}
"""Operator with a constant -> modulo what its left side matters, when the result does."""


def deciding(loop: While, told: Callable[[Node], bool]) -> Deciding | None:
    """What decides the end of a loop; None where barriers do, or statements of which `told`
    says that other threads give them their value."""
    flows, needs = list(_flows(loop.body, ())), _Needs()
    needs.add(loop.cond)
    before: dict[Source, int] | None = None
    while before != needs:
        before = dict(needs)
        for flow in flows:
            wanted = flow.targets & needs.keys()
            if wanted or isinstance(flow.stmt, Break | Continue):
                for node in flow.exact:
                    needs.add(node)
            if wanted and flow.value is not None:
                needs.add(flow.value, lcm(*(needs[t] for t in wanted)))
    used = [flow.stmt for flow in flows if flow.targets & needs.keys()]
    buffers = {b for b in needs if isinstance(b, Buffer)}
    if any(b.scope is Scope.BARRIER for b in buffers) or any(map(told, used)):
        return None
    written = {b: needs[b.storage] for n in used for b in targets(n) if b.storage in buffers}
    flying = any(isinstance(n, Invoke) and n.intrinsic.is_async for n in used)
    memory = frozenset(b for b in buffers if b.scope is not Scope.LOCAL)
    return Deciding(tuple(written.items()), memory, flying)


def targets(n: Node) -> list[Buffer]:
    """The buffers that a statement writes."""
    if isinstance(n, Store):
        return [n.buffer]
    if isinstance(n, VectorCopy):
        return [n.dst.buffer]
    return _of_invoke(n) if isinstance(n, Invoke) else []


def _of_invoke(n: Invoke) -> list[Buffer]:
    pairs = list(zip(n.intrinsic.operands, n.operands, strict=True))
    refs = [o.buffer for p, o in pairs if isinstance(o, Ref) and p.role in _WRITES]
    return refs or n.tensors


_WRITES = frozenset({"writes", "updates"})


def _flows(node: Node, guards: tuple[Expr, ...]) -> Iterator[_Flow]:
    """What flows in a statement that runs when `guards` say so."""
    asked: tuple[Expr, ...] = ()
    if isinstance(node, For):
        asked = (node.start, node.extent, node.step)
    elif isinstance(node, If | While):
        asked = (node.cond,)
    if type(node) in _PARTS:
        given, exact, value = _PARTS[type(node)](node)
        stored = (b.storage for b in targets(node))
        yield _Flow(node, frozenset((*given, *stored)), (*guards, *exact), value)
    for child in children(node):
        yield from _flows(child, (*guards, *asked))


def _of_for(n: For) -> _Parts:
    return (n.var,), (n.start, n.extent, n.step), None


def _of_let(n: Let) -> _Parts:
    return (n.var,), (), n.value


def _of_store(n: Store) -> _Parts:
    return (), n.indices, n.value


def _of_call(n: Invoke) -> _Parts:
    return () if n.result is None else (n.result,), tuple(_operands(n)), None


def _of_copy(n: VectorCopy) -> _Parts:
    return (), (n.dst, n.src), None


def _of_exit(n: Node) -> _Parts:
    return (), (), None


_Parts = tuple[tuple[Var, ...], tuple[Node, ...], Expr | None]
_PARTS: dict[type[Node], Callable[[Any], _Parts]] = {
    For: _of_for, Let: _of_let, Store: _of_store, Invoke: _of_call, VectorCopy: _of_copy,
    Break: _of_exit, Continue: _of_exit,
}  # fmt: skip
"""Statement -> the variables that it binds, what matters exactly when they do or what it writes
does, and the value that matters as far as these do."""


def _operands(node: Invoke) -> list[Any]:
    """What an instruction reads; a barrier only where it gives the barrier's state."""
    pairs = zip(node.intrinsic.operands, node.operands, strict=True)
    return [o for p, o in pairs if p.role != "barrier" or node.result is not None]
