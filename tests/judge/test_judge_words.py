"""The judge's command line with options anywhere."""

from __future__ import annotations

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
