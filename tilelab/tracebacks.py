"""A TileError that ends a script is shown with the user's own lines alone.

Rank 0. Hides how Python shows what nobody caught: `sys.excepthook`, and the frames it walks.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from types import TracebackType

from tilelab.errors import TileError, TileInternalError

ALL = "TILELAB_FULL_TRACEBACK"
"""The environment variable that keeps every frame: set, and neither empty nor 0."""

_OWN = os.path.dirname(__file__) + os.sep
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def install() -> None:
    """Let uncaught TileErrors be shown so from now on. The hook that is there goes on showing
    everything, TileErrors with fewer frames; once is enough."""
    before = sys.excepthook
    if getattr(before, "__module__", "") != __name__:
        sys.excepthook = _hook(before)


def _hook(before: Hook) -> Hook:
    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        cut = list(_cut(error)) if os.environ.get(ALL, "0") in ("", "0") else []
        # Python shows the traceback that an error holds. It gets its own back: a debugger that
        # looks into it afterwards finds every frame.
        try:
            for each, _, kept in cut:
                each.__traceback__ = kept
            before(kind, error, error.__traceback__ if cut else trace)
        finally:
            for each, whole, _ in cut:
                each.__traceback__ = whole

    return show


def _cut(error: BaseException | None) -> Iterator[tuple[TileError, TracebackType, TracebackType]]:
    """The TileErrors among an error, when it is one, and those that led to it, each with its
    traceback and the part of that to show. A fault of tilelab's own keeps all frames."""
    seen: set[int] = set()
    while isinstance(error, TileError) and id(error) not in seen:
        seen.add(id(error))
        whole = error.__traceback__
        kept = _users(whole)
        if not isinstance(error, TileInternalError) and whole is not None and kept is not None:
            yield error, whole, kept
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _users(trace: TracebackType | None) -> TracebackType | None:
    """A copy of a traceback without tilelab's frames, nor those of libraries that these called;
    None where nothing is left."""
    frames: list[TracebackType] = []
    inside = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        inside = file.startswith(_OWN) or (inside and file.startswith((*_LIBRARIES, "<frozen")))
        if not inside:
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept
