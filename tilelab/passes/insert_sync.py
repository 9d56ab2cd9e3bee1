"""insert-sync: barriers between threads that write shared memory and threads that read it.

Works from access sets: a barrier is put before the statement that would read what another thread
may have written since the last barrier (or write what another may still read), with that pair as
its reason; likewise before the first use of bytes that another buffer held. Pipelined slots are
left out: their ring orders them, and `slot_fences.py` fences what is written into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tilelab.dtypes import UINT32
from tilelab.ir import (
    Break,
    Buffer,
    Const,
    Continue,
    For,
    If,
    LoopKind,
    Node,
    Seq,
    Stmt,
    While,
    as_expr,
    const_int,
    walk,
)
from tilelab.ir.stmt import OWN_ELEMENTS
from tilelab.passes.apart import apart
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.lower import OF_PROGRAM
from tilelab.passes.part_branches import part_branches
from tilelab.passes.shared_accesses import (
    ASYNC_READ,
    BARRIERS,
    FILL,
    Pending,
    ring_buffers,
    shared_accesses,
)
from tilelab.passes.shared_lifetimes import overlapping
from tilelab.passes.slot_fences import fence_slots, fence_tensors
from tilelab.passes.staging_room import named_barriers, no_barrier_left
from tilelab.passes.thread_ranges import Threads, threads_where
from tilelab.target import NAMED_BARRIERS, WARP
from tilelab.thread.intrinsics.barrier import (
    FENCE_PROXY_ASYNC,
    MBARRIER_ARRIVE,
    NAMED_BARRIER_SYNC,
    SYNCTHREADS,
)
from tilelab.thread.intrinsics.exchange import SYNCWARP
from tilelab.thread.nodes import Invoke, Program, Role, ThreadKernel, WarpRoles


@tile_pass("insert-sync", needs=("placed",), makes=("synchronised",))
def insert_sync(program: Program, ctx: PassContext) -> Program:
    """Put barriers where threads hand shared data to each other, with the reason on each."""
    synced = (Syncer(k, ctx).run() for k in program.kernels)
    kernels = tuple(part_branches(k, ctx.note) for k in synced)
    if all(a is b for a, b in zip(kernels, program.kernels, strict=True)):
        return program
    return replace(program, kernels=kernels)


def _exchanged(kernel: ThreadKernel, ctx: PassContext) -> set[int] | None:
    """Where the program orders accesses itself: the buffers (ids) that lowerings exchange values in
    inside of one operation, which are ordered here all the same. None: all are."""
    if not ctx.option("tl.disable_thread_storage_sync", False):
        return None
    return {id(slot.buffer) for slot in kernel.shared if slot.of_one_op}


class Syncer:
    """Inserts barriers into one kernel; roles get named barriers of their own threads."""

    def __init__(self, kernel: ThreadKernel, ctx: PassContext) -> None:
        self.kernel, self.ctx = kernel, ctx
        self.exempt = ring_buffers(kernel)
        self.sharing = overlapping(kernel)
        accesses = [(b.storage, mode) for b, mode in shared_accesses(kernel.body)]
        by_async = {id(b) for b, mode in accesses if mode in (ASYNC_READ, FILL)}
        filled = {id(b) for b, mode in accesses if mode == FILL}
        # Whose ordinary writes, and whose ordinary reads, the asynchronous proxy comes after.
        self.fenced_writes = {*by_async, *_partners(by_async, self.sharing)}
        self.fenced_reads = _partners(filled, self.sharing)
        self.role: tuple[int | None, int] | None = None
        self.own_barriers = True
        self.lanes: Threads | None = None  # inside a branch that part of one warp takes
        self.left = Pending()  # what had happened where a break or continue leaves an iteration
        self.only = _exchanged(kernel, ctx)
        self._numbers: dict[tuple[int, int], int | None] = {}
        self._taken = set(named_barriers(kernel))

    def run(self) -> ThreadKernel:
        body = self.seq(self.kernel.body, Pending())
        synced = self.kernel if body is self.kernel.body else replace(self.kernel, body=body)
        return fence_tensors(fence_slots(synced, self.exempt))

    def accesses(self, node: Node) -> list[tuple[Buffer, str]]:
        """Accesses that barriers order; those to a view count for the storage."""
        return [(b.storage, m) for b, m in shared_accesses(node) if id(b) not in self.exempt]

    def seq(self, s: Seq, state: Pending) -> Seq:
        out: list[Stmt] = []
        for stmt in s.body:
            out.extend(self.statement(stmt, state))
        same = len(out) == len(s.body) and all(a is b for a, b in zip(out, s.body, strict=True))
        return s if same else replace(s, body=tuple(out))

    def statement(self, s: Stmt, state: Pending) -> list[Stmt]:
        rule = _RULES.get(type(s))
        if rule is not None and (not isinstance(s, For) or _needs_looking_into(s)):
            return rule(self, s, state)
        if isinstance(s, Invoke) and s.intrinsic in BARRIERS:
            fence = self._fence(state, s)
            if _joins_all(s, self.role):
                state.clear()
            return [*fence, self._of_role(s)]
        if isinstance(s, Invoke) and s.intrinsic is MBARRIER_ARRIVE:
            return [*self._fence(state, s), s]
        accesses = self.accesses(s)
        out = self._barrier_for(accesses, state, s)
        state.add(accesses)
        return [*out, s]

    def _barrier_for(
        self, accesses: list[tuple[Buffer, str]], state: Pending, s: Stmt
    ) -> list[Stmt]:
        reason = self._reason(accesses, state)
        if reason is None:
            return []
        out = self._fence(state, s)
        state.clear()
        if self.lanes is not None and self.lanes.stop - self.lanes.first == 1:
            return out  # a thread sees its own writes
        self.ctx.note(f"barrier: {reason}", s)
        return [*out, self._of_role(Invoke(SYNCTHREADS, (), reason, loc=s.loc))]

    def _reason(self, accesses: list[tuple[Buffer, str]], state: Pending) -> str | None:
        """Why `accesses` must wait for other threads; None when they need not."""
        for buffer, _ in accesses:
            for other in self.sharing.get(id(buffer), ()):
                if state.uses(other):
                    mine, its = buffer.root.name, other.root.name
                    return f"{mine} takes over the bytes of {its}, which other threads may be using"
        return state.conflict(accesses, self.only)

    def _of_role(self, barrier: Invoke) -> Invoke:
        """A barrier of the block; inside a role the barrier of its own threads. One that the
        program wrote (it has no reason) into a branch on the thread index means all threads."""
        if not barrier.reason and (self.lanes is not None or not self.own_barriers):
            return barrier
        if self.lanes is not None and barrier.intrinsic is SYNCTHREADS:
            first, stop = self.lanes.first % WARP, (self.lanes.stop - 1) % WARP + 1
            mask = Const((1 << stop) - (1 << first), UINT32)
            return Invoke(SYNCWARP, (mask,), barrier.reason, loc=barrier.loc)
        if self.role is None or barrier.intrinsic is not SYNCTHREADS:
            return barrier
        operands = tuple(as_expr(n or no_barrier_left(barrier, self.role[1])) for n in self.role)
        return Invoke(NAMED_BARRIER_SYNC, operands, barrier.reason, loc=barrier.loc)

    def _number(self, role: Role) -> int | None:
        """The named barrier of a role's threads: the same wherever these threads have a role."""
        key = (role.first, role.count)
        if key not in self._numbers:
            busy = {*self._taken, *self._numbers.values()}
            self._numbers[key] = next((n for n in range(1, NAMED_BARRIERS) if n not in busy), None)
        return self._numbers[key]

    def _fence(self, state: Pending, s: Stmt) -> list[Stmt]:
        """Before a barrier: each writer of bytes that wgmma or TMA uses next fences its writes,
        whichever barrier comes between them; so does each reader of bytes that TMA fills next."""
        if self.fenced_writes.intersection(state.written):
            why = "make ordinary writes visible to the tensor cores"
        elif self.fenced_reads.intersection(state.read):
            why = "what threads read has been read before TMA fills these bytes anew"
        else:
            return []
        return [Invoke(FENCE_PROXY_ASYNC, (), why, loc=s.loc)]

    def nested(self, s: Seq, state: Pending) -> list[Stmt]:
        """What one op became: a barrier that it needs goes before the whole of it, unless it has
        barriers that do. Loops of the program, in parts, are no op: each asks for itself."""
        if any(isinstance(part, For) and _of_program(part) for part in s.body):
            return [self.seq(s, state)]
        out: list[Stmt] = []
        accesses = self.accesses(s)
        if self._reason(accesses, state) and self.seq_silently(s, state.copy()) is not s:
            out = self._barrier_for(accesses, state, s)
        return [*out, self.seq(s, state)]

    def branch(self, s: If, state: Pending) -> list[Stmt]:
        """Barriers needed inside a branch stand before it: threads may not take it together."""
        accesses = self.accesses(s)
        out = self._barrier_for(accesses, state, s)
        inner, other = state.copy(), state.copy()
        outer, self.lanes = self.lanes, _part_of_warp(s, self.kernel) or self.lanes
        then = self.seq(s.then, inner)
        inner.add(accesses if self.lanes is not outer or _meets_in_parts(s, self) else [])
        self.lanes = outer
        orelse = None if s.orelse is None else self.seq(s.orelse, other)
        state.merge(inner)
        state.merge(other)
        same = then is s.then and orelse is s.orelse
        return [*out, s if same else replace(s, then=then, orelse=orelse)]

    def loop(self, s: For | While, state: Pending) -> list[Stmt]:
        """The body is entered after itself too: its own end counts as what came before. A barrier
        that only the first iteration needs stands before the loop."""
        out: list[Stmt] = []
        conflict = self._reason(self.accesses(s.body), state)
        rehearsed = self.seq_silently(s.body, state.copy()) if conflict else s.body
        own = apart(s)
        if rehearsed is not s.body and self._needs_none(s.body, own):
            out = self._barrier_for(self.accesses(s.body), state, s)
        around = state.copy()
        self._once_around(s.body, around)
        around.forget(own.difference(state.written))
        entry = state.copy()
        entry.merge(around)
        outer, self.left = self.left, Pending()
        body = self.seq(s.body, entry)
        state.merge(entry)
        state.merge(self.left)
        self.left = outer
        return [*out, s if body is s.body else replace(s, body=body)]

    def _once_around(self, body: Seq, state: Pending) -> Seq:
        """`state` after an iteration, ended or left early; what the body would become."""
        outer, self.left = self.left, Pending()
        done = self.seq_silently(body, state)
        state.merge(self.left)
        self.left = outer
        return done

    def jump(self, s: Break | Continue, state: Pending) -> list[Stmt]:
        """What follows in the iteration, with its barriers, is left out."""
        self.left.merge(state)
        return [s]

    def _needs_none(self, body: Seq, own: set[int]) -> bool:
        """Whether a loop that writes `own` band by band needs no barrier on its own account."""
        around = Pending()
        first = self._once_around(body, around)
        around.forget(own)
        return first is body and self._once_around(body, around) is body

    def seq_silently(self, s: Seq, state: Pending) -> Seq:
        """Run over a body for its effect on `state`; what it would become."""
        kept, self.ctx = self.ctx, _Quiet()  # type: ignore[assignment]
        try:
            return self.seq(s, state)
        finally:
            self.ctx = kept

    def roles(self, s: WarpRoles, state: Pending) -> list[Stmt]:
        """What all threads did before, a role's own barrier does not order: one of the block stands
        before the roles. Roles that the program does not order itself are done before what follows.
        """
        accesses = self.accesses(s)
        out = self._barrier_for(accesses, state, s)
        outer = self.role, self.own_barriers
        done: list[Any] = []
        for role in s.roles:
            self.role = (self._number(role), role.count)
            self.own_barriers = role.own_barriers
            done.append(replace(role, body=self.seq(role.body, state.copy())))
        self.role, self.own_barriers = outer
        if not _orders_itself(s):
            state.add(accesses)
        same = all(a.body is b.body for a, b in zip(done, s.roles, strict=True))
        return [*out, s if same else replace(s, roles=tuple(done))]


