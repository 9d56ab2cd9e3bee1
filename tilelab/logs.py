"""What tilelab says while it works: one logger, a level to turn it down, a line of progress.

Hides where the lines go (the error stream) and that a terminal's line is rewritten in place.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from tilelab.calls import answer_all
from tilelab.errors import TileValueError

LOGGER = logging.getLogger("tilelab")
LEVEL = "TILELAB_LOG_LEVEL"
"""The environment's word for the level, until a program sets another."""

_SILENCE = 5.0  # seconds without a word, where lines cannot be rewritten


def set_log_level(level: str | int) -> None:
    """How much tilelab says: "DEBUG" and "INFO" show progress (the default), "WARNING" and above
    hide it. TileValueError (TL1643) for a level that logging does not know."""
    known = logging.getLevelNamesMapping()
    name = level.upper() if isinstance(level, str) else level
    if isinstance(name, str) and name not in known:
        raise TileValueError(
            f"there is no log level {level!r}", code="TL1643", hint="use " + ", ".join(known)
        )
    LOGGER.setLevel(name)


if LOGGER.level == logging.NOTSET:
    set_log_level(os.environ.get(LEVEL) or logging.INFO)


def shown() -> bool:
    """Whether progress is to be shown."""
    return LOGGER.isEnabledFor(logging.INFO)


_told: set[tuple[str, str]] = set()


def notice(topic: str, text: str) -> None:
    """Say something once for each topic and text."""
    if shown() and (topic, text) not in _told:
        _told.add((topic, text))
        sys.stderr.write(f"tilelab: {topic}: {text}\n")


def without_effect(name: str, given: Mapping[str, Any], why: str) -> None:
    """Say once of each argument of `name` that it changes nothing; `None` was not given."""
    for argument, value in given.items():
        if value is not None:
            notice(name, f"{argument} changes nothing here: {why}")


class Progress:
    """A line that tells how far something is. On a terminal it is rewritten; elsewhere it is
    written again when it has been still for some seconds, and at the end."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._stream = sys.stderr
        self._width = 0
        self._last = ""
        self._spoken = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._last and shown():
            self._put(self._last, "\n")

    def update(self, text: str) -> None:
        """Show `text` in place of what was shown."""
        self._last = text
        if not shown():
            return
        if self._stream.isatty():
            self._put(text, "")
        elif time.monotonic() - self._spoken > _SILENCE:
            self._put(text, "\n")

    def line(self, text: str) -> None:
        """Say `text` for good."""
        if shown():
            self._put(text, "\n")

    def _put(self, text: str, end: str) -> None:
        start = "\r" if self._stream.isatty() else ""
        whole = f"tilelab: {self.label}: {text}"
        self._stream.write(start + whole.ljust(self._width if start else 0) + end)
        self._stream.flush()
        self._width = 0 if end else len(whole)
        self._spoken = time.monotonic()


answer_all(globals(), ("set_log_level",), "tilelab")
