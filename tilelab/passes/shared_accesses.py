"""Accesses of thread IR to memory, how each is ordered, and those that no barrier has followed.

Hides which operands of which instruction read or write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tilelab.ir import Buffer, Load, Node, Scope, Store, walk
from tilelab.thread.intrinsics.barrier import NAMED_BARRIER_SYNC, SYNCTHREADS
from tilelab.thread.intrinsics.exchange import BLOCK_BARRIERS
from tilelab.thread.nodes import Invoke, Ref, SharedDescriptor, TensorMap, ThreadKernel, VectorCopy

READ, WRITE, ASYNC_READ = "read", "written", "read by the tensor cores"
FILL = "filled by TMA"  # the mbarrier tells readers, so it only waits for earlier accesses
ATOMIC = "updated by atomics"  # these need no order among themselves
BARRIERS = frozenset({SYNCTHREADS, NAMED_BARRIER_SYNC}) | BLOCK_BARRIERS
"""Instructions at which threads meet and see each other's writes."""
_ROLE_MODES = {"reads": (READ,), "writes": (WRITE,), "updates": (READ, WRITE)}


def shared_accesses(node: Node, scope: Scope = Scope.SHARED) -> Iterator[tuple[Buffer, str]]:
    """Every access to shared memory (or another) under `node`, but by TMA to tensors: the buffer,
    and how."""
    for n in walk(node):
        find = _ACCESS.get(type(n))
        if find is not None:
            for buffer, mode in find(n):
                if buffer.scope is scope:
                    yield buffer, mode


def _invoke(n: Invoke) -> Iterator[tuple[Buffer, str]]:
    for param, operand in zip(n.intrinsic.operands, n.operands, strict=True):
        if isinstance(operand, SharedDescriptor):
            yield operand.ref.buffer, ASYNC_READ
        elif isinstance(operand, Ref):
            modes = _ROLE_MODES.get(param.role, ())
            if param.role == "writes" and any(p.role == "barrier" for p in n.intrinsic.operands):
                modes = (FILL,)
            if param.role == "reads" and any(isinstance(o, TensorMap) for o in n.operands):
                modes = (ASYNC_READ,)  # a TMA store
            for mode in (ATOMIC,) if modes and n.intrinsic.cost == "atomic" else modes:
                yield operand.buffer, mode


_ACCESS: dict[type[Node], Callable[[Any], Iterator[tuple[Buffer, str]]]] = {
    Load: lambda n: iter([(n.buffer, READ)]),
    Store: lambda n: iter([(n.buffer, WRITE)]),
    VectorCopy: lambda n: iter([(n.dst.buffer, WRITE), (n.src.buffer, READ)]),
    Invoke: _invoke,
}


def ring_buffers(kernel: ThreadKernel) -> set[int]:
    """Ids of slots whose pipeline orders them: versioned buffers."""
    found: set[int] = set()
    for node in walk(kernel.body):
        buffer = getattr(node, "buffer", None)
        if isinstance(buffer, Buffer) and buffer.scope is Scope.SHARED and _is_versioned(buffer):
            found.add(id(buffer))
    return found


def _is_versioned(buffer: Buffer) -> bool:
    """A pass gave it one slot for each stage: one axis more than the user's buffer."""
    return buffer.rank == buffer.root.rank + 1


@dataclass
class Pending:
    """Accesses since the last barrier."""

    written: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    read: dict[int, Buffer] = field(default_factory=dict[int, Buffer])
    atomic: dict[int, Buffer] = field(default_factory=dict[int, Buffer])

    def copy(self) -> Pending:
        return Pending(dict(self.written), dict(self.read), dict(self.atomic))

    def clear(self) -> None:
        self.written.clear()
        self.read.clear()
        self.atomic.clear()

    def add(self, accesses: list[tuple[Buffer, str]]) -> None:
        kinds = {WRITE: self.written, ATOMIC: self.atomic}
        for buffer, mode in accesses:
            if mode != FILL:
                kinds.get(mode, self.read)[id(buffer)] = buffer

    def forget(self, written: set[int]) -> None:
        """Leave out the writes of some buffers (ids)."""
        for key in written:
            self.written.pop(key, None)

    def merge(self, other: Pending) -> None:
        self.written.update(other.written)
        self.read.update(other.read)
        self.atomic.update(other.atomic)

    def uses(self, buffer: Buffer) -> bool:
        """Whether threads may still be using a buffer."""
        return any(id(buffer) in held for held in (self.written, self.read, self.atomic))

    def conflict(self, accesses: list[tuple[Buffer, str]], only: set[int] | None) -> str | None:
        """Why `accesses` (those to buffers `only`) must wait; None when they need not."""
        for buffer, mode in accesses:
            if only is not None and id(buffer) not in only:
                continue
            name = buffer.root.name
            if mode != WRITE and id(buffer) in self.written:
                return f"{name} was written by other threads"
            if mode != ATOMIC and id(buffer) in self.atomic:
                return f"{name} was updated by other threads' atomics"
            if mode in (WRITE, ATOMIC, FILL) and id(buffer) in self.read:
                return f"{name} is still being read by other threads"
            if mode == WRITE and id(buffer) in self.written:
                return f"{name} is written by other threads too"
        return None
