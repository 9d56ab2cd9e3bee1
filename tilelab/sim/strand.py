"""Strands: streams of statements that run beside each other (warp roles, sides of a branch).

Statements without a wait run as plain calls, the others as generators that yield waits; how, say
the tables of `Code`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelab.ir import Expr, Node, Seq, Stmt
from tilelab.sim.code import Code
from tilelab.sim.evaluate import evaluate
from tilelab.sim.frame import Frame, Value, snapshot
from tilelab.sim.group import BlockGroup
from tilelab.sim.lanes import BlocksStopped
from tilelab.sim.machine import LaneMachine
from tilelab.sim.place import Place
from tilelab.sim.timeline import Clock
from tilelab.sim.wgmma import Descriptor
from tilelab.thread import Ref, SharedDescriptor, TensorMap


class Strand:
    """One stream of statements over a frame. `done` when it has ended."""

    def __init__(
        self,
        group: BlockGroup,
        code: Code,
        clock: Clock,
        frame: Frame,
        body: Seq,
        late: bool,
    ) -> None:
        self.group, self.code, self.clock, self.frame = group, code, clock, frame
        self.role = clock.role
        self.machine = LaneMachine(group, clock, late)
        self.late = late
        self.done = False
        self.wait: Any = None
        self.children: list[Strand] = []  # begun by the last step, taken by the scheduler
        self.steps = self._run_all(body)

    def _run_all(self, body: Seq) -> Iterator[Any]:
        try:
            yield from self.drive(body, self.frame)
        except BlocksStopped:
            pass
        finally:
            self.done = True

    def advance(self) -> None:
        """Run until the next wait or the end."""
        self.wait = next(self.steps, None)
        if self.done:
            self.machine.finish()

    def drive(self, stmt: Stmt, frame: Frame) -> Iterator[Any]:
        """Run a statement that may wait."""
        if not self.code.waits(stmt):
            self.run(stmt, frame)
            return
        self._enter(stmt, frame)
        yield from self.code.drivers[type(stmt)](self, stmt, frame)

    def run(self, stmt: Stmt, frame: Frame) -> None:
        """Run a statement in which nothing waits."""
        self._enter(stmt, frame)
        self.code.runners[type(stmt)](self, stmt, frame)
        if self.group.timeline is not None:
            self._spend(stmt, frame)

    def _spend(self, stmt: Stmt, frame: Frame) -> None:
        """Take a statement's time on the modelled timeline."""
        work = self.code.works.of(stmt)
        if work.kind:
            loc = self.machine.memory.loc
            degree = 1.0
            if work.shared_bytes:
                degree = self.group.counters.line(loc).bank_conflict_degree
            self.clock.spend(work, frame, loc, degree)

    def _enter(self, stmt: Stmt, frame: Frame) -> None:
        """Leave stopped blocks behind, and note where we are."""
        group = self.group
        if frame.epoch != group.epoch:
            frame.epoch = group.epoch
            alive = ~group.dead[frame.rows]
            if not alive.any():
                raise BlocksStopped
            if not alive.all():
                frame.drop_rows(alive, group.size)
        memory = self.machine.memory
        memory.statement = stmt
        if stmt.loc is not None:
            memory.loc = stmt.loc

    def value(self, e: Expr, frame: Frame) -> Value:
        """An expression's value."""
        return evaluate(e, frame, self.machine.memory)

    def kept(self, e: Expr, frame: Frame) -> Value:
        """An expression's value as it is now, whatever is stored later."""
        return snapshot(evaluate(e, frame, self.machine.memory))

    def place(self, ref: Ref, frame: Frame) -> Place:
        """A Ref with its indices evaluated."""
        return Place(ref.buffer, tuple(self.kept(i, frame) for i in ref.indices))

    def operand(self, operand: Node, frame: Frame) -> Any:
        """An instruction's operand, as meanings get it."""
        kind = Expr if isinstance(operand, Expr) else type(operand)
        return _OPERANDS[kind](self, operand, frame)


def _operand_map(strand: Strand, operand: TensorMap, frame: Frame) -> TensorMap:
    return operand


def _operand_descriptor(strand: Strand, operand: SharedDescriptor, frame: Frame) -> Descriptor:
    place = strand.place(operand.ref, frame)
    place = strand.machine.memory.bounded(place, frame, "descriptor")
    start = strand.group.shared.address(place.buffer, place.indices)
    if operand.advance is not None:
        start = start + strand.value(operand.advance, frame)
    return Descriptor(place.buffer, start, operand.leading, operand.stride, operand.swizzle)


_OPERANDS: dict[type[Node], Callable[[Strand, Any, Frame], Any]] = {
    Expr: Strand.kept, Ref: Strand.place, TensorMap: _operand_map,
    SharedDescriptor: _operand_descriptor,
}  # fmt: skip
