"""Loops that threads leave at different times: who runs the next iteration, and what is left of it.

Hides masks: `break` and `continue` mark threads, and statements go on with the others. A frame
knows its innermost loop in which threads may be marked (`Frame.loop`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelab.ir import For, Seq, Stmt, Var, While
from tilelab.sim.endless import Watch
from tilelab.sim.frame import Array, Frame, varies
from tilelab.sim.strand import Strand

Part = tuple[Stmt, Frame]


class LoopThreads:
    """The threads of one execution of a loop: which have left it, or this iteration of it."""

    def __init__(self, s: Strand, stmt: For | While, frame: Frame) -> None:
        self._shape = (s.group.size, s.group.kernel.num_threads)
        self.frame = frame.inside(self) if s.code.exits(stmt.body) else frame
        self.marks = 0  # how often threads were marked
        self.departures = 0  # how often threads left the loop
        self._left: Array | None = None  # (blocks of the group, threads of the block)
        self._skipped: Array | None = None
        self._inner: Frame | None = self.frame
        self._stale = False

    def leave(self, frame: Frame, where: Any = True) -> None:
        """The active threads of a frame (where a condition holds) leave the loop."""
        if self._left is None:
            self._left = np.zeros(self._shape, np.bool_)
        self._mark(self._left, frame, where)
        self.departures += 1
        self._stale = True

    def left(self) -> Array:
        """Which threads have left the loop (blocks of the group, threads of the block)."""
        return np.zeros(self._shape, np.bool_) if self._left is None else self._left

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


def while_true(s: Strand, stmt: While, threads: LoopThreads) -> Iterator[Frame]:
    """The frame of each iteration of a while loop; a loop without an end is reported."""
    size = s.group.size
    watch = Watch(s, stmt, threads)
    for count in itertools.count():
        inner = threads.next(size)
        if inner is None:
            return
        s.enter(stmt, inner)  # the body has moved on: the condition is read at the loop's line
        cond = s.value(stmt.cond, inner)
        if not (cond.all() if varies(cond) else cond):
            threads.leave(inner, ~cond if varies(cond) else True)
            inner = threads.next(size)
            if inner is None:
                return
        if watch.given_up(inner, count):
            s.group.stop(inner.rows)
            return
        yield inner


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
