"""Loops of the language as values: what `T.serial(n)` returns and how it becomes IR.

Hides variable bounds and the nesting of grid and persistent loops.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from tilelab.dtypes import promote
from tilelab.errors import Loc, TileTypeError, TileValueError
from tilelab.frontend.leaving import without_continue
from tilelab.frontend.nested import unnested
from tilelab.frontend.session import OpenKernel, Session, open_kernel
from tilelab.ir import (
    Expr,
    For,
    If,
    LoopKind,
    ParallelFor,
    Stmt,
    Var,
    as_expr,
    call,
    ceildiv,
    const_int,
)
from tilelab.ir.builder import current, seq
from tilelab.ir.operators import Operators
from tilelab.layout.digits import unravel

Attrs = tuple[tuple[str, object], ...]
Finish = Callable[[], None]


class Loop(Protocol):
    """A loop of the language: opens its IR blocks and says how to close them."""

    independent: bool

    def open(self, session: Session, names: tuple[str, ...], loc: Loc | None) -> tuple[Any, Finish]:
        """Open the body; the loop target's value, and the function that closes and emits."""
        ...


class _NotIterable:
    """Mixin: a loop value met by plain Python iteration (a comprehension, a helper that is not
    traced) explains itself."""

    independent = False

    def __iter__(self) -> NoReturn:
        code = sys._getframe(1).f_code  # pyright: ignore[reportPrivateUsage]
        helper = code.co_name
        if current().is_traced_code(code) or helper.startswith("<"):
            what = "this loop runs in the kernel and can only be used in a `for` statement"
            hint = "write a for statement, or iterate over range(...) of Python ints"
        else:
            what = (
                f"a loop of the kernel stands in the plain function {helper!r}, which Python runs"
            )
            hint = f"put @T.macro above {helper}"
        raise TileTypeError(what, code="TL1440", hint=hint)


@dataclass(frozen=True)
class RangeLoop(_NotIterable):
    """A counted loop: serial, unrolled, over lanes, or pipelined."""

    start: Any
    stop: Any
    step: Any = 1
    kind: LoopKind = LoopKind.SERIAL
    num_stages: int | None = None
    attrs: Attrs = ()

    def open(self, session: Session, names: tuple[str, ...], loc: Loc | None) -> tuple[Any, Finish]:
        """Open one For."""
        start, step = as_expr(self.start), as_expr(self.step)
        extent = _trip_count(start, as_expr(self.stop), step)
        session.hint = names or None
        var = _loop_var(session.hinted("i"), start, extent, step)
        body = session.open_block()

        def finish() -> None:
            session.close_block()
            session.emit(
                For(var, start, extent, step, self.kind, seq(body, loc), self.num_stages,
                    self.attrs, loc=loc)
            )  # fmt: skip

        session.hint = None
        return var, finish


@dataclass(frozen=True)
class ParallelLoop(_NotIterable):
    """T.Parallel: every point of a box, spread over the threads."""

    extents: tuple[Any, ...]
    attrs: Attrs = ()
    independent: bool = field(default=True, init=False)

    def open(self, session: Session, names: tuple[str, ...], loc: Loc | None) -> tuple[Any, Finish]:
        """Open one ParallelFor; one inside another is an axis of it."""
        session.hint = names or None
        zero, one = as_expr(0), as_expr(1)
        sizes = tuple(as_expr(e) for e in self.extents)
        variables = tuple(
            _loop_var(session.hinted("ijklmn"[min(n, 5)], n), zero, size, one)
            for n, size in enumerate(sizes)
        )
        session.hint = None
        extents = tuple(size if const_int(size) is None else const_int(size) for size in sizes)
        body = session.open_block()

        def finish() -> None:
            session.close_block()
            once = seq(without_continue(body), loc)
            if any(const_int(e) == 0 for e in extents):  # no point: nothing happens, as in range(0)
                return
            box = ParallelFor(variables, extents, once, self.attrs, loc=loc)  # type: ignore[arg-type]
            for stmt in unnested(box):
                session.emit(stmt)

        return variables[0] if len(variables) == 1 else list(variables), finish


