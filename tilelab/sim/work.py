"""What one execution of a statement costs a lane: a table over kinds of statements.

Hides how thread IR says what it moves and computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tilelab.ir import Binary, Buffer, Call, Let, Load, Node, Scope, Store, walk
from tilelab.thread import Invoke, Ref, VectorCopy
from tilelab.thread.costs import COSTS


@dataclass(frozen=True)
class Work:
    """Per lane: bytes of shared and global memory; `issue` cycles of a warp's scheduler, `flops`
    of a warp on the tensor cores. kind: as `timeline.Event` names it; "": takes no time."""

    kind: str = ""
    issue: float = 0.0
    latency: float = 0.0
    shared_bytes: int = 0
    global_bytes: int = 0
    loads_shared: bool = False
    loads_global: bool = False
    flops: int = 0


NOTHING = Work()


class Works:
    """The work of statements, kept by the statement's identity."""

    def __init__(self) -> None:
        self._known: dict[Node, Work] = {}

    def of(self, stmt: Node) -> Work:
        """The work of one statement; nothing for those that only hold others."""
        found = self._known.get(stmt)
        if found is None:
            found = self._known[stmt] = _RULES.get(type(stmt), _nothing)(stmt)
        return found


def _nothing(stmt: Node) -> Work:
    return NOTHING


def _moved(
    loads: Iterable[tuple[Buffer, int]], stores: Iterable[tuple[Buffer, int]], issue: float
) -> Work:
    """The work of `issue` cycles of arithmetic and accesses of (buffer, elements)."""
    amounts = {(scope, False): 0 for scope in Scope} | {(scope, True): 0 for scope in Scope}
    for is_load, accesses in ((True, loads), (False, stores)):
        for buffer, count in accesses:
            amounts[buffer.scope, is_load] += count * buffer.dtype.bytes
            issue += buffer.scope is not Scope.LOCAL
    loaded, kept = amounts[Scope.GLOBAL, True], amounts[Scope.GLOBAL, False]
    shared = amounts[Scope.SHARED, True] + amounts[Scope.SHARED, False]
    kind = "load" if loaded else "store" if kept else "shared" if shared else "simt"
    return Work(
        kind, max(issue, 1), 0, shared, loaded + kept, bool(amounts[Scope.SHARED, True]),
        bool(loaded),
    )  # fmt: skip


def _arithmetic(values: Iterable[Node]) -> tuple[float, list[tuple[Buffer, int]]]:
    """Cycles to issue the operations of expressions, and what they load."""
    nodes = [n for value in values for n in walk(value)]
    issue = sum(COSTS["alu"].issue for n in nodes if isinstance(n, Binary) and n.dtype.is_float)
    issue += sum(COSTS["special"].issue for n in nodes if isinstance(n, Call))
    return issue, [(n.buffer, 1) for n in nodes if isinstance(n, Load)]


def _store(stmt: Store) -> Work:
    issue, loads = _arithmetic((stmt.value, *stmt.indices))
    return _moved(loads, [(stmt.buffer, 1)], issue)


def _let(stmt: Let) -> Work:
    issue, loads = _arithmetic((stmt.value,))
    return _moved(loads, [], issue) if issue or loads else NOTHING


def _copy(stmt: VectorCopy) -> Work:
    return _moved([(stmt.src.buffer, stmt.count)], [(stmt.dst.buffer, stmt.count)], 0)


def _invoke(stmt: Invoke) -> Work:
    """Instructions that wait or run beside the warps are timed where they happen."""
    record = stmt.intrinsic
    kind = _KINDS.get(record.cost, "")
    if not kind or record.waits:
        return NOTHING
    cost = COSTS[record.cost]
    registers = [o for o in stmt.operands if isinstance(o, Ref) and o.buffer.scope is Scope.LOCAL]
    moved = sum(o.count * o.buffer.dtype.bytes for o in registers) if kind == "shared" else 0
    latency = 0 if kind == "shared" else cost.latency
    return Work(kind, cost.issue, latency, moved, 0, kind == "shared", False, record.flops)


_KINDS = {"alu": "simt", "special": "simt", "shared": "shared", "mma": "mma", "sync": "sync",
          "atomic": "store"}  # fmt: skip
_RULES: dict[type[Node], Callable[[Any], Work]] = {
    Store: _store, Let: _let, VectorCopy: _copy, Invoke: _invoke,
}  # fmt: skip
