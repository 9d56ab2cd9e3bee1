"""How statements without waits run. Hides branches and loops in which lanes or blocks differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelab.errors import TileNotSupported
from tilelab.ir import For, If, Let, LoopKind, Node, Seq, Stmt, Store, Var, While
from tilelab.ir.stmt import Alloc, Break, Continue
from tilelab.sim import findings as f
from tilelab.sim.code import Runner
from tilelab.sim.evaluate import as_array, convert
from tilelab.sim.frame import Frame, varies
from tilelab.sim.place import Place
from tilelab.sim.strand import Strand
from tilelab.thread import Comment, Invoke, VectorCopy

MAX_ITERATIONS = 10_000_000


class LoopExit(Exception):
    """Break or Continue on its way to the loop (only where all lanes of the frame agree)."""

    def __init__(self, stmt: Break | Continue, frame: Frame) -> None:
        self.leave, self.frame, self.loc = isinstance(stmt, Break), frame, stmt.loc
        super().__init__("break" if self.leave else "continue")


def _run_seq(s: Strand, stmt: Seq, frame: Frame) -> None:
    for part in stmt.body:
        s.run(part, frame)


def _run_let(s: Strand, stmt: Let, frame: Frame) -> None:
    frame.env.set(stmt.var, convert(s.value(stmt.value, frame), stmt.var.dtype))


def _run_store(s: Strand, stmt: Store, frame: Frame) -> None:
    indices = tuple(s.value(i, frame) for i in stmt.indices)
    value = as_array(s.value(stmt.value, frame), stmt.buffer.dtype)
    s.machine.memory.store(Place(stmt.buffer, indices), value, frame)
    work = s.code.flops(stmt)
    if work:
        s.group.counters.add(s.machine.memory.loc, "simt_flops", work * frame.active())


def _run_copy(s: Strand, stmt: VectorCopy, frame: Frame) -> None:
    memory = s.machine.memory
    values = memory.load_run(s.place(stmt.src, frame), stmt.count, frame)
    memory.store_run(s.place(stmt.dst, frame), values, frame)


def _run_invoke(s: Strand, stmt: Invoke, frame: Frame) -> None:
    operands = [s.operand(o, frame) for o in stmt.operands]
    s.machine.frame = frame
    value = stmt.intrinsic.meaning(s.machine, *operands)
    bind_result(stmt, value, frame)


def bind_result(stmt: Invoke, value: Any, frame: Frame) -> None:
    """Bind the value that an instruction gave to its variable."""
    if stmt.result is not None:
        frame.env.set(stmt.result, convert(value, stmt.result.dtype))


def _run_if(s: Strand, stmt: If, frame: Frame) -> None:
    for side, part in sides(s, stmt, frame):
        s.run(side, part)


def sides(s: Strand, stmt: If, frame: Frame) -> list[tuple[Seq, Frame]]:
    """The sides of a branch that some lanes take, each with its frame."""
    cond = s.value(stmt.cond, frame)
    tests = [(stmt.then, cond)]
    if stmt.orelse is not None:
        tests.append((stmt.orelse, ~cond if varies(cond) else not cond))
    out: list[tuple[Seq, Frame]] = []
    for body, test in tests:
        if varies(test):
            part = frame.where(test, s.group.size)
            if part is None:
                continue
            parts = part.rectangles(s.group.size) if s.code.collective(body) else [part]
            out.extend((body, p) for p in parts)
        elif test:
            out.append((body, frame))
    return out


def iterations(s: Strand, stmt: For, frame: Frame) -> Iterator[Frame]:
    """The frame of each iteration, with the loop variable set; blocks and lanes whose loop is
    shorter drop out."""
    start, step = s.value(stmt.start, frame), s.value(stmt.step, frame)
    extent = s.value(stmt.extent, frame)
    if not varies(extent):
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
            inner = inner.where(more, s.group.size)
            if inner is None:
                return
        inner.env.set(stmt.var, inner.env.get(first) + i * step)
        yield inner


def _run_for(s: Strand, stmt: For, frame: Frame) -> None:
    extent = s.value(stmt.extent, frame)
    if stmt.kind is not LoopKind.LANES or varies(extent) or s.code.serial(stmt):
        _run_loop(s, stmt.body, iterations(s, stmt, frame))
    else:
        _run_lanes(s, stmt, frame, int(extent))


def _run_lanes(s: Strand, stmt: For, frame: Frame, extent: int) -> None:
    start, step = s.value(stmt.start, frame), s.value(stmt.step, frame)
    if extent == 0:
        return
    inner = frame.looped(stmt.var, np.arange(extent, dtype=stmt.var.dtype.numpy) * step)
    if varies(start) or start:
        inner.env.set(stmt.var, inner.env.get(stmt.var) + start)
    s.run(stmt.body, inner)


def _run_while(s: Strand, stmt: While, frame: Frame) -> None:
    _run_loop(s, stmt.body, while_true(s, stmt, frame))


def _run_loop(s: Strand, body: Seq, frames: Iterator[Frame]) -> None:
    for inner in frames:
        try:
            s.run(body, inner)
        except LoopExit as exit_:
            if leaves(exit_, inner):
                break


def leaves(exit_: LoopExit, inner: Frame) -> bool:
    """Whether the loop ends here. TileNotSupported (TL2101) when lanes disagree."""
    if exit_.frame.active() != inner.active():
        raise TileNotSupported(
            f"{exit_} is taken by some threads or blocks of a loop only",
            code="TL2101", loc=exit_.loc,
            hint="use a flag in the loop's condition instead",
        )  # fmt: skip
    return exit_.leave


def while_true(s: Strand, stmt: While, frame: Frame) -> Iterator[Frame]:
    """The frame of each iteration of a while loop."""
    inner: Frame | None = frame
    for _ in range(MAX_ITERATIONS):
        cond = s.value(stmt.cond, inner)
        if varies(cond):
            inner = inner.where(cond, s.group.size)
            if inner is None:
                return
        elif not cond:
            return
        yield inner
    text = f"a while loop has run {MAX_ITERATIONS} times"
    s.group.report(f.RUNAWAY_LOOP, text, stmt.loc, row=int(frame.rows[0]))
    s.group.stop(frame.rows)


def _run_exit(s: Strand, stmt: Break | Continue, frame: Frame) -> None:
    raise LoopExit(stmt, frame)


def _run_nothing(s: Strand, stmt: Stmt, frame: Frame) -> None:
    """Comments and allocations do nothing at run time."""


RUNNERS: dict[type[Node], Runner] = {
    Seq: _run_seq, Let: _run_let, Store: _run_store, VectorCopy: _run_copy, Invoke: _run_invoke,
    If: _run_if, For: _run_for, While: _run_while, Break: _run_exit, Continue: _run_exit,
    Comment: _run_nothing, Alloc: _run_nothing,
}  # fmt: skip
