"""How statements without waits run. Hides branches and loops in which lanes or blocks differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelab.ir import For, If, Let, LoopKind, Node, Seq, Stmt, Store, While
from tilelab.ir.stmt import Alloc, Break, Continue
from tilelab.sim.code import Runner
from tilelab.sim.evaluate import as_array, convert
from tilelab.sim.frame import Frame, snapshot, varies
from tilelab.sim.guards import note_branch
from tilelab.sim.loops import LoopThreads, going, innermost, iterations, together, while_true
from tilelab.sim.nans import check_value
from tilelab.sim.place import Place
from tilelab.sim.strand import Strand
from tilelab.thread import Comment, Invoke, VectorCopy


def _run_seq(s: Strand, stmt: Seq, frame: Frame) -> None:
    for part, inner in going(s, stmt, frame):
        s.run(part, inner)


def _run_let(s: Strand, stmt: Let, frame: Frame) -> None:
    frame.env.set(stmt.var, convert(s.kept(stmt.value, frame), stmt.var.dtype))


def _run_store(s: Strand, stmt: Store, frame: Frame) -> None:
    indices = tuple(s.kept(i, frame) for i in stmt.indices)
    value = as_array(s.value(stmt.value, frame), stmt.buffer.dtype)
    check_value(s.machine.memory, stmt.value, value, frame)
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
        frame.env.set(stmt.result, snapshot(convert(value, stmt.result.dtype)))


def _run_if(s: Strand, stmt: If, frame: Frame) -> None:
    for side, part in sides(s, stmt, frame):
        s.run(side, part)


def sides(s: Strand, stmt: If, frame: Frame, missing: Seq | None = None) -> list[tuple[Seq, Frame]]:
    """The sides of a branch that some lanes take, each with its frame; `missing` stands for an
    else that is not there."""
    cond = s.kept(stmt.cond, frame)
    if stmt.guard:
        note_branch(s.machine.memory, stmt, cond, frame)
    tests = [(stmt.then, cond)]
    orelse = missing if stmt.orelse is None else stmt.orelse
    if orelse is not None:
        tests.append((orelse, ~cond if varies(cond) else not cond))
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
    _run_loop(s, stmt.body, while_true(s, stmt, LoopThreads(s, stmt, frame)))


def _run_loop(s: Strand, body: Seq, frames: Iterator[Frame]) -> None:
    for inner in frames:
        for part in together(s, body, inner):
            s.run(body, part)


def _run_break(s: Strand, stmt: Break, frame: Frame) -> None:
    innermost(frame).leave(frame)


def _run_continue(s: Strand, stmt: Continue, frame: Frame) -> None:
    innermost(frame).skip(frame)


def _run_nothing(s: Strand, stmt: Stmt, frame: Frame) -> None:
    """Comments and allocations do nothing at run time."""


RUNNERS: dict[type[Node], Runner] = {
    Seq: _run_seq, Let: _run_let, Store: _run_store, VectorCopy: _run_copy, Invoke: _run_invoke,
    If: _run_if, For: _run_for, While: _run_while, Break: _run_break,
    Continue: _run_continue, Comment: _run_nothing, Alloc: _run_nothing,
}  # fmt: skip