@dataclass(frozen=True, eq=False)
class ThreadLoop(Operators, _NotIterable):
    """A loop whose iterations are the indices of a hardware axis ("threadIdx.x", "blockIdx.y"):
    each thread runs its own one. Bound to a name instead (`tx = T.thread_binding(...)`), it is
    that index."""

    start: Any
    stop: Any
    axis: str

    def __expr__(self) -> Expr:
        """The index, counted from the loop's start."""
        return as_expr(self.start) + self.variable(open_kernel("T.thread_binding"))

    def _of(self, kernel: OpenKernel) -> tuple[int, tuple[Var, ...], tuple[Any, ...]]:
        number = "xyz".index(self.axis[-1])
        if self.axis.startswith("thread"):
            return number, kernel.thread_vars, kernel.threads
        return number, kernel.block_vars, kernel.grid

    def launched(self, kernel: OpenKernel) -> Any:
        """How many indices the axis has in this launch."""
        number, _, extents = self._of(kernel)
        return extents[number] if number < len(extents) else 1

    def variable(self, kernel: OpenKernel) -> Expr:
        """The index of this thread (or block) along the axis."""
        number, variables, _ = self._of(kernel)
        return variables[number] if number < len(variables) else as_expr(0)

    def open(self, session: Session, names: tuple[str, ...], loc: Loc | None) -> tuple[Any, Finish]:
        """The body once, for the index of this thread; threads past the end skip it.

        Raises TileValueError (TL1768) when the launch has fewer indices than iterations.
        """
        kernel = session.kernel
        assert kernel is not None
        extent = as_expr(self.stop) - as_expr(self.start)
        index, launched = self.variable(kernel), as_expr(self.launched(kernel))
        short, there = const_int(extent), const_int(launched)
        if short is not None and there is not None and short > there:
            raise TileValueError(
                f"a loop over {short} indices of {self.axis}, which has {there} in this T.Kernel",
                code="TL1768", loc=loc, hint="give T.Kernel as many threads (or blocks)",
            )  # fmt: skip
        body = session.open_block()

        def finish() -> None:
            session.close_block()
            if short is not None and short == there:
                session.emit(seq(body, loc))
            else:
                session.emit(_guard(index < extent, body, loc))

        start = as_expr(self.start)
        return (index if const_int(start) == 0 else start + index), finish


@dataclass(frozen=True)
class GridLoop(_NotIterable):
    """T.grid: nested serial loops."""

    extents: tuple[Any, ...]

    def open(self, session: Session, names: tuple[str, ...], loc: Loc | None) -> tuple[Any, Finish]:
        """Open one For for each extent."""
        variables: list[Any] = []
        closers: list[Finish] = []
        for n, extent in enumerate(self.extents):
            var, finish = RangeLoop(0, extent).open(session, names[n : n + 1], loc)
            variables.append(var)
            closers.insert(0, finish)

        def finish_all() -> None:
            for close in closers:
                close()

        return variables[0] if len(variables) == 1 else variables, finish_all


@dataclass(frozen=True)
class PersistentLoop(_NotIterable):
    """T.Persistent: the tiles of a domain, dealt out to `wave_size` blocks in waves."""

    domain: tuple[Any, ...]
    wave_size: Any
    index: Any
    group_size: int = 8

    def open(self, session: Session, names: tuple[str, ...], loc: Loc | None) -> tuple[Any, Finish]:
        """Open a For over waves and an If that skips tiles past the end."""
        total: Any = 1
        for extent in self.domain:
            total = total * extent
        wave, finish = RangeLoop(0, ceildiv(total, self.wave_size)).open(session, ("wave",), loc)
        tile = wave * self.wave_size + self.index
        body = session.open_block()

        def finish_all() -> None:
            session.close_block()
            session.emit(_guard(tile < total, body, loc))
            finish()

        return self._coordinates(tile), finish_all

    def _coordinates(self, tile: Expr) -> Any:
        """Tile coordinates; two-dimensional domains go in groups of rows, which keeps L2 warm."""
        if len(self.domain) == 2:
            rows, columns = self.domain
            first = tile // (columns * self.group_size) * self.group_size
            height = call("min", as_expr(rows - first), self.group_size)
            inside = tile % (columns * self.group_size)
            return [first + inside % height, inside // height]
        coordinates = list(unravel(tile, self.domain))
        return coordinates[0] if len(coordinates) == 1 else coordinates


def _guard(cond: Expr, body: list[Stmt], loc: Loc | None) -> Stmt:
    return If(cond, seq(body, loc), loc=loc)


def _trip_count(start: Expr, stop: Expr, step: Expr) -> Expr:
    """Iterations of range(start, stop, step)."""
    by = const_int(step)
    if by == 0:
        raise TileValueError("the step of a loop is 0", code="TL1441", hint="use 1 or -1")
    if by is None:
        count: Any = ceildiv(stop - start, step)
    elif by > 0:
        count = ceildiv(stop - start, by)
    else:
        count = ceildiv(start - stop, -by)
    known = const_int(count)
    return as_expr(count) if known is None else as_expr(max(known, 0))


def _loop_var(name: str, start: Expr, extent: Expr, step: Expr) -> Var:
    last = start + (extent - 1) * step
    (lo, hi), (last_lo, last_hi) = start.bounds, last.bounds
    by = const_int(step) or 0
    if by <= 0:
        lo = None if lo is None or last_lo is None else min(lo, last_lo)
    if by >= 0:
        hi = None if hi is None or last_hi is None else max(hi, last_hi)
    return Var(name, promote(start.dtype, extent.dtype), lo, hi)


def python_values(value: Any) -> Iterator[Any] | None:
    """An iterator over a Python iterable that a `for` expands at trace time, or None."""
    try:
        return iter(value)
    except TypeError:
        return None


def is_loop(value: Any) -> bool:
    """Whether `value` is a loop of the language."""
    return isinstance(value, _NotIterable)
