"""While loops that have no end: told by the state that comes again, given up where time runs out.

Hides when the state that decides (`deciding.py`) is looked at, and who else may change it. Time
ends a loop only where no comparison in its condition comes nearer to failing.
"""

from __future__ import annotations

import time
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilelab.ir import Binary, Buffer, Scope, While
from tilelab.ir.build import conjuncts
from tilelab.sim import findings as f
from tilelab.sim.deciding import Deciding
from tilelab.sim.frame import Array, Frame, bits_differ
from tilelab.sim.strand import Strand
from tilelab.sim.waits import JoinWait

if TYPE_CHECKING:
    from tilelab.sim.loops import LoopThreads

SURE = 100
"""Iterations after which a loop that does the same again and again is reported."""
ASKED = 2
"""The same of a loop that asks others, when all of them only ask."""
IN_VAIN = 100
"""Turns, of all together, after which threads that wait at the end of a branch for some who only
ask go on; so many more, and two of everybody, and no turn changes anything any more."""
_LOOKS = 64
"""A long loop's time is asked for once in so many iterations: asking costs as much as one."""
LARGE = 1 << 20
"""Bytes of state up to which it is compared between iterations."""
PATIENCE = 20_000
"""Iterations after which a while loop that has run longer than `Code.loop_seconds` (of the
processor), without coming nearer to its end, is reported."""


class Watch:
    """One execution of a while loop, looked at before each iteration.

    Whether an iteration is the last follows from what decides it (`Deciding`), so the loop has no
    end once that comes again. It is kept at iterations whose numbers grow by a half: a turn of any
    length shows.
    """

    def __init__(self, s: Strand, stmt: While, threads: LoopThreads) -> None:
        self.s, self.stmt, self.threads = s, stmt, threads
        self.deciding = s.code.deciding(stmt)
        self.kept: list[Array] | None = None
        self.asks = s.code.asks(stmt)
        self.next = self.after = ASKED if self.asks else SURE
        self.departures = -1
        self.started, self.distances = time.process_time(), list[float]()

    def given_up(self, frame: Frame, count: int) -> bool:
        """Whether to stop before iteration `count` of the threads in `frame`, with a finding."""
        repeats = count >= self.after and self._again(frame, count)
        if not repeats and not self._too_long(frame, count):
            return False
        what, hint = "", ""
        if repeats and self.asks:
            what, hint = " to ask for what no block or thread does any more", f.ASKING_HINT
            self.s.group.hung = True
        elif repeats:
            what = ": its variables are what they were before"
        else:
            hint = "check the loop's condition; simulate(..., loop_seconds=...) allows more time"
        self.s.group.report(
            f.RUNAWAY_LOOP, f"a while loop has run {count} times and goes on{what}", self.stmt.loc,
            row=int(frame.rows[0]), thread=int(frame.lanes[0]), hint=hint,
        )  # fmt: skip
        return True

    def _again(self, frame: Frame, count: int) -> bool:
        """Compare the state with what was kept, or keep what is now."""
        if self.deciding is None or not self._alone(self.deciding):
            return False
        arrays = [self._values(b, p, frame) for b, p in self.deciding.written if self._own(b)]
        if sum(a.nbytes for a in arrays) > LARGE:
            return False
        if self.kept is not None and self.departures == self.threads.departures:
            group, same = self.s.group, all(map(_same_bits, arrays, self.kept))
            if same and not self.asks:
                return True
            if not same:
                group.idle = 0  # it counts, which is more than asking
            elif self.asks and group.idle > IN_VAIN + 2 * group.asking:
                return True
        if count >= self.next:
            self.next += self.next // 2
            self.kept = [a.copy() for a in arrays]
            self.departures = self.threads.departures
        return False

    def _own(self, buffer: Buffer) -> bool:
        """Whether it is the loop's own: what one that asks updates by atomics is everybody's."""
        return not self.asks or buffer.scope is Scope.LOCAL

    def _alone(self, deciding: Deciding) -> bool:
        """Whether nothing but the loop changes what decides its end, as far as can be seen: no
        copy or product under way, and no other thread where the body lets others run."""
        s, group, code = self.s, self.s.group, self.s.code
        if deciding.flying or (deciding.memory and not self.asks):
            busy = (
                group.transfers,
                group.landing,
                s.machine.copies.pending(),
                s.machine.stores.pending(),
                s.machine.tensor_core.unfinished(),
            )
            if any(busy):
                return False
        shared = [b for b in deciding.memory if code.written(b)]
        if not shared or self.asks or not code.waits(self.stmt):
            return True
        if any(b.scope is Scope.GLOBAL for b in shared) and group.size < prod(group.grid):
            return False
        return all(o is s or isinstance(o.wait, JoinWait) for o in group.strands)

    def _values(self, buffer: Buffer, period: int, frame: Frame) -> Array:
        group = self.s.group
        if buffer.scope is Scope.LOCAL:
            values = frame.pick(group.registers.array(buffer))
            return values % period if period else values
        if buffer.scope is Scope.GLOBAL:
            return group.arrays[buffer]
        return group.shared.bytes[frame.rows, group.shared.base(buffer) : group.shared.end(buffer)]

    def _too_long(self, frame: Frame, count: int) -> bool:
        """Whether the loop has had its time, and is no nearer to its end than when it began."""
        if count == PATIENCE // 2:
            self.distances = self._distances(frame)
        if (
            count < PATIENCE
            or count % _LOOKS
            or time.process_time() - self.started <= self.s.code.loop_seconds
        ):
            return False
        before, self.distances = self.distances, self._distances(frame)
        self.started = time.process_time()
        return not any(b > now for b, now in zip(before, self.distances, strict=True))

    def _distances(self, frame: Frame) -> list[float]:
        """How far each comparison that the condition needs is from failing, at most."""
        found: list[float] = []
        for part in conjuncts(self.stmt.cond):
            if not isinstance(part, Binary) or part.op not in _SIGNS:
                continue
            a, b = (np.asarray(self.s.value(e, frame), np.float64) for e in (part.a, part.b))
            away = _SIGNS[part.op] * (b - a)
            where = True if frame.mask is None else frame.mask
            found.append(float(np.max(np.where(where, away, -np.inf))))
        return found


_SIGNS: dict[str, Any] = {"<": 1, "<=": 1, ">": -1, ">=": -1}


def _same_bits(a: Array, b: Array) -> bool:
    return a.shape == b.shape and not bits_differ(a, b).any()
