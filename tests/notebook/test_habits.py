"""What people do in a notebook beside what they were told: comments above a magic, cells run again
and again, a long step stopped, inputs forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from tests.notebook.test_magics import BODY, SIZES, run
from tilelab.notebook import display

pytest.importorskip("torch")


@pytest.mark.parametrize("name", ["tilelang", "exercise"])
def test_a_cell_magic_below_other_lines_says_where_it_belongs(
    name: str, shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not shell.run_cell(f"# my kernel\n%%{name} {SIZES}\n{BODY}").success
    said = capsys.readouterr().out
    assert f"%%{name} stands below other lines" in said and "make" in said
    assert shell.run_cell(f"\n\n%%tilelang --show none {SIZES}\n\n# my kernel\n{BODY}").success


def test_a_constant_taken_for_a_variable_says_where_it_goes(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not shell.run_cell("%%tilelang M=64 K=8\nprint(M * 2)").success
    said = capsys.readouterr().out
    assert "NameError" in said and "`def make(M, K):`" in said and "write M=64 as a line" in said
    assert not shell.run_cell("%%tilelang M=64\nprint(other)").success
    assert "def make" not in capsys.readouterr().out


def test_an_input_that_was_forgotten_is_counted(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.user_ns["left"] = 1
    assert not run(shell, f"--show none --inputs left --out-idx -1 {SIZES}").success
    said = capsys.readouterr().out
    assert "takes 2 inputs (A: 128x128 float16, B: 128x128 float16), not 1: left" in said


def test_a_cell_that_is_run_again_keeps_one_set_of_widgets(shell: Any) -> None:
    """The front end has cleared the outputs of the run before, so their widgets are closed; those
    of another cell, and a widget that the reader made, stay."""
    widgets = pytest.importorskip("ipywidgets").widgets.widget
    assert run(shell, f"--show none {SIZES}").success
    shell.run_cell("import tilelab.widgets\nown = tilelab.widgets.budget(matmul_kernel)\nown")
    counts: list[int] = []
    for cell in ("first", "second", "first", "first", "second", "second"):
        shell.parent_header = {"metadata": {"cellId": cell}}
        assert shell.run_cell("%tilelab show matmul_kernel", store_history=True).success
        counts.append(len(widgets._instances))
    assert counts[1] - counts[0] >= 3 and counts[1:] == counts[1:2] * 5
    assert shell.user_ns["own"].comm is not None


def test_a_long_step_that_is_stopped_says_which(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    assert run(shell, f"--show none {SIZES}").success
    with monkeypatch.context() as patch:
        patch.setattr(display, "show", stopped)
        shell.run_cell("%tilelab show matmul_kernel --show sim")
    said = "".join(capsys.readouterr())
    assert "KeyboardInterrupt: drawing product, after 0." in said and "in stopped" not in said
    assert shell.run_cell("%tilelab show matmul_kernel --show memory").success
