"""Fences where threads or cp.async fill a pipeline's slots and the asynchronous proxy reads them,
and which memory fences are for.

insert-sync leaves slots out, because their ring orders them; but who reads them is known only once
tile ops are lowered, wherever in the loop they stand. Hides which writes are not yet fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from tilelab.ir import Break, Continue, For, If, Node, Scope, Seq, Stmt, While, walk
from tilelab.ir.rewrite import map_statements
from tilelab.passes.shared_accesses import ASYNC_READ, ATOMIC, BARRIERS, WRITE, shared_accesses
from tilelab.target import Feature
from tilelab.thread.intrinsics.barrier import (
    FENCE_PROXY_ASYNC,
    FENCE_PROXY_ASYNC_ALL,
    MBARRIER_ARRIVE,
)
from tilelab.thread.nodes import Invoke, ThreadKernel, WarpRoles

WHY = "wgmma reads what threads and cp.async wrote"


def fence_slots(kernel: ThreadKernel, rings: Collection[int]) -> ThreadKernel:
    """Before each barrier that may show others what a thread wrote into slots (ids of `rings`) for
    the asynchronous proxy, a fence of the writer (PTX ISA, async proxy), unless there is one."""
    accesses = list(shared_accesses(kernel.body))
    read = {id(b) for b, mode in accesses if mode == ASYNC_READ and id(b) in rings}
    slots = read & {id(b) for b, mode in accesses if mode == WRITE}
    if not slots:
        return kernel
    fencer = _Fencer(slots, kernel)
    body = fencer.seq(kernel.body, set())
    return kernel if body is kernel.body else replace(kernel, body=body)


def fence_tensors(kernel: ThreadKernel) -> ThreadKernel:
    """Where TMA loads a tensor that threads of the kernel write, its proxy fences, which the
    program has placed, are for global memory as well."""
    calls = (n for n in walk(kernel.body) if isinstance(n, Invoke))
    loaded = {id(tensor) for n in calls for tensor in n.loaded}
    if not loaded:
        return kernel
    modes = shared_accesses(kernel.body, Scope.GLOBAL)
    if not loaded & {id(b.storage) for b, mode in modes if mode in (WRITE, ATOMIC)}:
        return kernel

    def widened(node: Node) -> Node:
        if isinstance(node, Invoke) and node.intrinsic is FENCE_PROXY_ASYNC:
            return replace(node, intrinsic=FENCE_PROXY_ASYNC_ALL)
        return node

    return replace(kernel, body=map_statements(kernel.body, widened))


class _Fencer:
    """Walks statements with the slots whose writes the thread may not have fenced yet."""

    def __init__(self, slots: set[int], kernel: ThreadKernel) -> None:
        self.slots = slots
        copies = [n for n in walk(kernel.body) if _is_copy(n)]
        self.copied = {b for n in copies for b in self._written(n)}

    def _written(self, node: Node) -> set[int]:
        found = {id(b) for b, mode in shared_accesses(node) if mode == WRITE}
        return found & self.slots

    def seq(self, s: Seq, state: set[int]) -> Seq:
        out = [part for stmt in s.body for part in self.statement(stmt, state)]
        same = len(out) == len(s.body) and all(a is b for a, b in zip(out, s.body, strict=True))
        return s if same else replace(s, body=tuple(out))

    def statement(self, s: Stmt, state: set[int]) -> list[Stmt]:
        rule = _RULES.get(type(s))
        if rule is not None:
            return rule(self, s, state)
        state |= self._written(s)
        return [s]

    def nested(self, s: Seq, state: set[int]) -> list[Stmt]:
        return [self.seq(s, state)]

    def invoke(self, s: Invoke, state: set[int]) -> list[Stmt]:
        if s.intrinsic in BARRIERS or s.intrinsic is MBARRIER_ARRIVE:
            fence = [Invoke(FENCE_PROXY_ASYNC, (), WHY, loc=s.loc)] if state else []
            state.clear()
            return [*fence, s]
        if s.intrinsic is FENCE_PROXY_ASYNC:
            state.clear()
        elif s.intrinsic.waits and s.intrinsic.needs is Feature.CP_ASYNC:
            state |= self.copied
        elif not _is_copy(s):  # a copy writes when it is waited for
            state |= self._written(s)
        return [s]

    def branch(self, s: If, state: set[int]) -> list[Stmt]:
        inner, other = set(state), set(state)
        then = self.seq(s.then, inner)
        orelse = None if s.orelse is None else self.seq(s.orelse, other)
        state.clear()
        state |= inner | other
        same = then is s.then and orelse is s.orelse
        return [s if same else replace(s, then=then, orelse=orelse)]

    def loop(self, s: For | While, state: set[int]) -> list[Stmt]:
        """The body is entered after itself too. An iteration that ends early may have written all:
        it is followed by another one, or (Break) by what stands behind the loop."""
        early = {type(n) for n in walk(s.body) if isinstance(n, Break | Continue)}
        written = self._written(s.body) if early else set[int]()
        around = state | written if Continue in early else set(state)
        self.seq(s.body, around)
        state |= around
        body = self.seq(s.body, around | state)
        state |= written
        return [s if body is s.body else replace(s, body=body)]

    def roles(self, s: WarpRoles, state: set[int]) -> list[Stmt]:
        before, done = set(state), list[Any]()
        for role in s.roles:
            inner = set(before)
            done.append(replace(role, body=self.seq(role.body, inner)))
            state |= inner
        same = all(a.body is b.body for a, b in zip(done, s.roles, strict=True))
        return [s if same else replace(s, roles=tuple(done))]


def _is_copy(n: Node) -> bool:
    """Whether a node is a cp.async."""
    if not isinstance(n, Invoke):
        return False
    return n.intrinsic.is_async and n.intrinsic.needs is Feature.CP_ASYNC


_RULES: dict[type[Stmt], Callable[[_Fencer, Any, set[int]], list[Stmt]]] = {
    Seq: _Fencer.nested, If: _Fencer.branch, For: _Fencer.loop, While: _Fencer.loop,
    WarpRoles: _Fencer.roles, Invoke: _Fencer.invoke,
}  # fmt: skip
