"""How statements that may wait run: as generators that yield waits, with strands that fork.

Hides that threads which have nothing to do in a branch may have to go on before the branch ends:
they wait for its end, as the threads of a warp do, until nobody else can go on (`Parting`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, cast

import numpy as np

from tilelab.ir import Const, For, If, Node, Seq, Stmt, While
from tilelab.sim.code import Driver
from tilelab.sim.frame import Frame, agreeing
from tilelab.sim.lane_meetings import meet
from tilelab.sim.loops import LoopThreads, going, iterations, together, while_true
from tilelab.sim.partition import apart
from tilelab.sim.statements import bind_result, sides
from tilelab.sim.strand import Parting, Strand
from tilelab.sim.waits import HandOver, JoinWait, Turn
from tilelab.target import WARP
from tilelab.thread import Invoke, Role, WarpRoles
from tilelab.thread.intrinsics.barrier import NAMED_BARRIER_SYNC

_NOTHING = Seq(())


def _drive_seq(s: Strand, stmt: Seq, frame: Frame) -> Iterator[Any]:
    parts = list(stmt.body)
    for number, (part, inner) in enumerate(going(s, stmt, frame)):
        may_part = _branches(part) or (type(part) is While and s.code.asks(part))
        if not may_part or number + 1 >= len(parts) or part is not parts[number]:
            yield from s.drive(part, inner)
            continue
        parting = Parting(s.code.tail(stmt, number + 1))
        s.partings.append(parting)
        yield from s.drive(part, inner)
        s.partings.remove(parting)
        if parting.ahead:
            behind = s.unmasked(parting.behind(), parting.tail)
            yield from _fork(s, [(s.role, parting.tail, f) for f in behind], stmt)
            yield JoinWait(parting.ahead, stmt.loc)
            s.join(parting.ahead)
            return


def _drive_invoke(s: Strand, stmt: Invoke, frame: Frame) -> Iterator[Any]:
    operands = [s.operand(o, frame) for o in stmt.operands]
    if stmt.intrinsic is NAMED_BARRIER_SYNC:
        parts = agreeing(frame, operands, s.group.size)
        if len(parts) > 1:
            alone = s.code.alone(stmt)
            yield from _branch(s, frame, [(s.role, alone, part) for part, _ in parts], [], stmt)
            return
    s.machine.frame = frame
    if s.code.parted(stmt):
        steps = meet(s.machine, stmt.intrinsic, operands)
    else:
        steps = stmt.intrinsic.meaning(s.machine, *operands) or ()
    value = yield from cast("Generator[Any, Any, Any]", steps)
    bind_result(stmt, value, frame)
    if not stmt.intrinsic.waits:
        s.spend(stmt, frame)
    if s.group.handed_over():
        yield HandOver(frame.rows, stmt.loc)


def _drive_for(s: Strand, stmt: For, frame: Frame) -> Iterator[Any]:
    yield from _drive_loop(s, stmt.body, iterations(s, stmt, frame))


def _drive_while(s: Strand, stmt: While, frame: Frame) -> Iterator[Any]:
    threads = LoopThreads(s, stmt, frame)
    if not s.code.asks(stmt):
        yield from _drive_loop(s, stmt.body, while_true(s, stmt, threads))
        return
    parting = _entered(s)
    if parting is not None:
        parting.begin(s.group, frame, [], [], threads.left)
    for inner in while_true(s, stmt, threads):
        yield from _fork(s, [(s.role, stmt.body, part) for part in together(s, stmt.body, inner)],
                         stmt)  # fmt: skip
        yield Turn(inner.rows, stmt.loc)


def _drive_loop(s: Strand, body: Seq, frames: Iterator[Frame]) -> Iterator[Any]:
    for inner in frames:
        yield from _fork(s, [(s.role, body, part) for part in together(s, body, inner)], body)


def _drive_if(s: Strand, stmt: If, frame: Frame) -> Iterator[Any]:
    taken = sides(s, stmt, frame, _NOTHING)
    parts = [
        (s.role, body, part)
        for body, side in taken if body is not _NOTHING
        for part in (_by_warp(side, s.group.size) if s.code.asks(body) else [side])
    ]  # fmt: skip
    idle = [part for body, part in taken if body is _NOTHING]
    yield from _branch(s, frame, parts, idle, stmt)


def _by_warp(frame: Frame, size: int) -> list[Frame]:
    """Lanes chosen from several warps go their own ways where one may ask for what another holds;
    whole warps, which may act together, stay so."""
    warps = frame.lanes // WARP
    numbers = np.unique(warps)
    if len(numbers) * WARP == len(warps):
        return [frame]
    parts = [frame.narrowed(None, warps == w, size) for w in numbers]
    return [p for p in parts if p.mask is None or p.mask.any()]


def _drive_roles(s: Strand, stmt: WarpRoles, frame: Frame) -> Iterator[Any]:
    parts: list[tuple[str, Seq, Frame]] = []
    free = frame.lanes >= 0
    groups = apart(s.code, stmt, frame)
    for role in stmt.roles:
        chosen = (frame.lanes >= role.first) & (frame.lanes < role.first + role.count)
        free &= ~chosen
        if not chosen.any():
            continue
        for name, mine in _by_themselves(role, frame):
            for rows in groups:
                part = frame.narrowed(rows, chosen & mine, s.group.size)
                parts.append((name, role.body, part))
    idle = [frame.narrowed(None, free, s.group.size)] if free.any() else []
    yield from _branch(s, frame, parts, idle, stmt)


def _by_themselves(role: Role, frame: Frame) -> list[tuple[str, Any]]:
    """The threads of a role that go their own way: a name of each part, and its selection of the
    frame's lanes."""
    if not role.apart or role.count == role.apart:
        return [(role.name, True)]
    number = (frame.lanes - role.first) // role.apart
    return [(f"{role.name} {g}", number == g) for g in range(role.count // role.apart)]


def _entered(s: Strand) -> Parting | None:
    """The branch or loop that the strand is about to enter; None: nothing follows it."""
    return s.partings[-1] if s.partings and not s.partings[-1].open else None


def _branch(
    s: Strand, frame: Frame, parts: list[tuple[str, Seq, Frame]], idle: list[Frame], stmt: Stmt
) -> Iterator[Any]:
    """Run the sides of a branch; `idle` are the threads that take none."""
    parting = _entered(s)
    if parting is not None:
        parting.begin(s.group, frame, [part for _, _, part in parts], idle)
    yield from _fork(s, parts, stmt, parting)


def _fork(
    s: Strand, parts: list[tuple[str, Seq, Frame]], stmt: Stmt, parting: Parting | None = None
) -> Iterator[Any]:
    """Run parts beside each other and wait for all of them; a single one as it stands."""
    if len(parts) == 1 and parts[0][0] == s.role:
        yield from s.drive(parts[0][1], parts[0][2])
    elif parts:
        strands = [s.fork(role, part, body) for role, body, part in parts]
        if parting is not None:
            parting.strands = strands
        yield JoinWait(strands, stmt.loc)
        s.join(strands)


_BRANCHES = frozenset({If, WarpRoles})


def _branches(stmt: Stmt) -> bool:
    """Whether threads may go apart at a statement: at a named barrier whose number is computed,
    too."""
    if isinstance(stmt, Invoke) and stmt.intrinsic is NAMED_BARRIER_SYNC:
        return not all(isinstance(o, Const) for o in stmt.operands)
    return type(stmt) in _BRANCHES


DRIVERS: dict[type[Node], Driver] = {
    Seq: _drive_seq, Invoke: _drive_invoke, For: _drive_for, While: _drive_while, If: _drive_if,
    WarpRoles: _drive_roles,
}  # fmt: skip
