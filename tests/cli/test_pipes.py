"""`... | head`: a reader that has seen enough is no error, and nothing is said about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TALKS = """
import tilelab
import tilelab.language as T

@T.prim_func
def main(A: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(128):
            A[i] = 1.0

for number in range(100_000):
    print("line", number)
"""
FAILS = """
import os
reader, writer = os.pipe()
os.close(reader)
os.write(writer, b"x")
"""


def first_line(*words: str) -> tuple[str, int, str]:
    """The first line of what a command says, all that is read of it; its exit code, its errors."""
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        return line, process.wait(), errors


@pytest.mark.parametrize("command", ["run", "simulate", "show"])
def test_a_reader_that_leaves(command: str, tmp_path: Path) -> None:
    script = tmp_path / "talks.py"
    script.write_text(TALKS)
    line, code, errors = first_line("-m", "tilelab", command, str(script))
    assert (line, code) == ("line 0\n", 141)
    assert "Pipe" not in errors and "Traceback" not in errors


def test_a_locale_of_ascii_alone(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    script.write_text(TALKS.partition("for number")[0])
    done = subprocess.run(
        [sys.executable, "-m", "tilelab", "show", str(script), "--show", "memory"],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert done.returncode == 0 and "? fits; " in done.stdout and "Traceback" not in done.stderr


def test_another_pipe_is_the_scripts_own_matter(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    done = subprocess.run(
        [sys.executable, "-m", "tilelab", "run", str(script)],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "BrokenPipeError" in done.stderr


def test_the_judge(tmp_path: Path) -> None:
    line, code, errors = first_line("judge/judge.py", "--hint", "1", "03_vector_add")
    assert line.startswith("hint 1") and code == 0 and not errors
