"""One status line for steps that take over a second.

Hides the timer thread and where the line goes: a terminal, a log, or a notebook output.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from tilelab.logs import shown

PATIENCE = 1.0  # seconds before a step is worth a word
TICK = 1.0


class Line(Protocol):
    """A place for one line that changes."""

    def update(self, text: str) -> None:
        """Show `text` in place of what was shown."""
        ...

    def finish(self, text: str) -> None:
        """Show `text` for good."""
        ...


class StreamLine:
    """A line of a text stream; rewritten in place on a terminal, else written once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._width = 0

    def update(self, text: str) -> None:
        """Rewrite the line; a stream that is no terminal hears of the first text only."""
        if self._stream.isatty():
            self._write("\r" + text.ljust(self._width))
        elif not self._width:
            self._write(text + "\n")
        self._width = max(self._width, len(text))

    def finish(self, text: str) -> None:
        """Leave `text` on the line and go to the next."""
        start = "\r" if self._stream.isatty() else ""
        self._write(start + text.ljust(self._width) + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class NotebookLine:
    """One output of a notebook cell, updated in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def update(self, text: str) -> None:
        """Show the output, or change it."""
        import IPython.display  # lazy: this class is made by the magics only

        data = {"text/plain": text}
        if self._handle is None:
            module: Any = IPython.display
            self._handle = module.display(data, raw=True, display_id=True)
        elif self._handle is not None:
            self._handle.update(data, raw=True)

    def finish(self, text: str) -> None:
        """Change the output for the last time."""
        self.update(text)


class Ticker(threading.Thread):
    """Updates a line once a second until it is told to stop."""

    def __init__(self, label: str, line: Line, patience: float) -> None:
        super().__init__(daemon=True, name="tilelab-progress")
        self._label, self._line, self._patience = label, line, patience
        self._stop_now = threading.Event()
        self.started_at = time.perf_counter()
        self.spoke = False

    @property
    def seconds(self) -> float:
        """Time since the step began."""
        return time.perf_counter() - self.started_at

    def run(self) -> None:
        """Wait out the patience, then tell the time."""
        wait = self._patience
        while not self._stop_now.wait(wait):
            self.spoke = True
            self._line.update(f"{self._label} ... {self.seconds:.0f} s")
            wait = TICK

    def stop(self) -> None:
        """End the thread."""
        self._stop_now.set()
        self.join()


@contextmanager
def progress(label: str, line: Line | None = None, patience: float = PATIENCE) -> Generator[None]:
    """Show `label` with the seconds that passed, once the step has taken over a second (unless
    the log level hides progress)."""
    if not shown():
        yield
        return
    line = line or StreamLine()
    ticker = Ticker(label, line, patience)
    ticker.start()
    outcome = "failed after"
    try:
        yield
        outcome = "took"
    except KeyboardInterrupt:
        outcome = "interrupted after"
        # Without the frames of the step, which are of no use to who stopped it.
        raise KeyboardInterrupt(f"{label}, after {ticker.seconds:.1f} s") from None
    finally:
        ticker.stop()
        if ticker.spoke:
            line.finish(f"{label} {outcome} {ticker.seconds:.1f} s")
