"""How statements that may wait run: as generators that yield waits, with strands that fork."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, cast

from tilelab.ir import For, If, Node, Seq, Stmt, While
from tilelab.sim.code import Driver
from tilelab.sim.frame import Frame
from tilelab.sim.loops import going, iterations, together, while_true
from tilelab.sim.statements import bind_result, sides
from tilelab.sim.strand import Strand
from tilelab.sim.waits import JoinWait
from tilelab.thread import Invoke, WarpRoles


def _drive_seq(s: Strand, stmt: Seq, frame: Frame) -> Iterator[Any]:
    for part, inner in going(s, stmt, frame):
        yield from s.drive(part, inner)


def _drive_invoke(s: Strand, stmt: Invoke, frame: Frame) -> Iterator[Any]:
    operands = [s.operand(o, frame) for o in stmt.operands]
    s.machine.frame = frame
    steps = stmt.intrinsic.meaning(s.machine, *operands) or ()
    value = yield from cast("Generator[Any, Any, Any]", steps)
    bind_result(stmt, value, frame)


def _drive_for(s: Strand, stmt: For, frame: Frame) -> Iterator[Any]:
    yield from _drive_loop(s, stmt.body, iterations(s, stmt, frame))


def _drive_while(s: Strand, stmt: While, frame: Frame) -> Iterator[Any]:
    yield from _drive_loop(s, stmt.body, while_true(s, stmt, frame))


def _drive_loop(s: Strand, body: Seq, frames: Iterator[Frame]) -> Iterator[Any]:
    for inner in frames:
        parts = together(s, body, inner)
        if len(parts) == 1:
            yield from s.drive(body, parts[0])
        else:
            yield from _fork(s, [(s.role, body, part) for part in parts], body)


def _drive_if(s: Strand, stmt: If, frame: Frame) -> Iterator[Any]:
    taken = sides(s, stmt, frame)
    if len(taken) == 1:
        yield from s.drive(*taken[0])
    elif taken:
        yield from _fork(s, [(s.role, body, part) for body, part in taken], stmt)


def _drive_roles(s: Strand, stmt: WarpRoles, frame: Frame) -> Iterator[Any]:
    parts: list[tuple[str, Seq, Frame]] = []
    for role in stmt.roles:
        chosen = (frame.lanes >= role.first) & (frame.lanes < role.first + role.count)
        if chosen.any():
            parts.append((role.name, role.body, frame.narrowed(None, chosen, s.group.size)))
    yield from _fork(s, parts, stmt)


def _fork(s: Strand, parts: list[tuple[str, Seq, Frame]], stmt: Stmt) -> Iterator[Any]:
    """Run parts beside each other and wait for all of them."""
    strands = [
        Strand(s.group, s.code, s.clock.fork(role), part, body, s.late)
        for role, body, part in parts
    ]
    s.children.extend(strands)
    yield JoinWait(strands, stmt.loc)
    s.clock.join(strand.clock for strand in strands)


DRIVERS: dict[type[Node], Driver] = {
    Seq: _drive_seq, Invoke: _drive_invoke, For: _drive_for, While: _drive_while, If: _drive_if,
    WarpRoles: _drive_roles,
}  # fmt: skip
