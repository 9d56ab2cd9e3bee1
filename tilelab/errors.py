"""Source locations, and the errors that name a line, a cause and a remedy.

Rank 0: imports nothing of tilelab. Hides how source text is found and how a caret is drawn.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass


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
        return f"{self.file}:{self.line}"

    def excerpt(self) -> str:
        """The line with a caret under the range, the form every error message shows."""
        where = f"  at {self.file}, line {self.line}"
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
        parts = [self.excerpt()]
        place = self.caller
        while place is not None:
            parts.append("  called from\n" + place.excerpt())
            place = place.caller
        return "\n".join(parts)


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

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        if self.loc is not None:
            lines.append(self.loc.chain())
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


class TileInternalError(TileError, RuntimeError):
    """tilelab broke one of its own rules; the message asks for a report."""

    default_code = "TL1900"
