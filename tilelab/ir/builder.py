"""The program under construction: open blocks, fresh names, and where in the text we are.

Hides how a location is read off the running Python frames, and how a statement that a plain
helper makes is kept from getting lost.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType, TracebackType

from tilelab.errors import Loc, TileRuntimeError, code_loc
from tilelab.ir.stmt import Break, Continue, Seq, Stmt

_CURRENT: ContextVar[Builder | None] = ContextVar("tilelab_builder", default=None)
_PACKAGE = __name__.partition(".")[0]


class Builder:
    """Collects statements while traced Python runs. One per traced function.

    `hint` is the name (or names) that the assignment being evaluated will bind, so that a buffer
    is called what the user calls it.
    """

    def __init__(self) -> None:
        self.blocks: list[list[Stmt]] = [[]]
        self.hint: str | tuple[str, ...] | None = None
        self._names: dict[str, int] = {}
        self._owners: dict[int, CodeType] = {}  # id of a code object -> the traced function's code
        self._lost: list[tuple[Stmt, Loc]] = []
        self._warned_dead = False

    # ---- statements -------------------------------------------------------------------------

    def emit(self, stmt: Stmt, *, anywhere: bool = False) -> Stmt:
        """Append a statement to the innermost open block, and return it.

        A statement that a plain (undecorated) Python helper makes is held back: it counts once
        the helper returns it to traced code that uses the call as a statement (`adopt`), and is
        an error (TL1403) when the helper drops it. `anywhere` is for statements that are safe in
        helpers, such as allocations, whose result the helper needs to return anyway.
        """
        helper = None if anywhere else self._plain_caller()
        if helper is not None:
            self._lost.append((stmt, frame_loc(helper, caller=self.loc())))
            return stmt
        self.check_lost()
        self._append(stmt)
        return stmt

    def adopt(self, value: object) -> None:
        """Traced code used `value` as a statement: emit it if a helper returned it unplaced."""
        for position, (stmt, _) in enumerate(self._lost):
            if stmt is value:
                del self._lost[position]
                self._append(stmt)
                return

    def check_lost(self) -> None:
        """Raise TileRuntimeError (TL1403) when a helper made a statement and dropped it."""
        if not self._lost:
            return
        stmt, loc = self._lost[0]
        self._lost.clear()
        raise TileRuntimeError(
            f"{type(stmt).__name__.lower()} was called in the plain function {loc.function!r}, "
            "where it does not become part of the kernel",
            code="TL1403",
            loc=loc,
            hint=f"put @T.macro above {loc.function}, or return the call and use it as a statement",
        )

    def _append(self, stmt: Stmt) -> None:
        block = self.blocks[-1]
        if block and isinstance(block[-1], Break | Continue):
            if not self._warned_dead:
                self._warned_dead = True
                warnings.warn(
                    f"statements after break or continue never run ({stmt.loc})", stacklevel=3
                )
            return
        block.append(stmt)

    @contextmanager
    def block(self) -> Generator[list[Stmt]]:
        """Open a nested block; the list holds its statements when the block closes."""
        body = self.open_block()
        try:
            yield body
        finally:
            self.blocks.pop()

    def open_block(self) -> list[Stmt]:
        """Open a nested block that `close_block` will close."""
        body: list[Stmt] = []
        self.blocks.append(body)
        return body

    def close_block(self) -> list[Stmt]:
        """Close the innermost block and return its statements."""
        self.check_lost()
        return self.blocks.pop()

    # ---- names ------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """`name`, or name_1, name_2, ... when it is taken."""
        candidate = name
        while candidate in self._names:
            self._names[name] += 1
            candidate = f"{name}_{self._names[name] - 1}"
        self._names[candidate] = 1
        return candidate

    def hinted(self, default: str, position: int = 0) -> str:
        """A fresh name for a thing about to be bound: the user's, else `default`."""
        hint = self.hint
        name = hint if isinstance(hint, str) else None
        if isinstance(hint, tuple) and position < len(hint):
            name = hint[position]
        return self.fresh(name if name and name.strip("_") else default)

    # ---- places in the text -----------------------------------------------------------------

    def add_traced(self, code: CodeType, owner: CodeType | None = None) -> None:
        """Declare that `code`, with its lambdas and comprehensions, is traced user code."""
        self._owners[id(code)] = owner or code
        for constant in code.co_consts:
            if isinstance(constant, CodeType) and constant.co_name.startswith("<"):
                self.add_traced(constant, owner or code)

    def is_traced_code(self, code: CodeType) -> bool:
        """Whether `code` was declared as traced user code."""
        return id(code) in self._owners

    def loc(self) -> Loc | None:
        """The place in traced code that is running now, with the macros it was called from."""
        places: list[tuple[CodeType, int, int]] = []
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            places.append((frame.f_code, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        return self._chain(list(reversed(places)))

    def loc_of(self, trace: TracebackType | None) -> Loc | None:
        """The place in traced code where the exception of a traceback was raised."""
        places: list[tuple[CodeType, int, int]] = []
        while trace is not None:
            places.append((trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno))
            trace = trace.tb_next
        return self._chain(places)

    def _chain(self, places: list[tuple[CodeType, int, int]]) -> Loc | None:
        """Locations of traced frames, outermost first, linked by `caller`. A lambda directly
        inside its own function counts as the same place."""
        found: Loc | None = None
        previous: CodeType | None = None
        for code, lasti, line in places:
            owner = self._owners.get(id(code))
            if owner is None:
                continue
            inner = code is not owner and owner is previous and found is not None
            caller = found.caller if inner and found is not None else found
            found = code_loc(code, lasti, line, owner.co_name, caller)
            previous = owner
        return found

    def _plain_caller(self) -> FrameType | None:
        """The frame that called into tilelab, when it is not traced code (a plain helper)."""
        if not self._owners:
            return None
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            if id(frame.f_code) in self._owners:
                return None
            module = str(frame.f_globals.get("__name__", ""))
            if module.partition(".")[0] != _PACKAGE:
                return frame
            frame = frame.f_back
        return None


def frame_loc(frame: FrameType, caller: Loc | None = None) -> Loc:
    """Location of the instruction a frame is executing (columns from the code's positions)."""
    code = frame.f_code
    return code_loc(code, frame.f_lasti, frame.f_lineno, code.co_name, caller)


def current() -> Builder:
    """The builder of the function being traced. TileRuntimeError (TL1401) outside of one."""
    builder = _CURRENT.get()
    if builder is None:
        raise TileRuntimeError(
            "this operation belongs inside a kernel, and none is being traced",
            code="TL1401",
            hint="put it in a function under @T.prim_func, @tilelang.jit or @T.macro",
        )
    return builder


def is_tracing() -> bool:
    """Whether a function is being traced now."""
    return _CURRENT.get() is not None


@contextmanager
def tracing(builder: Builder) -> Generator[Builder]:
    """Make `builder` the current one."""
    token = _CURRENT.set(builder)
    try:
        yield builder
    finally:
        _CURRENT.reset(token)


def seq(body: list[Stmt], loc: Loc | None = None) -> Seq:
    """A Seq of collected statements."""
    return Seq(tuple(body), loc=loc)
