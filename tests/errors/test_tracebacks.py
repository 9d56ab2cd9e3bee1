"""`python script.py` shows a TileError with the script's own lines, as `tilelab run` does."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from tilelab import tracebacks
from tilelab.errors import TileInternalError, TileValueError

MISTAKE = """
import tilelab
import tilelab.language as T


def make():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            A[0] = T.exp(A[0, 1])

    return main


"""
ROOT = Path(__file__).parents[2]


def ran(folder: Path, text: str, **environment: str) -> str:
    """What a script in a process of its own says to standard error."""
    path = folder / "script.py"
    path.write_text(text)
    around = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=around)
    assert done.returncode == 1
    return done.stderr


def files(said: str) -> set[str]:
    """The names of the files in a traceback."""
    lines = [line.strip() for line in said.splitlines()]
    return {Path(line.split('"')[1]).name for line in lines if line.startswith('File "')}


def test_only_the_scripts_own_lines(tmp_path: Path) -> None:
    said = ran(tmp_path, MISTAKE + "make()\n")
    assert files(said) == {"script.py"} and "TL1105" in said
    assert said.count("File ") == 3 and "in make" in said and "in main" in said


@pytest.mark.parametrize(("value", "all_of_them"), [("1", True), ("0", False), ("", False)])
def test_all_frames_on_request(value: str, all_of_them: bool, tmp_path: Path) -> None:
    said = ran(tmp_path, MISTAKE + "make()\n", TILELAB_FULL_TRACEBACK=value)
    assert ("function.py" in files(said)) == all_of_them


def test_other_errors_and_other_hooks_stay(tmp_path: Path) -> None:
    assert "ZeroDivisionError" in ran(tmp_path, MISTAKE + "1 / 0\n")
    hook = "import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__, file=sys.stderr)\n"
    assert ran(tmp_path, hook + MISTAKE + "make()\n") == "mine TileIndexError\n"
    assert ran(tmp_path, MISTAKE + hook + "make()\n") == "mine TileIndexError\n"


def test_a_debugger_afterwards_finds_every_frame(tmp_path: Path) -> None:
    after = (
        "import atexit, sys, traceback\n"
        "atexit.register(lambda: print(len(traceback.extract_tb(sys.last_traceback)), "
        "len(traceback.extract_tb(sys.last_value.__traceback__)), file=sys.stderr))\n"
    )
    last, held = ran(tmp_path, after + MISTAKE + "make()\n").splitlines()[-1].split()
    assert int(last) == int(held) > 5


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    """An error with a traceback, out of tilelab's own code."""
    try:
        tracebacks._hook(lambda *_: _raise(error, cause))(type(error), error, None)
    except type(error) as caught:
        return caught
    raise AssertionError


def _raise(error: Exception, cause: Exception | None) -> None:
    raise error from cause


def shown(error: Exception, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the hook lets Python's own show."""
    texts: list[str] = []
    monkeypatch.delenv(tracebacks.ALL, raising=False)
    before = error.__traceback__
    hook = tracebacks._hook(lambda _, e, t: texts.append("".join(traceback.format_exception(e))))
    hook(type(error), error, error.__traceback__)
    assert error.__traceback__ is before
    return texts[0]


def test_causes_are_cut_and_faults_of_tilelab_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    cause = raised(TileValueError("the cause", code="TL1001"))
    said = shown(raised(TileValueError("the end", code="TL1001"), cause), monkeypatch)
    assert "the cause" in said and "the end" in said and "tracebacks.py" not in files(said)
    assert "tracebacks.py" in files(shown(raised(TileInternalError("a fault")), monkeypatch))


def test_it_is_installed_once() -> None:
    hook = sys.excepthook
    tracebacks.install()
    assert sys.excepthook is hook or sys.excepthook.__module__ == tracebacks.__name__
    again = sys.excepthook
    tracebacks.install()
    assert sys.excepthook is again
    sys.excepthook = hook
