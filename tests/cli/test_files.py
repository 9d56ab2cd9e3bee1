"""Paths that a command cannot use are refused before its work begins, with what they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilelab.cli import main
from tilelab.commands.files import read_source, writable_file

KERNEL = """
import tilelang.language as T


@T.prim_func
def copied(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i]
"""


def _place(folder: Path, kind: str) -> str:
    path = folder / f"{kind}.py"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "notebook":
        path = folder / "a.ipynb"
        path.write_text('{"cells": []}')
    else:
        text = {
            "program": b"\x7fELF\0\0\x01",
            "latin": b"# caf\xe9\n",
            "utf16": "x=1".encode("utf-16"),
        }
        path.write_bytes(text[kind])
    return str(path)


@pytest.mark.parametrize("command", ["run", "simulate", "show"])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("folder", "is a folder"),
        ("pipe", "is a pipe"),
        ("program", "no text of Python"),
        ("latin", "save it as UTF-8"),
        ("utf16", "no text of Python"),
        ("notebook", "is a notebook"),
    ],
)
def test_what_is_no_script(
    command: str, kind: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, _place(tmp_path, kind)]) == 1
    said = capsys.readouterr().err
    assert "TL1709" in said and words in said and "hint" in said and "Traceback" not in said


@pytest.mark.parametrize("command", ["run", "simulate", "show"])
def test_a_script_that_python_cannot_read_shows_its_own_line_alone(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ndef f(:\n")
    assert main([command, str(path)]) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said and "runpy" not in said
    assert f'File "{path}", line 2' in said and "SyntaxError" in said


def test_encodings_that_python_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.py"
    for start in (b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\n# caf\xe9\n"):
        path.write_bytes(start + KERNEL.encode())
        assert "def copied" in read_source(str(path))
        assert main(["show", str(path), "--show", "none"]) == 0
        assert "<JITKernel" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["folder", "pipe"])
@pytest.mark.parametrize(
    "line",
    [
        ["demo", "--output"],
        ["simulate", "SCRIPT", "--json"],
        ["simulate", "SCRIPT", "--trace"],
        ["bench", "compile", "--out"],
        ["bench", "compile", "--json"],
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(
    line: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('ran')\n")
    words = [str(script) if word == "SCRIPT" else word for word in line]
    assert main([*words, _place(tmp_path, kind)]) == 1
    said = capsys.readouterr()
    assert "TL1709" in said.err and f"is a {kind}" in said.err
    assert "ran" not in said.out and "measuring" not in said.err


def test_a_folder_of_pictures_that_is_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "kernel.py"
    script.write_text(KERNEL + "print('ran')\n")
    assert main(["show", str(script), "--svg", str(script)]) == 1
    said = capsys.readouterr()
    assert "TL1709" in said.err and "ran" not in said.out


def test_looking_leaves_no_file_and_changes_none(tmp_path: Path) -> None:
    assert not writable_file(str(tmp_path / "new" / "result.json")).exists()
    kept = tmp_path / "kept.md"
    kept.write_text("text\n")
    assert writable_file(str(kept), merged=True).read_text() == "text\n"


def test_a_file_whose_text_is_kept_is_text(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(ValueError, match="TL1709"):
        writable_file(str(path), merged=True)
    assert writable_file(str(path)) == path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "TL1702: tilelab bench: the following arguments are required: SUITE"),
        (["gem"], 2, "did you mean gemm?"),
        (["gemm", "--peer", "torch"], 2, "did you mean --peers?"),
        (["gemm", "--peers", "tourch"], 1, "no peer is called 'tourch'"),
        (["gemm", "--reference", "nowhere"], 1, "--reference nowhere: no folder"),
    ],
)
def test_wrong_use_of_bench_is_told_on_every_machine(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *words]) == code
    assert said in capsys.readouterr().err
