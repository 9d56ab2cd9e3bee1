"""Loops whose points several threads run, and that write memory which they read.

A copy of a point may read what another copy has written already, and an atomic finds another value
in each, so one thread has to run it.
Hides which loops that concerns, and what else they then must not write.
"""

from __future__ import annotations

from tilelab.ir import Load, ParallelFor, Scope, Store, walk
from tilelab.layout import Fragment
from tilelab.passes.layout_solver import LayoutConflict
from tilelab.thread.nodes import Invoke, Ref


def runs_alone(node: ParallelFor, spread: Fragment) -> bool:
    """Whether the first of the threads that hold a point runs it for all of them. What it writes
    to a thread's own variables stays with that thread, as where threads have no point at all."""
    if not spread.replicas or not _rewrites_memory(node):
        return False
    joint = any(isinstance(n, Invoke) and n.intrinsic.group != "thread" for n in walk(node.body))
    spreads = any(s.buffer.scope is Scope.FRAGMENT for s in _stores(node))
    return not joint and not spreads


def check_copies(node: ParallelFor, spread: Fragment) -> None:
    """LayoutConflict for a fragment that such a loop writes too, in every thread's copy: in
    shared memory one thread can write it for all."""
    if not spread.replicas or not _rewrites_memory(node):
        return
    for store in _stores(node):
        if store.buffer.scope is Scope.FRAGMENT:
            raise LayoutConflict(
                node, store.buffer,
                f"several threads hold copies of {store.buffer.name}, and the loop that writes it "
                "overwrites memory that it reads",
            )  # fmt: skip


def _stores(node: ParallelFor) -> list[Store]:
    return [n for n in walk(node.body) if isinstance(n, Store)]


def _rewrites_memory(node: ParallelFor) -> bool:
    if any(isinstance(n, Invoke) and _finds_old_value(n) for n in walk(node.body)):
        return True
    written = {id(s.buffer.storage) for s in _stores(node) if s.buffer.scope.is_memory}
    loads = (n for n in walk(node.body) if isinstance(n, Load) and n.buffer.scope.is_memory)
    return any(id(n.buffer.storage) in written for n in loads)


def _finds_old_value(n: Invoke) -> bool:
    if n.result is None:
        return False
    roles = (p.role for p in n.intrinsic.operands)
    places = (o for role, o in zip(roles, n.operands, strict=True) if role == "updates")
    return any(isinstance(o, Ref) and o.buffer.scope.is_memory for o in places)