def _partners(buffers: Iterable[int], sharing: Mapping[int, Iterable[Buffer]]) -> set[int]:
    """Buffers that share bytes with one of `buffers` (ids)."""
    return {id(other) for key in buffers for other in sharing.get(key, ())}


def _joins_all(barrier: Invoke, role: tuple[int | None, int] | None) -> bool:
    """Whether a barrier joins all threads that run here, not only some warps of them."""
    if barrier.intrinsic is not NAMED_BARRIER_SYNC or role is None:
        return True
    joined = const_int(barrier.operands[1])
    return joined is None or joined >= role[1]


def _part_of_warp(s: If, kernel: ThreadKernel) -> Threads | None:
    """The threads that take a branch, when they lie in one warp."""
    wide = [v for v, n in zip(kernel.thread_vars, kernel.threads, strict=False) if n > 1]
    only = wide[0] if len(wide) == 1 else None
    found = threads_where(s.cond, only, Threads(0, kernel.num_threads))
    one = found is not None and found.first // WARP == (found.stop - 1) // WARP
    return found if one else None


def _meets_in_parts(s: If, syncer: Syncer) -> bool:
    """Whether a branch holds barriers of the program that are for some of the threads only: those
    that pass them by wait for all that the branch does."""
    here = syncer.role or (0, syncer.kernel.num_threads)
    return any(isinstance(n, Invoke) and not _joins_all(n, here) for n in walk(s))


