"""The judge's command line, and what it says to who wrote its words otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from judge.judge import main


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


def test_other_names_of_arguments_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The judge calls by name: who renames a parameter learns that."""
    mine = tmp_path / "mine.py"
    for head in ("M, N, bm, bn, sms, per", "M, N"):
        mine.write_text(f"def launch({head}):\n    return 1, 1, 1, 1\n")
        assert main(["02", str(mine)]) == 1
        assert "keep the starter's `def` line" in capsys.readouterr().out
    mine.write_text("def launch(**sizes):\n    return other(3)\n\ndef other():\n    pass\n")
    assert main(["02", str(mine)]) == 1
    assert "keep the starter's" not in capsys.readouterr().out


def test_a_number_without_its_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["3", "--hint", "1"]) == 0
    first = capsys.readouterr().out
    assert main(["03", "--hint", "1"]) == 0
    assert capsys.readouterr().out == first


def test_a_terminal_sees_what_is_graded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["02"]) in (0, 1)
    assert "grading" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["02"]) in (0, 1)
    said = capsys.readouterr().err
    assert said.startswith("grading 02_launch_shape ...\r") and said.endswith("\r")
