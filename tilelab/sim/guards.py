"""Notes on accesses that only the compiler's guards keep inside of their tensors.

The compiler guards accesses of tensors that it cannot prove to lie inside: a read outside gives
the tensor's value for that (0), a write is dropped. In T.Parallel and in copies that is what the
program means; where an element is named outside of them it hides a mistake. Hides how the access
under a guard is found, and that each is noted once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.ir import If, Load, Node, Scope, Select, Store, walk
from tilelab.sim import findings as f
from tilelab.sim.again import Unchecked
from tilelab.sim.evaluate import evaluate
from tilelab.sim.frame import Frame, Value, varies
from tilelab.sim.place import outside
from tilelab.thread import Invoke, Ref, VectorCopy

if TYPE_CHECKING:
    from tilelab.sim.access import CheckedMemory

Access = tuple[Any, str]  # a Load, Store or Ref, and what it does


def note_selected(memory: CheckedMemory, e: Select, cond: Value, frame: Frame) -> None:
    """Note a load that `cond` leaves out in some lane."""
    if _news(memory, e, cond):
        _note(memory, e, [(n, "read") for n in walk(e.a) if isinstance(n, Load)], cond, frame)


def note_branch(memory: CheckedMemory, stmt: If, cond: Value, frame: Frame) -> None:
    """Note a store or instruction that `cond` leaves out in some lane."""
    if _news(memory, stmt, cond):
        _note(memory, stmt, list(_accesses(stmt)), cond, frame)


def _news(memory: CheckedMemory, site: Node, cond: Value) -> bool:
    findings = memory.group.findings
    return findings.wants(f.OUT_OF_BOUNDS) and id(site) not in findings.noted and not np.all(cond)


def _accesses(stmt: If) -> Iterator[Access]:
    for n in stmt.then.body:
        rule = _PLACES.get(type(n))
        if rule is not None:
            yield from rule(n)


_PLACES: dict[type[Node], Callable[[Any], Iterator[Access]]] = {
    Store: lambda s: iter([(s, "write")]),
    VectorCopy: lambda s: iter([(s.dst, "write"), (s.src, "read")]),
    Invoke: lambda s: ((o, "access") for o in s.operands if isinstance(o, Ref)),
}
"""What a guarded statement touches, with a word for it."""


def _note(
    memory: CheckedMemory, site: Node, accesses: list[Access], cond: Value, frame: Frame
) -> None:
    group, again = memory.group, Unchecked(memory)
    inner = frame.masked(~cond) if varies(cond) else frame
    active = ~group.dead[frame.rows][:, None]
    active = active if inner.mask is None else active & inner.mask
    for access, what in accesses:
        if access.buffer.scope is not Scope.GLOBAL:
            continue
        indices = [np.asarray(evaluate(i, inner, again)) for i in access.indices]
        extents = memory.extents(access.buffer)
        bad: Any = np.False_
        for index, extent in zip(indices, extents, strict=True):
            bad = bad | (index < 0) | (index >= extent)
        bad = bad & active
        bad = np.broadcast_to(bad, np.broadcast_shapes(bad.shape, frame.shape))
        if not bad.any():
            continue
        group.findings.noted.add(id(site))
        first = np.unravel_index(int(bad.argmax()), bad.shape)
        at = tuple(int(np.broadcast_to(i, bad.shape)[first]) for i in indices)
        text = outside(what, access.buffer, at, extents)
        instead = "gives another value (0 by default)" if what == "read" else "drops it"
        memory.report(
            f.OUT_OF_BOUNDS, f"{text}: the guard that the compiler put there {instead}", frame,
            first[-2:], access.buffer, at, hint=f.GUARDED_HINT, level="note",
        )  # fmt: skip
        return
