"""The status line: silent when a step is short, one line when it is long."""

from __future__ import annotations

import io
import time

import pytest

from tilelab.commands.progress import StreamLine, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_short_steps_say_nothing() -> None:
    stream = io.StringIO()
    with progress("step", StreamLine(stream)):
        pass
    assert stream.getvalue() == ""


def test_long_steps_say_one_line_in_a_log() -> None:
    stream = io.StringIO()
    with progress("step", StreamLine(stream), patience=0.01):
        time.sleep(0.1)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2 and lines[0].startswith("step ... ") and lines[1].startswith("step took")


def test_a_terminal_line_is_rewritten() -> None:
    stream = Terminal()
    with pytest.raises(ValueError), progress("step", StreamLine(stream), patience=0.01):
        time.sleep(0.1)
        raise ValueError
    text = stream.getvalue()
    assert text.startswith("\rstep") and text.count("\n") == 1 and "failed after" in text
