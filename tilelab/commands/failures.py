"""What a person sees when their program fails: a TileError in its own words, or a traceback that
begins in their file."""

from __future__ import annotations

import traceback
from types import TracebackType

from tilelab.errors import Loc, TileError, TileInternalError


def message(error: BaseException, file: str = "") -> str:
    """The text to show for an error of the program in `file`.

    A TileError without a place gets the line of `file` that led to it. A TileInternalError keeps
    its whole traceback, for it is tilelab's fault.
    """
    if isinstance(error, TileError) and not isinstance(error, TileInternalError):
        error.at(_last_place(error.__traceback__, file))
        return str(error)
    if isinstance(error, SyntaxError) and error.filename == file:  # nothing of the file has run
        return "".join(traceback.format_exception_only(error)).rstrip()
    kept = None if isinstance(error, TileInternalError) else _from(error.__traceback__, file)
    lines = traceback.format_exception(type(error), error, kept or error.__traceback__)
    return "".join(lines).rstrip()


def _from(trace: TracebackType | None, file: str) -> TracebackType | None:
    """The traceback from the first frame of `file` on."""
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    return trace


def _last_place(trace: TracebackType | None, file: str) -> Loc | None:
    found: Loc | None = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            found = Loc(file, trace.tb_lineno, function=_function(trace))
        trace = trace.tb_next
    return found


def _function(trace: TracebackType) -> str:
    name = trace.tb_frame.f_code.co_name
    return "" if name == "<module>" else name
