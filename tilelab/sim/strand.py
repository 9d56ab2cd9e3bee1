"""Strands: streams of statements that run beside each other (warp roles, sides of a branch).

Statements without a wait run as plain calls, the others as generators that yield waits; how, say
the tables of `Code`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tilelab.ir import Expr, Node, Seq, Stmt
from tilelab.sim import findings as f
from tilelab.sim.code import Code
from tilelab.sim.evaluate import evaluate
from tilelab.sim.frame import Array, Frame, Value, snapshot
from tilelab.sim.group import BlockGroup
from tilelab.sim.lanes import BlocksStopped
from tilelab.sim.machine import LaneMachine
from tilelab.sim.place import Place
from tilelab.sim.timeline import Clock
from tilelab.sim.wgmma import Descriptor
from tilelab.target import WARP
from tilelab.thread import Ref, SharedDescriptor, TensorMap


class Parting:
    """A branch, or a loop that asks, whose threads may have to go on apart; `tail` follows it.

    frame: the threads that came; parts: the frames of the sides that run, beside each other as
    `strands` or (none) in place; ahead: the strands of threads that went on before others.
    """

    def __init__(self, tail: Seq) -> None:
        self.tail = tail
        self.open = False
        self.frame: Frame | None = None
        self.parts: list[Frame] = []
        self.strands: list[Strand] = []
        self.ahead: list[Strand] = []

    def begin(
        self, group: BlockGroup, frame: Frame, parts: list[Frame], idle: list[Frame],
        left: Callable[[], Array] | None = None,
    ) -> None:  # fmt: skip
        """The branch is entered; `idle` are the threads that take no side. Or a loop is, and
        `left` says which threads have left it."""
        self.frame, self.parts, self.open, self._left = frame, parts, True, left
        self._size = group.size
        self._free = np.zeros((group.size, group.kernel.num_threads), np.bool_)
        self._gone = self._free.copy()
        self._mark(self._free, idle)

    def _mark(self, marks: Array, frames: Iterable[Frame]) -> None:
        for frame in frames:
            on = True if frame.mask is None else np.broadcast_to(frame.mask, frame.shape[-2:])
            marks[np.ix_(frame.rows, frame.lanes)] |= on

    def leave(self, whole: bool) -> list[Frame]:
        """The threads that have nothing left to do here: they go on now. `whole`: only those of
        warps that have come here and go on together."""
        if self.frame is None:
            return []
        over = [p for p, s in zip(self.parts, self.strands, strict=False) if s.done]
        self._mark(self._free, over)
        free = self._free if self._left is None else self._left()
        here = np.zeros_like(free)
        self._mark(here, [self.frame])
        new: Array = free & here & ~self._gone
        if whole:
            starts = list(range(0, int(new.shape[1]), WARP))
            through = np.logical_and.reduceat(free | ~here, starts, axis=1)
            new &= np.repeat(through, WARP, axis=1)[:, : new.shape[1]]
        self._gone |= new
        return self._of(new)

    def behind(self) -> list[Frame]:
        """The threads that were still here when others went on."""
        return self._of(~self._gone)

    def _of(self, threads: Array) -> list[Frame]:
        assert self.frame is not None
        found = self.frame.where(self.frame.pick(threads), self._size)
        return [] if found is None else [found]


class Strand:
    """One stream of statements over a frame. `done` when it has ended."""

    def __init__(
        self, group: BlockGroup, code: Code, clock: Clock, frame: Frame, body: Seq, late: bool
    ) -> None:
        self.group, self.code, self.clock, self.frame = group, code, clock, frame
        self.role = clock.role
        self.machine = LaneMachine(group, clock, late)
        self.late = late
        self.done = False
        self.wait: Any = None
        self.children: list[Strand] = []  # begun by the last step, taken by the scheduler
        self.partings: list[Parting] = []  # branches that it is in, outermost first
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

    def fork(self, role: str, frame: Frame, body: Seq) -> Strand:
        """A strand for a part of this one's threads, begun with the next step."""
        clock = self.clock.fork(role)
        strand = Strand(self.group, self.code, clock, frame, body, self.late)
        strand.machine.inherit(self.machine)
        self.children.append(strand)
        return strand

    def join(self, strands: list[Strand]) -> None:
        """What ended strands have left under way is this one's now."""
        for strand in strands:
            self.machine.adopt(strand.machine)
        self.clock.join(strand.clock for strand in strands)

    def part(self, whole: bool) -> bool:
        """Let threads (`whole`: warps) that have nothing to do in the innermost branch go on with
        what follows it; whether there were any."""
        for parting in reversed(self.partings):
            free = self.unmasked(parting.leave(whole), parting.tail)
            if free:
                parting.ahead += [self.fork(self.role, f, parting.tail) for f in free]
                return True
        return False

    def unmasked(self, frames: list[Frame], body: Seq) -> list[Frame]:
        """Frames that can run a body: without masks where whole warps act together in it."""
        if not self.code.collective(body):
            return frames
        return [part for f in frames for part in f.rectangles(self.group.size)]

    def drive(self, stmt: Stmt, frame: Frame) -> Iterator[Any]:
        """Run a statement that may wait."""
        if not self.code.waits(stmt):
            self.run(stmt, frame)
            return
        self.enter(stmt, frame)
        yield from self.code.drivers[type(stmt)](self, stmt, frame)

    def run(self, stmt: Stmt, frame: Frame) -> None:
        """Run a statement in which nothing waits."""
        self.enter(stmt, frame)
        self.code.runners[type(stmt)](self, stmt, frame)
        self.spend(stmt, frame)

    def spend(self, stmt: Stmt, frame: Frame) -> None:
        """Take a statement's time on the modelled timeline."""
        if self.group.timeline is None:
            return
        work = self.code.works.of(stmt)
        if work.kind:
            loc = self.machine.memory.loc
            degree = 1.0
            if work.shared_bytes:
                degree = self.group.counters.line(loc).bank_conflict_degree
            self.clock.spend(work, frame, loc, degree)

    def enter(self, stmt: Stmt, frame: Frame) -> None:
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
        self.code.steps += 1
        if self.code.spent:
            self._give_up(frame)

    def _give_up(self, frame: Frame) -> None:
        """More statements than may run: end all blocks."""
        self.group.report(
            f.RUNAWAY_LOOP, f"the kernel has run {self.code.max_steps} simulator steps and goes on",
            self.machine.memory.loc, row=int(frame.rows[0]), thread=int(frame.lanes[0]),
            hint="a loop without an end, or too little of the work side by side: use more threads "
            "and blocks; simulate(..., max_steps=...) allows more",
        )  # fmt: skip
        self.group.stop(np.arange(self.group.size))
        raise BlocksStopped

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
    for added in (operand.advance, operand.slot):
        start = start if added is None else start + strand.value(added, frame)
    return Descriptor(place.buffer, start, operand.leading, operand.stride, operand.swizzle)


_OPERANDS: dict[type[Node], Callable[[Strand, Any, Frame], Any]] = {
    Expr: Strand.kept, Ref: Strand.place, TensorMap: _operand_map,
    SharedDescriptor: _operand_descriptor,
}  # fmt: skip
