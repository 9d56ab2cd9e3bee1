"""`tilelab simulate`: reports, files, options before and after the script, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilelab.cli import main
from tilelab.sim import SimReport

SCRIPT = """
import sys
import torch
import tilelang
import tilelang.language as T


@T.prim_func
def scale(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        s = T.alloc_shared((64,), "float32")
        t = T.get_thread_binding()
        s[t] = A[t] * 2.0
        SYNC
        B[t] = s[63 - t]


kernel = tilelang.compile(scale, out_idx=[1])
x = torch.arange(64, dtype=torch.float32)
for _ in range(2):
    out = kernel(x)
print("words", sys.argv[1:])
"""


@pytest.fixture
def right(tmp_path: Path) -> str:
    path = tmp_path / "right.py"
    path.write_text(SCRIPT.replace("SYNC", "T.sync_threads()"), "utf-8")
    return str(path)


@pytest.fixture
def racing(tmp_path: Path) -> str:
    """Two threads write different values to one element: no compiler puts a barrier there."""
    path = tmp_path / "racing.py"
    path.write_text(SCRIPT.replace("SYNC", "s[t // 2] = A[t] + 1.0"), "utf-8")
    return str(path)


def test_a_right_script(right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", right]) == 0
    said = capsys.readouterr().out
    assert "call 2: " in said and "2 calls: no findings" in said
    assert "limited by" in said and "wavefronts" in said and "timeline of block 0" in said


@pytest.mark.expects_findings
def test_findings_are_the_exit_status(racing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", racing]) == 1
    said = capsys.readouterr().out
    assert "words []" in said  # the script ran to its end
    assert "TL2007" in said and "s[t // 2] = A[t] + 1.0" in said and "2 calls: " in said


@pytest.mark.expects_findings
def test_checks_can_be_chosen(racing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--checks", "none", racing]) == 0
    assert main(["simulate", "--checks", "bounds,uninitialised", racing]) == 0
    assert main(["simulate", "--checks", "races", racing]) == 1
    capsys.readouterr()
    assert main(["simulate", "--checks", "odd", racing]) == 2
    assert "odd" in capsys.readouterr().err


def test_files(right: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, trace = tmp_path / "r.json", tmp_path / "t.json"
    assert main(["simulate", right, "--size", "3", "--json", str(data), "--trace", str(trace)]) == 0
    assert "words ['--size', '3']" in capsys.readouterr().out
    reports = json.loads(data.read_text("utf-8"))
    assert reports["schema"] == "tilelab.simulate/1" and len(reports["reports"]) == 2
    again = [SimReport.from_json(json.dumps(r)) for r in reports["reports"]]
    assert all(r.ok and r.name == "scale" for r in again)
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    assert len({e["pid"] for e in events}) == 2


def test_words_after_two_dashes_are_the_scripts(
    right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "--schedules", "3", right, "--", "--json", "x"]) == 0
    assert "words ['--json', 'x']" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--schedules", "0"], ["--schedules", "many"]])
def test_wrong_options(right: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *words, right]) == 2
    assert main(["simulate", right, *words]) == 2
    assert "schedules" in capsys.readouterr().err


def test_an_option_given_twice(right: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--json", "a", right, "--json", "b"]) == 2
    assert "twice" in capsys.readouterr().err
