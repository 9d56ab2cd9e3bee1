"""Source locations, and the errors that name a line, a cause and a remedy.

Rank 0: imports nothing of tilelab. Hides how source text is found and how a caret is drawn.
"""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, TracebackType
from typing import Any

_LIBRARIES = tuple(
    {os.path.dirname(__file__), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))}
)
"""Folders whose code is not the user's: a place there says nothing of the program."""


_namers: list[Callable[[str], str | None]] = []


def name_files(namer: Callable[[str], str | None] | None) -> None:
    """Let a host say what a file is called in messages (a notebook's cell has a file that nobody
    knows); a namer answers None for files that it does not know. None: as they are again."""
    _namers[:] = [] if namer is None else [namer]


def _file_name(file: str) -> str:
    return next((name for namer in _namers if (name := namer(file))), file)


@dataclass(frozen=True)
class Loc:
    """A range of source text, and the call site it was inlined from.

    Lines count from 1, columns from 0 (as in `ast`). `caller` is the place that called the macro
    or helper this location lies in, so a message can show the whole chain.
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    function: str = ""
    caller: Loc | None = None

    def text(self) -> str:
        """The source line, without its newline; empty when the source is not known."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    def __str__(self) -> str:
        return f"{_file_name(self.file)}:{self.line}"

    def excerpt(self) -> str:
        """The line with a caret under the range, the form every error message shows."""
        where = f"  at {_file_name(self.file)}, line {self.line}"
        if self.function:
            where += f", in {self.function}"
        text = self.text()
        if not text.strip():
            return where
        stripped = text.lstrip()
        shift = len(text) - len(stripped)
        start = max(self.column - shift, 0)
        same_line = self.end_line in (0, self.line)
        stop = self.end_column - shift if same_line and self.end_column else len(stripped)
        carets = " " * start + "^" * max(stop - start, 1)
        return f"{where}\n    {stripped}\n    {carets}"

    def chain(self) -> str:
        """Excerpts from the innermost place out to the first caller."""
        return "\n  called from\n".join(place.excerpt() for place in places(self))


def places(loc: Loc | None) -> Iterator[Loc]:
    """A place, and those that it was called from, the innermost first."""
    while loc is not None:
        yield loc
        loc = loc.caller


def code_loc(
    code: CodeType, lasti: int, line: int, function: str = "", caller: Loc | None = None
) -> Loc:
    """The Loc of an instruction of `code`: columns in characters, where Python knows them."""
    index = max(lasti // 2, 0)
    found = next(itertools.islice(code.co_positions(), index, index + 1), (None,) * 4)
    first, last, start, stop = found
    if first is None or start is None:
        return Loc(code.co_filename, line, 0, 0, 0, function, caller)
    last, stop = last or first, stop or start
    ends = (_character(code.co_filename, n, at) for n, at in ((first, start), (last, stop)))
    begins, ends_at = ends
    return Loc(code.co_filename, first, begins, last, ends_at, function, caller)


def _character(file: str, line: int, column: int) -> int:
    """A column in characters; code objects count UTF-8 bytes."""
    text = linecache.getline(file, line)
    return column if text.isascii() else len(text.encode()[:column].decode(errors="ignore"))


def user_loc(trace: TracebackType | None) -> Loc | None:
    """The innermost place of a traceback that lies in the user's own text; None without one."""
    found: Loc | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        own = not code.co_filename.startswith((*_LIBRARIES, "<frozen"))
        if own and linecache.getline(code.co_filename, trace.tb_lineno):
            name = "" if code.co_name == "<module>" else code.co_name
            found = code_loc(code, trace.tb_lasti, trace.tb_lineno, name)
        trace = trace.tb_next
    return found


def shown(value: object, limit: int = 60) -> str:
    """A value of the user's for a message: its repr where that is short, else its kind."""
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    shape: Any = None if isinstance(value, type) else getattr(value, "shape", None)
    if home in ("numpy", "torch") and shape is not None:
        return f"a {home}.{kind.__name__} of shape {tuple(shape)}"
    text = repr(value)
    if len(text) <= limit and "\n" not in text:
        return text
    return f"{a_kind(value)} ({text.splitlines()[0][: limit - 10]}...)"


def a_kind(value: object) -> str:
    """The type of a value with its article: "an int", "a str"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"


class TileError(Exception):
    """A problem in the user's program, said in the program's own words.

    `code` is stable (docs/errors has a page for each), `message` is one sentence of cause, `hint`
    one sentence of remedy, `loc` the place it is about.
    """

    default_code = "TL1000"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        loc: Loc | None = None,
        hint: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self.code = code or self.default_code
        self.message = message
        self.loc = loc
        self.hint = hint
        self.notes = tuple(notes)
        super().__init__(message)

    def at(self, loc: Loc | None) -> TileError:
        """This error, located at `loc` unless it already has a place."""
        if self.loc is None:
            self.loc = loc
        return self

    @property
    def place(self) -> Loc | None:
        """The line that the error is about: `loc`, else the user's line that led to it."""
        return self.loc or user_loc(self.__traceback__)

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        place = self.place
        if place is not None:
            lines.append(place.chain())
        lines.extend(f"  note: {note}" for note in self.notes)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class TileValueError(TileError, ValueError):
    """A value that is not allowed where it stands."""

    default_code = "TL1001"


class TileTypeError(TileError, TypeError):
    """A thing of the wrong kind."""

    default_code = "TL1002"


class TileRuntimeError(TileError, RuntimeError):
    """A rule about order or state was broken."""

    default_code = "TL1003"


class TileIndexError(TileError, IndexError):
    """An index or region outside its buffer, or the wrong number of indices."""

    default_code = "TL1004"


class TileNameError(TileError, AttributeError):
    """A name that the language does not have (or does not have yet)."""

    default_code = "TL1005"


class TileUndefinedName(TileError, NameError):
    """A name that traced code reads and nothing defines."""

    default_code = "TL1409"


class TileNotSupported(TileError, NotImplementedError):
    """A construct that is understood and not supported, said instead of ignored."""

    default_code = "TL1006"


class SharedMemoryOverflow(TileValueError):
    """More shared memory than a block may have; the notes list the bytes per buffer."""

    default_code = "TL1801"


class TileWarning(UserWarning):
    """Something of the user's program works, but perhaps not as meant; says what to write."""


def warn(text: str, kind: type[Warning] = TileWarning) -> None:
    """A Python warning at the innermost line that is not of tilelab, Python or an installed
    package, however deep inside these it is given."""
    frame, depth = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(
        (*_LIBRARIES, "<frozen")
    ):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, kind, depth)


class TileInternalError(TileError, RuntimeError):
    """tilelab broke one of its own rules; the message asks for a report."""

    default_code = "TL1900"
