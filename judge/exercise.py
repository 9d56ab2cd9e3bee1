"""Finds exercises and reads submissions. Hides the folder layout and what counts as a file.

exercises/NN_name/: task.md, starter.py, solution.py, checks.py (the judge's own), mutants/ (wrong
solutions, each with its code on the first line) and accepted/ (other right ones).
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from random import Random

from judge.checks import Quiz
from judge.kernels import POINTS, KernelTask
from judge.starters import answer_of

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "exercises"
MAX_SOURCE = 256 << 10
NOTEBOOK = ".ipynb"
EXPECTED = re.compile(r"# fails: ([A-Z0-9_.]+)")


class UsageError(Exception):
    """The command names something that is not there or cannot be graded (exit code 2)."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its folder and what its checks.py declares as EXERCISE."""

    id: str
    folder: Path
    task: Quiz | KernelTask

    @property
    def quiz(self) -> Quiz:
        """The task of a quiz or estimation."""
        assert isinstance(self.task, Quiz), f"{self.id} is no quiz"
        return self.task

    @property
    def kernel_task(self) -> KernelTask:
        """The task of a kernel exercise."""
        assert isinstance(self.task, KernelTask), f"{self.id} asks for no kernel"
        return self.task

    @property
    def points(self) -> int:
        """The most that can be won."""
        if isinstance(self.task, KernelTask):
            return sum(POINTS.values())
        return sum(case.points for case in self.task.draw(Random(0)))

    @property
    def hints(self) -> tuple[str, ...]:
        """Hints in the order in which they give more away."""
        task = self.task
        return (task.hint_command,) if isinstance(task, Quiz) else task.hints

    @property
    def solution(self) -> Path:
        return self.folder / "solution.py"

    @property
    def starter(self) -> Path:
        return self.folder / "starter.py"

    def mutants(self) -> list[tuple[Path, str]]:
        """Wrong solutions with the code that each must fail with."""
        found: list[tuple[Path, str]] = []
        for path in sorted((self.folder / "mutants").glob("*.py")):
            match = EXPECTED.match(path.read_text("utf-8"))
            if match is None:
                raise UsageError(f"{path}: the first line is no '# fails: CODE'")
            found.append((path, match.group(1)))
        return found

    def accepted(self) -> list[Path]:
        """Right solutions that differ from the shipped one."""
        return sorted((self.folder / "accepted").glob("*.py"))


def exercise_ids() -> list[str]:
    """Names of all exercises, in order."""
    return sorted(p.parent.name for p in FOLDER.glob("*/checks.py"))


def load_exercise(name: str) -> Exercise:
    """The exercise of that name, or of that number ("01", "1")."""
    number = name.zfill(2)
    matches = [i for i in exercise_ids() if i == name or i.split("_")[0] == number]
    if len(matches) != 1:
        raise UsageError(f"no exercise {name!r}; there are: {', '.join(exercise_ids())}")
    folder = FOLDER / matches[0]
    spec = importlib.util.spec_from_file_location(f"checks_of_{matches[0]}", folder / "checks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Exercise(matches[0], folder, module.EXERCISE)


def read_regular(path: Path) -> bytes:
    """The bytes of a student's file; refuses links, devices and huge files.

    What is looked at is what was opened: the name may stand for another file a moment later."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        problem = "is no regular file" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(f"{path}: {problem}") from error
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        os.close(handle)
        raise UsageError(f"{path} is no regular file")
    with os.fdopen(handle, "rb") as stream:
        data = stream.read(MAX_SOURCE + 1)
    if len(data) > MAX_SOURCE:
        raise UsageError(f"{path} has {state.st_size} bytes, the limit is {MAX_SOURCE}")
    return data


def read_submission(path: Path) -> str:
    """The text of a student's file, of a notebook its answer cell; refuses links, devices, huge
    and undecodable files."""
    try:
        text = read_regular(path).decode("utf-8-sig")  # editors on Windows begin with a mark
        return answer_of(json.loads(text)) if path.suffix.lower() == NOTEBOOK else text
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8 text") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} is no notebook with an answer: {error}") from error
