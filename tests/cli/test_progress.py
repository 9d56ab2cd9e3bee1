"""The status line: silent when a step is short, one line when it is long."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time

import pytest

from tilelab.commands.progress import StreamLine, progress
from tilelab.logs import set_log_level


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


def test_a_log_level_hides_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    line = StreamLine(io.StringIO())
    monkeypatch.setattr(line, "update", heard.append)
    set_log_level("WARNING")
    try:
        with progress("compiling", line, patience=0.0):
            threading.Event().wait(0.05)
    finally:
        set_log_level("INFO")
    assert heard == []


def test_the_environment_sets_the_log_level() -> None:
    code = "from tilelab import logs; print(logs.shown())"

    def asked(level: str) -> tuple[str, str]:
        environment = {**os.environ, "TILELAB_LOG_LEVEL": level}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env=environment, check=False)  # fmt: skip
        return done.stdout.strip(), done.stderr

    assert asked("WARNING")[0] == "False" and asked("")[0] == "True"
    assert "TL1643" in asked("LOUD")[1]
