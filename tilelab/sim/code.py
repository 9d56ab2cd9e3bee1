"""What is known of statements ahead of time, and the tables of how they run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tilelab.ir import (
    Binary,
    Buffer,
    Call,
    For,
    LoopKind,
    Node,
    Scope,
    Seq,
    Stmt,
    Store,
    While,
    walk,
)
from tilelab.ir.stmt import Break, Continue, may_leave
from tilelab.sim.block_order import tells
from tilelab.sim.deciding import Deciding, deciding, targets
from tilelab.sim.meetings import parted
from tilelab.sim.work import Works
from tilelab.thread import Invoke, WarpRoles

_VECTOR_ROLES = frozenset({"reads", "writes", "updates", "value"})


Runner = Callable[[Any, Any, Any], None]
Driver = Callable[[Any, Any, Any], Iterator[Any]]


class Code:
    """Facts about statements, kept by the statement's identity.

    runners: how a statement without waits runs, by its type; drivers: how one that may wait runs,
    as a generator. Both take (strand, statement, frame). loop_seconds: how long a while loop of
    many iterations may take. steps: statements run so far, of max_steps.
    """

    def __init__(
        self,
        runners: Mapping[type[Node], Runner],
        drivers: Mapping[type[Node], Driver],
        loop_seconds: float = 5.0,
        max_steps: int | None = None,
    ) -> None:
        self.steps, self.max_steps = 0, max_steps or sys.maxsize
        self.runners, self.drivers, self.loop_seconds = runners, drivers, loop_seconds
        self.works = Works()
        self._parted: set[Node] = set()
        self._waits: dict[Node, bool] = {}
        self._serial: dict[Node, bool] = {}
        self._flops: dict[Node, int] = {}
        self._collective: dict[Node, bool] = {}
        self._exits: dict[Node, bool] = {}
        self._deciding: dict[Node, Deciding | None] = {}
        self._written: set[Buffer] = set()
        self._asks: dict[Node, bool] = {}
        self._tails: dict[tuple[Node, int], Seq] = {}

    @property
    def spent(self) -> bool:
        """Whether more statements were to run than may."""
        return self.steps > self.max_steps

    def learn(self, body: Node) -> None:
        """Look at a kernel as a whole, before its parts run."""
        self._parted.update(parted(body))
        self._written.update(b.storage for n in walk(body) for b in targets(n))

    def parted(self, stmt: Node) -> bool:
        """Whether a statement is a warp barrier whose lanes may wait at another, too."""
        return stmt in self._parted

    def waits(self, stmt: Node) -> bool:
        """Whether something in `stmt` may wait."""
        found = self._waits.get(stmt)
        if found is None:
            found = self._waits[stmt] = any(_may_wait(n) or n in self._parted for n in walk(stmt))
        return found

    def collective(self, stmt: Node) -> bool:
        """Whether something in `stmt` is done by whole warps together."""
        found = self._collective.get(stmt)
        if found is None:
            calls = (n for n in walk(stmt) if isinstance(n, Invoke))
            found = self._collective[stmt] = any(n.intrinsic.group != "thread" for n in calls)
        return found

    def exits(self, body: Seq) -> bool:
        """Whether a loop's body holds a break or continue."""
        found = self._exits.get(body)
        if found is None:
            found = self._exits[body] = may_leave(body)
        return found

    def tail(self, body: Seq, first: int) -> Seq:
        """The statements of a sequence from number `first` on."""
        found = self._tails.get((body, first))
        if found is None:
            found = self._tails[body, first] = Seq(body.body[first:], loc=body.loc)
        return found

    def alone(self, stmt: Stmt) -> Seq:
        """A statement as a sequence."""
        found = self._tails.get((stmt, 0))
        if found is None:
            found = self._tails[stmt, 0] = Seq((stmt,), loc=stmt.loc)
        return found

    def deciding(self, loop: While) -> Deciding | None:
        """What a while loop's end depends on; None where that is more than registers and memory."""
        if loop not in self._deciding:
            self._deciding[loop] = deciding(loop, self._parted.__contains__)
        return self._deciding[loop]

    def written(self, buffer: Buffer) -> bool:
        """Whether the kernel writes a buffer."""
        return buffer.storage in self._written

    def asks(self, stmt: Node) -> bool:
        """Whether a statement holds a loop that only asks what others must answer: other blocks
        and strands have to run while it does."""
        found = self._asks.get(stmt)
        if found is None:
            found = self._asks[stmt] = any(_only_asks(n) for n in walk(stmt))
        return found

    def flops(self, stmt: Store) -> int:
        """Floating-point operations of one execution of a store."""
        found = self._flops.get(stmt)
        if found is None:
            nodes = walk(stmt.value)
            found = sum(isinstance(n, Binary | Call) and n.dtype.is_float for n in nodes)
            self._flops[stmt] = found
        return found

    def serial(self, loop: For) -> bool:
        """Whether a LANES loop holds something that cannot run as an array axis."""
        found = self._serial.get(loop)
        if found is None:
            found = any(_keeps_order(n) or _reuses_register(n, loop) for n in walk(loop.body))
            self._serial[loop] = found
        return found


def _only_asks(n: Node) -> bool:
    """Whether a while loop does nothing but read atomics, and reckon with what they give: it may
    rest in between."""
    if not isinstance(n, While):
        return False
    inside = [*walk(n.cond), *walk(n.body)]
    calls = [i for i in inside if isinstance(i, Invoke)]
    others = (b for i in inside if not isinstance(i, Invoke) for b in targets(i))
    alone = all(tells(i) or _touches_nothing(i) for i in calls)
    return alone and any(map(tells, calls)) and all(b.scope is Scope.LOCAL for b in others)


def _touches_nothing(n: Invoke) -> bool:
    """Whether an instruction of single threads gets numbers only and gives none."""
    it = n.intrinsic
    alone = n.result is None and not it.waits and it.group == "thread"
    return alone and all(p.role == "value" for p in it.operands)


def _may_wait(n: Node) -> bool:
    """Whether others may run at this point: in a wait, and where a phase of a barrier ends."""
    if not isinstance(n, Invoke):
        return isinstance(n, WarpRoles) or _only_asks(n)
    return n.intrinsic.waits or any(p.role == "barrier" for p in n.intrinsic.operands)


def _keeps_order(n: Node) -> bool:
    test = _ORDERED.get(type(n))
    return test is not None and test(n)


def _reuses_register(n: Node, loop: For) -> bool:
    """Whether iterations store to one register: each sees what the one before left there."""
    if not isinstance(n, Store) or n.buffer.scope is not Scope.LOCAL:
        return False
    return not any(v is loop.var for i in n.indices for v in walk(i))


def _always(n: Node) -> bool:
    return True


def _ordered_loop(n: For) -> bool:
    return n.kind is not LoopKind.LANES


def _ordered_instruction(n: Invoke) -> bool:
    roles = {p.role for p in n.intrinsic.operands}
    return not roles or not roles <= _VECTOR_ROLES or n.intrinsic.waits


_ORDERED: dict[type[Node], Callable[[Any], bool]] = {
    Break: _always, Continue: _always, While: _always, WarpRoles: _always, For: _ordered_loop,
    Invoke: _ordered_instruction,
}  # fmt: skip
