"""What the judge says is the likely cause, and its command line with options anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.compare import Difference
from judge.exercise import load_exercise
from judge.judge import main
from judge.kernels import KernelTask
from judge.running import _cause

NAN = float("nan")


@pytest.mark.parametrize(
    ("size", "unwritten", "words"),
    [
        (1000, 1, "a guard such as `i < N - 1`"),
        (1000, 232, "the grid ends too early"),
        (1000, 1000, "nothing was written to the output"),
    ],
)
def test_cause_of_an_end_that_is_missing(size: int, unwritten: int, words: str) -> None:
    task = load_exercise("03_vector_add").task
    assert isinstance(task, KernelTask)
    first = (size - unwritten,)
    found = Difference(unwritten, size, unwritten, first, NAN, 1.0, 1e-6, (size - 1,))
    assert words in _cause(task, found, {"N": size})


def test_options_stand_anywhere(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("")
    for words in (
        ["03_vector_add", "--hint", "1", str(file)],
        ["--hint", "1", "03_vector_add", str(file)],
        ["03_vector_add", str(file), "--hint", "1"],
    ):
        assert main(words) == 0
        assert capsys.readouterr().out.startswith("hint 1")
