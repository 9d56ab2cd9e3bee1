"""Which shared buffers of a kernel may lie in the same bytes: live ranges, and places by first fit.

A buffer is live from the first statement that touches it to the last; a loop that touches it
counts as a whole, because an iteration may read what the last one left (the scratch of one op is
written anew each time, so it is live for that op only). Branches count as one statement. So bytes
change their owner only where all threads (of a warp role) come by together, and `insert_sync` can
put a barrier. Hides how statements are numbered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilelab.ir import Buffer, For, LoopKind, Scope, Seq, Stmt, While, walk
from tilelab.ir.stmt import OWN_ELEMENTS
from tilelab.passes.lower import OF_PROGRAM
from tilelab.passes.shared_accesses import ring_buffers, shared_accesses
from tilelab.thread.intrinsics.barrier import NAMED_BARRIER_ARRIVE, NAMED_BARRIER_SYNC
from tilelab.thread.nodes import Invoke, ThreadKernel, WarpRoles


@dataclass
class LiveRange:
    """Numbers of the first and the last statement that touch a buffer; `roles` are the warp roles
    (their first threads) in which those lie."""

    first: int
    last: int
    roles: set[int] = field(default_factory=set[int])

    def meets(self, other: LiveRange) -> bool:
        """Whether both may hold data at one time: roles run beside each other."""
        beside = bool(self.roles and other.roles) and self.roles != other.roles
        return beside or (self.first <= other.last and other.first <= self.last)

    def widen(self, first: int, last: int) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)


Extent = Callable[[Buffer], tuple[int, int]]
"""Bytes and alignment of a buffer."""


def live_ranges(kernel: ThreadKernel) -> dict[int, LiveRange]:
    """The live range of every shared storage, by id; empty where nothing may be reused."""
    if _orders_threads_itself(kernel):
        return {}
    numbering = _Numbering({id(s.buffer) for s in kernel.shared if s.of_one_op})
    numbering.seq(kernel.body, None)
    for buffer_id in ring_buffers(kernel):
        if buffer_id in numbering.found:  # the ring's producer runs ahead of everybody
            numbering.found[buffer_id].widen(0, numbering.count)
    return numbering.found


class _Numbering:
    """Numbers the statements of a kernel body in their order, outside of branches."""

    def __init__(self, scratch: set[int]) -> None:
        self.scratch = scratch
        self.count = 0
        self.found: dict[int, LiveRange] = {}

    def seq(self, s: Seq, role: int | None) -> None:
        for stmt in s.body:
            if isinstance(stmt, Seq):
                self.seq(stmt, role)
            elif isinstance(stmt, WarpRoles):
                self.roles(stmt)
            elif (loop := _loop_of_program(stmt)) is not None:
                self.loop(loop, role)
            else:
                self.count += 1
                self.touch(stmt, self.count, role)

    def touch(self, s: Stmt, first: int, role: int | None) -> None:
        """What a statement with the numbers from `first` to now touches is live meanwhile."""
        for buffer, _ in shared_accesses(s):
            key = id(buffer.storage)
            at = self.found.setdefault(key, LiveRange(first, self.count))
            if key not in self.scratch or at.last < first:
                at.widen(first, self.count)
            if role is not None:
                at.roles.add(role)

    def loop(self, s: For | While, role: int | None) -> None:
        first = self.count + 1
        self.seq(s.body, role)
        self.touch(s, first, role)

    def roles(self, s: WarpRoles) -> None:
        first = self.count + 1
        for role in s.roles:
            self.seq(role.body, role.first)
        for at in self.found.values():
            if len(at.roles) > 1:  # handed from one role to another at times known to barriers only
                at.widen(first, self.count)


def _loop_of_program(s: Stmt) -> For | While | None:
    """The statement, if it is a loop in which whole ops stand (a loop that a lowering made is a
    part of its op)."""
    if not isinstance(s, For):
        return s if isinstance(s, While) else None
    keys = {key for key, _ in s.attrs}
    plain = s.kind in (LoopKind.SERIAL, LoopKind.UNROLL)
    return s if plain and OF_PROGRAM in keys and OWN_ELEMENTS not in keys else None


def _orders_threads_itself(kernel: ThreadKernel) -> bool:
    """Whether the program has barriers of its own between parts of the block: a barrier of the
    whole block, put between two such parts, might never be reached by all."""
    named = (NAMED_BARRIER_SYNC, NAMED_BARRIER_ARRIVE)
    if any(isinstance(n, WarpRoles) for n in walk(kernel.body)):
        return False  # the compiler made these roles out of a program with none
    return any(
        isinstance(n, Invoke)
        and (n.intrinsic in named or any(p.role == "barrier" for p in n.intrinsic.operands))
        for n in walk(kernel.body)
    )


def place(
    storages: Sequence[Buffer], extent: Extent, ranges: dict[int, LiveRange]
) -> dict[int, int]:
    """Byte offsets of SHARED buffers, by id, such that buffers live at one time lie apart.

    The largest is placed first, each at the lowest aligned offset that is free (first fit).
    Buffers without a live range share with nobody.
    """
    placed: list[tuple[Buffer, int, int]] = []
    for buffer in sorted(storages, key=lambda b: -extent(b)[0]):
        size, alignment = extent(buffer)
        mine = ranges.get(id(buffer))
        taken = sorted(
            (start, stop)
            for other, start, stop in placed
            if mine is None or (its := ranges.get(id(other))) is None or mine.meets(its)
        )
        offset = 0
        for start, stop in taken:
            if offset + size <= start:
                break
            offset = max(offset, -(-stop // alignment) * alignment)
        placed.append((buffer, offset, offset + size))
    return {id(buffer): start for buffer, start, _ in placed}


def overlapping(kernel: ThreadKernel) -> dict[int, tuple[Buffer, ...]]:
    """For each shared storage, by id, the others in whose bytes it lies."""
    own = [s for s in kernel.shared if s.buffer.alias_of is None and s.buffer.scope is Scope.SHARED]
    found: dict[int, tuple[Buffer, ...]] = {}
    for slot in own:
        others = tuple(s.buffer for s in own if s is not slot and slot.crosses(s))
        if others:
            found[id(slot.buffer)] = others
    return found