def _orders_itself(roles: WarpRoles) -> bool:
    """Whether roles wait for each other: at mbarriers, or at barriers of the program's that are
    no role's own."""
    return any(
        isinstance(n, Invoke) and _joins_roles(n, role)
        for role in roles.roles
        for n in walk(role.body)
    )


def _joins_roles(n: Invoke, role: Role) -> bool:
    if n.intrinsic.waits and any(p.role == "barrier" for p in n.intrinsic.operands):
        return True
    if n.intrinsic is NAMED_BARRIER_SYNC and (const_int(n.operands[1]) or 1024) <= role.count:
        return False  # for its own threads
    of_block = n.intrinsic in BARRIERS and not (role.own_barriers and n.intrinsic is SYNCTHREADS)
    return of_block and not n.reason


def _needs_looking_into(loop: For) -> bool:
    """Whether barriers may be needed inside a loop: one that runs in order, and one that the
    program unrolls (those that a lowering unrolls are parts of one op)."""
    keys = {key for key, _ in loop.attrs}
    unrolled = loop.kind is LoopKind.UNROLL and _of_program(loop)
    return (loop.kind is LoopKind.SERIAL or unrolled) and OWN_ELEMENTS not in keys


def _of_program(loop: For) -> bool:
    """Whether the program wrote a loop, and not a lowering."""
    return any(key == OF_PROGRAM for key, _ in loop.attrs)


class _Quiet:
    """A context that records nothing, for the rehearsal of a loop body."""

    def note(self, *args: Any, **kwargs: Any) -> None:
        """Drop the note."""


_RULES: dict[type[Stmt], Callable[[Syncer, Any, Pending], list[Stmt]]] = {
    Seq: Syncer.nested, If: Syncer.branch, For: Syncer.loop, While: Syncer.loop,
    WarpRoles: Syncer.roles, Break: Syncer.jump, Continue: Syncer.jump,
}  # fmt: skip
