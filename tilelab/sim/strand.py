"""Strands: streams of statements that run beside each other (warp roles, sides of a branch).

Statements without a wait run as plain calls, the others as generators that yield waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilelab.errors import TileNotSupported
from tilelab.ir import Binary, Call, Expr, For, If, Let, LoopKind, Node, Seq, Stmt, Store, Var, While, walk
from tilelab.ir.stmt import Alloc, Break, Continue
from tilelab.sim import findings as f
from tilelab.sim.access import Place
from tilelab.sim.evaluate import as_array, convert, evaluate
from tilelab.sim.frame import Frame, Value
from tilelab.sim.group import BlockGroup
from tilelab.sim.lanes import BlocksStopped
from tilelab.sim.machine import LaneMachine
from tilelab.sim.waits import JoinWait
from tilelab.sim.wgmma import Descriptor
from tilelab.thread import (
    Comment,
    Invoke,
    Ref,
    SharedDescriptor,
    TensorMap,
    VectorCopy,
    WarpRoles,
)

MAX_ITERATIONS = 10_000_000
_VECTOR_ROLES = {"reads", "writes", "updates", "value"}


class Code:
    """What is known of statements ahead of time, computed once per program."""

    def __init__(self) -> None:
        self._waits: dict[Node, bool] = {}
        self._serial: dict[Node, bool] = {}
        self._flops: dict[Node, int] = {}

    def waits(self, stmt: Node) -> bool:
        """Whether something in `stmt` may wait."""
        found = self._waits.get(stmt)
        if found is None:
            found = any(
                (isinstance(n, Invoke) and n.intrinsic.waits) or isinstance(n, WarpRoles)
                for n in walk(stmt)
            )
            self._waits[stmt] = found
        return found

    def flops(self, stmt: Store) -> int:
        """Floating-point operations of one execution of a store."""
        found = self._flops.get(stmt)
        if found is None:
            found = sum(
                isinstance(n, Binary | Call) and n.dtype.is_float for n in walk(stmt.value)
            )
            self._flops[stmt] = found
        return found

    def serial(self, loop: For) -> bool:
        """Whether a LANES loop holds an instruction that cannot run as an array axis, or control
        flow out of the loop."""
        found = self._serial.get(loop)
        if found is None:
            found = any(_keeps_order(n) for n in walk(loop.body))
            self._serial[loop] = found
        return found


def _keeps_order(n: Node) -> bool:
    if isinstance(n, Break | Continue | While | WarpRoles):
        return True
    if isinstance(n, For) and n.kind is not LoopKind.LANES:
        return True
    if not isinstance(n, Invoke):
        return False
    roles = {p.role for p in n.intrinsic.operands}
    return not roles or not roles <= _VECTOR_ROLES or n.intrinsic.waits


class LoopExit(Exception):
    """Break or Continue on its way to the loop (only where all lanes of the frame agree)."""

    def __init__(self, stmt: Break | Continue, frame: Frame) -> None:
        self.leave, self.frame, self.loc = isinstance(stmt, Break), frame, stmt.loc
        super().__init__("break" if self.leave else "continue")


class Strand:
    """One stream of statements over a frame. `done` when it has ended."""

    def __init__(
        self, group: BlockGroup, code: Code, role: str, frame: Frame, body: Seq, late: bool
    ) -> None:
        self.group, self.code, self.role, self.frame = group, code, role, frame
        self.machine = LaneMachine(group, role, late)
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

    # ---- statements ---------------------------------------------------------------------------

    def drive(self, stmt: Stmt, frame: Frame) -> Iterator[Any]:
        """Run a statement that may wait."""
        if not self.code.waits(stmt):
            self.run(stmt, frame)
            return
        self._enter(stmt, frame)
        yield from _DRIVERS[type(stmt)](self, stmt, frame)

    def run(self, stmt: Stmt, frame: Frame) -> None:
        """Run a statement in which nothing waits."""
        self._enter(stmt, frame)
        _RUNNERS[type(stmt)](self, stmt, frame)

    def _enter(self, stmt: Stmt, frame: Frame) -> None:
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
        return evaluate(e, frame, self.machine.memory)

    def place(self, ref: Ref, frame: Frame) -> Place:
        return Place(ref.buffer, tuple(self.value(i, frame) for i in ref.indices))

    # ---- without waits ------------------------------------------------------------------------

    def _run_seq(self, stmt: Seq, frame: Frame) -> None:
        for part in stmt.body:
            self.run(part, frame)

    def _run_let(self, stmt: Let, frame: Frame) -> None:
        frame.env.set(stmt.var, convert(self.value(stmt.value, frame), stmt.var.dtype))

    def _run_store(self, stmt: Store, frame: Frame) -> None:
        indices = tuple(self.value(i, frame) for i in stmt.indices)
        value = as_array(self.value(stmt.value, frame), stmt.buffer.dtype)
        self.machine.memory.store(Place(stmt.buffer, indices), value, frame)
        self._count_flops(stmt, frame)

    def _count_flops(self, stmt: Store, frame: Frame) -> None:
        work = self.code.flops(stmt)
        if work:
            self.group.counters.add(self.machine.memory.loc, "simt_flops", work * frame.active())

    def _run_copy(self, stmt: VectorCopy, frame: Frame) -> None:
        memory = self.machine.memory
        values = memory.load_run(self.place(stmt.src, frame), stmt.count, frame)
        memory.store_run(self.place(stmt.dst, frame), values, frame)

    def _run_invoke(self, stmt: Invoke, frame: Frame) -> None:
        operands = [_OPERANDS[_kind(o)](self, o, frame) for o in stmt.operands]
        self.machine.frame = frame
        stmt.intrinsic.meaning(self.machine, *operands)

    def _run_if(self, stmt: If, frame: Frame) -> None:
        for side, part in self._sides(stmt, frame):
            self.run(side, part)

    def _sides(self, stmt: If, frame: Frame) -> list[tuple[Seq, Frame]]:
        """The sides that some lanes take, each with its frame."""
        cond = self.value(stmt.cond, frame)
        sides = [(stmt.then, cond)]
        if stmt.orelse is not None:
            sides.append((stmt.orelse, ~cond if isinstance(cond, np.ndarray) else not cond))
        out: list[tuple[Seq, Frame]] = []
        for body, test in sides:
            part = frame if not isinstance(test, np.ndarray) else frame.where(test, self.group.size)
            if part is not None and (isinstance(test, np.ndarray) or test):
                out.append((body, part))
        return out

    def _iterations(self, stmt: For, frame: Frame) -> Iterator[Frame]:
        """The frame of each iteration, with the loop variable set; blocks and lanes whose loop
        is shorter drop out."""
        start, step = self.value(stmt.start, frame), self.value(stmt.step, frame)
        extent = self.value(stmt.extent, frame)
        if not isinstance(extent, np.ndarray):
            for i in range(int(extent)):
                frame.env.set(stmt.var, start + i * step)
                yield frame
            return
        # Kept in the environment, so that they shrink with the frame.
        trips, first = Var("trips"), Var("first")
        frame.env.set(trips, extent)
        frame.env.set(first, start)
        inner: Frame | None = frame
        for i in range(int(extent.max())):
            more = np.asarray(inner.env.get(trips)) > i
            if not more.all():
                inner = inner.where(more, self.group.size)
                if inner is None:
                    return
            inner.env.set(stmt.var, inner.env.get(first) + i * step)
            yield inner

    def _run_for(self, stmt: For, frame: Frame) -> None:
        if stmt.kind is LoopKind.LANES and not self.code.serial(stmt):
            self._run_lanes(stmt, frame)
            return
        self._run_loop(stmt.body, self._iterations(stmt, frame))

    def _run_lanes(self, stmt: For, frame: Frame) -> None:
        extent = int(np.max(self.value(stmt.extent, frame)))
        start, step = self.value(stmt.start, frame), self.value(stmt.step, frame)
        if extent == 0:
            return
        numbers = np.arange(extent, dtype=stmt.var.dtype.numpy) * step
        inner = frame.looped(stmt.var, numbers)
        if not isinstance(start, int) or start:
            inner.env.set(stmt.var, inner.env.get(stmt.var) + start)
        self.run(stmt.body, inner)

    def _run_while(self, stmt: While, frame: Frame) -> None:
        self._run_loop(stmt.body, self._while(stmt, frame))

    def _run_loop(self, body: Seq, iterations: Iterator[Frame]) -> None:
        for inner in iterations:
            try:
                self.run(body, inner)
            except LoopExit as exit_:
                self._check_exit(exit_, inner)
                if exit_.leave:
                    break

    def _check_exit(self, exit_: LoopExit, inner: Frame) -> None:
        if exit_.frame.active() != inner.active():
            raise TileNotSupported(
                f"{exit_} is taken by some threads or blocks of a loop only",
                code="TL2101", loc=exit_.loc,
                hint="use a flag in the loop's condition instead",
            )  # fmt: skip

    def _while(self, stmt: While, frame: Frame) -> Iterator[Frame]:
        inner: Frame | None = frame
        for _ in range(MAX_ITERATIONS):
            cond = self.value(stmt.cond, inner)
            if isinstance(cond, np.ndarray):
                inner = inner.where(cond, self.group.size)
                if inner is None:
                    return
            elif not cond:
                return
            yield inner
        text = f"a while loop has run {MAX_ITERATIONS} times"
        self.group.report(f.RUNAWAY_LOOP, text, stmt.loc, row=int(frame.rows[0]))
        self.group.stop(frame.rows)

    def _run_exit(self, stmt: Break | Continue, frame: Frame) -> None:
        raise LoopExit(stmt, frame)

    def _run_nothing(self, stmt: Stmt, frame: Frame) -> None:
        """Comments and allocations do nothing at run time."""

    # ---- with waits ---------------------------------------------------------------------------

    def _drive_seq(self, stmt: Seq, frame: Frame) -> Iterator[Any]:
        for part in stmt.body:
            if self.code.waits(part):
                yield from self.drive(part, frame)
            else:
                self.run(part, frame)

    def _drive_invoke(self, stmt: Invoke, frame: Frame) -> Iterator[Any]:
        operands = [_OPERANDS[_kind(o)](self, o, frame) for o in stmt.operands]
        self.machine.frame = frame
        yield from stmt.intrinsic.meaning(self.machine, *operands) or ()

    def _drive_for(self, stmt: For, frame: Frame) -> Iterator[Any]:
        yield from self._drive_loop(stmt.body, self._iterations(stmt, frame))

    def _drive_while(self, stmt: While, frame: Frame) -> Iterator[Any]:
        yield from self._drive_loop(stmt.body, self._while(stmt, frame))

    def _drive_loop(self, body: Seq, iterations: Iterator[Frame]) -> Iterator[Any]:
        for inner in iterations:
            try:
                yield from self.drive(body, inner)
            except LoopExit as exit_:
                self._check_exit(exit_, inner)
                if exit_.leave:
                    break

    def _drive_if(self, stmt: If, frame: Frame) -> Iterator[Any]:
        sides = self._sides(stmt, frame)
        if len(sides) == 1:
            yield from self.drive(*sides[0])
        elif sides:
            yield from self._fork([(self.role, body, part) for body, part in sides], stmt)

    def _drive_roles(self, stmt: WarpRoles, frame: Frame) -> Iterator[Any]:
        sides: list[tuple[str, Seq, Frame]] = []
        for role in stmt.roles:
            chosen = (frame.lanes >= role.first) & (frame.lanes < role.first + role.count)
            if chosen.any():
                sides.append((role.name, role.body, frame.narrowed(None, chosen, self.group.size)))
        yield from self._fork(sides, stmt)

    def _fork(self, sides: list[tuple[str, Seq, Frame]], stmt: Stmt) -> Iterator[Any]:
        """Run sides beside each other and wait for all of them."""
        strands = [Strand(self.group, self.code, r, part, b, self.late) for r, b, part in sides]
        self.children.extend(strands)
        yield JoinWait(strands, stmt.loc)


_RUNNERS: dict[type[Node], Callable[[Strand, Any, Frame], None]] = {
    Seq: Strand._run_seq, Let: Strand._run_let, Store: Strand._run_store,
    VectorCopy: Strand._run_copy, Invoke: Strand._run_invoke, If: Strand._run_if,
    For: Strand._run_for, While: Strand._run_while, Break: Strand._run_exit,
    Continue: Strand._run_exit, Comment: Strand._run_nothing, Alloc: Strand._run_nothing,
}  # fmt: skip
_DRIVERS: dict[type[Node], Callable[[Strand, Any, Frame], Iterator[Any]]] = {
    Seq: Strand._drive_seq, Invoke: Strand._drive_invoke, For: Strand._drive_for,
    While: Strand._drive_while, If: Strand._drive_if, WarpRoles: Strand._drive_roles,
}  # fmt: skip


def _operand_value(strand: Strand, operand: Expr, frame: Frame) -> Value:
    return strand.value(operand, frame)


def _operand_place(strand: Strand, operand: Ref, frame: Frame) -> Place:
    return strand.place(operand, frame)


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
    Expr: _operand_value, Ref: _operand_place, TensorMap: _operand_map,
    SharedDescriptor: _operand_descriptor,
}  # fmt: skip


def _kind(operand: Node) -> type[Node]:
    return Expr if isinstance(operand, Expr) else type(operand)
