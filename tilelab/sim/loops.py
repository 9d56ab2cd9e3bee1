"""Loops that threads leave at different times: who runs the next iteration, and what is left of it.

Hides masks: `break` and `continue` mark threads, and statements go on with the others. A frame
knows its innermost loop in which threads may be marked (`Frame.loop`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelab.ir import For, Seq, Stmt, Var, While
from tilelab.sim import findings as f
from tilelab.sim.frame import Array, Frame, bits_differ, varies
from tilelab.sim.strand import Strand

MAX_ITERATIONS = 10_000_000
SURE = 1_000
"""Iterations after which a loop that does the same again and again is reported."""
ASKED = 20
"""The same of a loop that asks others, when all of them only ask: turns of each block."""
LARGE = 1 << 20
"""Bytes of registers up to which they are compared between iterations."""
PATIENCE = 20_000
"""Iterations after which a while loop that has run longer than `Code.loop_seconds` (of the
processor) is reported."""
Part = tuple[Stmt, Frame]


class LoopThreads:
    """The threads of one execution of a loop: which have left it, or this iteration of it."""

    def __init__(self, s: Strand, stmt: For | While, frame: Frame) -> None:
        self._shape = (s.group.size, s.group.kernel.num_threads)
        self.frame = frame.inside(self) if s.code.exits(stmt.body) else frame
        self.marks = 0  # how often threads were marked
        self._left: Array | None = None  # (blocks of the group, threads of the block)
        self._skipped: Array | None = None
        self._inner: Frame | None = self.frame
        self._stale = False

    def leave(self, frame: Frame, where: Any = True) -> None:
        """The active threads of a frame (where a condition holds) leave the loop."""
        if self._left is None:
            self._left = np.zeros(self._shape, np.bool_)
        self._mark(self._left, frame, where)
        self._stale = True

    def skip(self, frame: Frame) -> None:
        """The active threads of a frame wait for the next iteration."""
        if self._skipped is None:
            self._skipped = np.zeros(self._shape, np.bool_)
        self._mark(self._skipped, frame, True)

    def _mark(self, marks: Array, frame: Frame, where: Any) -> None:
        on = where if frame.mask is None else frame.mask & where
        marks[np.ix_(frame.rows, frame.lanes)] |= np.broadcast_to(on, frame.shape)
        self.marks += 1

    def next(self, size: int) -> Frame | None:
        """The threads that begin an iteration; None when all have left."""
        self._skipped = None
        if self._stale and self._left is not None:
            self._inner = self.frame.where(~self.frame.pick(self._left), size)
            self._stale = False
        return self._inner

    def rest(self, frame: Frame, size: int) -> Frame | None:
        """The threads of a frame that go on with this iteration; None when none does."""
        for marks in (self._left, self._skipped):
            if marks is not None:
                rest = frame.where(~frame.pick(marks), size)
                if rest is None:
                    return None
                frame = rest
        return frame


def innermost(frame: Frame) -> LoopThreads:
    """The loop that a break or continue of this frame means."""
    assert frame.loop is not None, "a break outside of loops"
    return frame.loop


def iterations(s: Strand, stmt: For, frame: Frame) -> Iterator[Frame]:
    """The frame of each iteration, with the loop variable set; blocks and lanes whose loop is
    shorter drop out."""
    start, step = s.kept(stmt.start, frame), s.kept(stmt.step, frame)
    extent = s.kept(stmt.extent, frame)
    threads, size = LoopThreads(s, stmt, frame), s.group.size
    outer = threads.frame
    # Kept in the environment, so that they shrink with the frame.
    first, trips, stride = Var("first"), Var("trips"), Var("stride")
    for var, value in ((first, start), (trips, extent), (stride, step)):
        outer.env.set(var, value)
    most = int(extent.max()) if varies(extent) else int(extent)
    for i in range(most):
        inner = threads.next(size)
        if inner is not None and varies(extent):
            over = np.asarray(inner.env.get(trips)) <= i
            if over.any():
                threads.leave(inner, over)
                inner = threads.next(size)
        if inner is None:
            return
        inner.env.set(stmt.var, inner.env.get(first) + i * inner.env.get(stride))
        yield inner


def while_true(s: Strand, stmt: While, frame: Frame) -> Iterator[Frame]:
    """The frame of each iteration of a while loop; a loop that seems to have no end is reported."""
    threads, size = LoopThreads(s, stmt, frame), s.group.size
    started, seen = time.process_time(), _Seen(s, stmt, threads)
    for count in range(MAX_ITERATIONS + 1):
        inner = threads.next(size)
        if inner is None:
            return
        s.enter(stmt, inner)  # the body has moved on: the condition is read at the loop's line
        cond = s.value(stmt.cond, inner)
        if not np.all(cond):
            threads.leave(inner, ~cond if varies(cond) else True)
            inner = threads.next(size)
            if inner is None:
                return
        repeats = count >= seen.after and (s.code.endless(stmt) or seen.before(inner, count))
        if repeats or (count >= PATIENCE and _too_long(s, count, started)):
            what = ": its variables are what they were before" if repeats else ""
            if repeats and seen.asks:
                what = " to ask for what no block or thread does any more"
            s.group.report(
                f.RUNAWAY_LOOP, f"a while loop has run {count} times and goes on{what}", stmt.loc,
                row=int(inner.rows[0]), thread=int(inner.lanes[0]),
                hint=f.ASKING_HINT if repeats and seen.asks else "" if repeats
                else "check the loop's condition; simulate(..., loop_seconds=...) allows more time",
            )  # fmt: skip
            s.group.stop(inner.rows)
            return
        yield inner


def _too_long(s: Strand, count: int, started: float) -> bool:
    return count >= MAX_ITERATIONS or time.process_time() - started > s.code.loop_seconds


class _Seen:
    """Whether the registers that a loop depends on are as they were some iterations ago: what an
    iteration does follows from them alone, so the loop has no end then.

    They are kept at iterations whose numbers grow by a half, so that a turn of any length shows.
    """

    def __init__(self, s: Strand, stmt: While, threads: LoopThreads) -> None:
        self.s, self.threads = s, threads
        self.registers = s.code.state(stmt, s.group.order.writes)
        self.kept: list[Array] | None = None
        self.asks = s.code.asks(stmt)
        self.next = self.after = ASKED if self.asks else SURE
        self.marks = -1

    def before(self, frame: Frame, count: int) -> bool:
        """Compare with what was kept, or keep what is now."""
        if self.registers is None:
            return False
        registers = [self.s.group.registers.array(b) for b in self.registers]
        if sum(r.nbytes for r in registers) > LARGE:
            return False
        arrays = [r[:, frame.rows] for r in registers]
        if self.kept is not None and self.marks == self.threads.marks:
            same = (self.kept or self.asks) and all(map(_same_bits, arrays, self.kept))
            if same and (not self.asks or self.s.group.idle > ASKED * (4 + self.s.group.size)):
                return True
        if count >= self.next:
            self.next += self.next // 2
            self.kept, self.marks = arrays, self.threads.marks
        return False


def _same_bits(a: Array, b: Array) -> bool:
    return a.shape == b.shape and not bits_differ(a, b).any()


def going(s: Strand, body: Seq, frame: Frame) -> Iterator[Part]:
    """Statements of a sequence with the threads that run them; where threads leave the iteration
    in different ways and whole warps act together, the tail once for each set of blocks."""
    loop = frame.loop
    if loop is None:
        for part in body.body:
            yield part, frame
        return
    seen = loop.marks
    for i, part in enumerate(body.body):
        if loop.marks != seen:
            seen = loop.marks
            rest = loop.rest(frame, s.group.size)
            if rest is None:
                return
            frame = rest
            if frame.mask is not None and s.code.collective(body):
                parts = frame.rectangles(s.group.size)
                yield from _each(s.code.tail(body, i), parts)
                return
        yield part, frame


def _each(tail: Seq, frames: list[Frame]) -> Iterator[Part]:
    for frame in frames:
        yield tail, frame


def together(s: Strand, body: Seq, frame: Frame) -> list[Frame]:
    """The frames in which a loop's body runs: several where blocks differ in the threads that
    are left and whole warps act together in it."""
    if frame.mask is None or not s.code.collective(body):
        return [frame]
    return frame.rectangles(s.group.size)
