"""The judge's own faults never read as a student's, and machines that lack something say so."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

from judge import device, runner
from judge.calls import MACHINES, NO_NEW_PRIVS, SECCOMP_FILTER, SET_SECCOMP, filter_program
from judge.exercise import ROOT, load_exercise
from judge.failure import JudgeFailed
from judge.formats import to_junit
from judge.judge import KERNEL_BUDGET, grade, main
from judge.report import to_json, to_text, validate
from judge.runner import Runner
from judge.serve import serve
from judge.session import Budget, Session

VECTOR_ADD = load_exercise("03")
QUIZ = load_exercise("02")


def _dies_at_once(*_: Any) -> None:
    os._exit(1)


def _dies_in_cases(pipe: Connection, exercise: str, source: str, gpu: bool) -> None:
    """A runner that says hello, and that the first case brings down."""
    hello = pipe.recv_bytes()
    assert json.loads(hello)["op"] == "hello"
    pipe.send_bytes(json.dumps({"gpu": "", "trouble": "", "target": "hopper"}).encode())
    pipe.recv_bytes()
    os._exit(1)


def _breaks(pipe: Connection, exercise: str, source: str, gpu: bool) -> None:
    """A runner in which a step of the judge's own fails."""
    serve(pipe, "99", source, gpu)


def test_a_runner_that_does_not_start_is_the_judges_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 4, nothing assessed, and no word against the solution in any format."""
    monkeypatch.setattr(runner, "serve", _dies_at_once)
    verdict = grade(VECTOR_ADD, VECTOR_ADD.solution, seed=1, gpu=False)
    assert (verdict.status, verdict.points) == ("not assessed", (0, 0, 100))
    report, shown = to_json(verdict), to_text(verdict)
    assert "JUDGE FAILED" in shown and "says nothing about the solution" in shown
    assert not validate(report) and report["sandbox"]["state"] == "unknown"
    suite = ElementTree.fromstring(to_junit([report]))[0]
    assert (suite.attrib["errors"], suite.attrib["failures"]) == ("1", "0")
    assert main(["03", str(VECTOR_ADD.solution), "--sim"]) == 4
    assert "the judge failed" in capsys.readouterr().err


def test_a_step_of_the_judges_own_is_its_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "serve", _breaks)
    with Runner("03", "", gpu=False) as asked:
        asked.hello()
        with pytest.raises(JudgeFailed, match="loading the exercise: UsageError"):
            asked.ask({"op": "structure", "artifact": {}, "seed": 1}, 20.0)


def test_a_kernel_that_kills_its_process_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control kernel runs in the next process, so the death was the kernel's."""
    monkeypatch.setattr(runner, "serve", _dies_in_cases)
    with Runner("03", "", gpu=False) as asked:
        assert asked.ask({"op": "case"}, 20.0)["code"] == "RUNNER_EXIT"


def test_memory_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where addresses are not limited, as beside a GPU's driver."""
    monkeypatch.setattr(runner, "MEMORY_BYTES", 1 << 20)
    monkeypatch.setattr(runner, "_LOOK_SECONDS", 0.0)  # looked at before it can answer
    with Runner("03", "", gpu=False) as asked, pytest.raises(JudgeFailed, match="MEMORY"):
        asked.hello()  # any process is larger than that, so the control fails too


def test_a_worker_that_does_not_start_is_the_judges_fault() -> None:
    with (
        Session("", "nothing", Budget(start=0.0)) as session,
        pytest.raises(JudgeFailed, match="worker did not start"),
    ):
        session.load()
    verdict = grade(QUIZ, QUIZ.solution, budget=Budget(start=0.0))
    assert verdict.outcome.code == "JUDGE_FAILED" and not verdict.outcome.flags


def test_a_gpu_that_cannot_be_reached_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No GPU, and one that torch cannot use, are different answers."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(device, "DEVICES", ((str(tmp_path), "nvidia[0-9]*"),))
    assert device.find_gpu() == device.Gpu()
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(torch.version, "cuda", None)
    assert device.find_gpu().trouble == "this torch is built without CUDA"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert "CUDA_VISIBLE_DEVICES='-1' hides it" in device.find_gpu().trouble


# -- machines that lack a part of the sandbox -----------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "writes_a_file",
        "reads_solution",
        "opens_a_socket",
        "kernel_reads_seed",
        "forks",
        "changes_modes",
        "changes_times",
        "limits_of_the_judge",
        "lowers_the_judge",
        "sets_the_clock",
        "signals_by_number",
        "memory_that_stays",
    ],
)
def test_attacks_fail_without_bubblewrap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Landlock and seccomp alone hold the same attacks."""
    monkeypatch.setattr("judge.sandbox._working_bubblewrap", lambda: "")
    path = Path(__file__).parent / "attacks" / f"{name}.py"
    code, flag, _, exercise = [*path.read_text("utf-8").splitlines()[0].split()[2:], "-", "01"][:4]
    budget = Budget(call=1.0) if not name.startswith("kernel") else replace(KERNEL_BUDGET, load=15)
    verdict = grade(load_exercise("03" if name.startswith("kernel") else "01"), path, seed=1,
                    budget=budget, gpu=False)  # fmt: skip
    assert verdict.outcome.sandbox["network"] in ("namespace", "")
    if verdict.sandbox_missing:
        pytest.skip(f"this machine's sandbox is partial: {verdict.sandbox_missing}")
    assert verdict.points[0] == 0
    assert verdict.outcome.code == code and flag in verdict.outcome.flags


def test_without_bubblewrap_on_the_path_the_sandbox_is_still_whole(tmp_path: Path) -> None:
    """As on a machine that does not have it: Landlock, seccomp and a namespace do its work."""
    attack = Path(__file__).parent / "attacks" / "reads_solution.py"

    def judge(exercise: str, path: Path) -> Any:
        done = subprocess.run(
            [sys.executable, "judge/judge.py", exercise, str(path), "--json"], cwd=ROOT, text=True,
            capture_output=True, timeout=240, check=False,
            env={**os.environ, "PATH": str(tmp_path)},
        )  # fmt: skip
        return json.loads(done.stdout)

    report = judge("02", QUIZ.solution)
    if report["sandbox"]["state"] != "full":
        pytest.skip(f"this machine's sandbox is partial: {report['sandbox']['missing']}")
    assert report["status"] == "pass" and report["sandbox"]["parts"]["network"] != "bubblewrap"
    report = judge("01", attack)
    assert report["score"]["points"] == 0 and "reads_judge" in report["flags"]


LANDLOCK, MOUNTS, NAMESPACES = (444, 445, 446), 165, 272


def _deny() -> None:
    """What an old kernel or a strict container denies: Landlock, mounts, namespaces."""
    audit, *_ = MACHINES["x86_64"]
    code = filter_program(audit, 0xFFFFFF, [*LANDLOCK, MOUNTS, NAMESPACES])
    libc = ctypes.CDLL(None)
    program = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    given = Program(len(code) // 8, ctypes.addressof(program))
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(given), 0, 0)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of calls of x86-64")
def test_a_machine_without_landlock_grades_and_refuses_batches(tmp_path: Path) -> None:
    """The report says what is missing; a class's submissions are not run there."""

    def judge(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "judge/judge.py", *arguments], cwd=ROOT, text=True,
                              capture_output=True, timeout=120, preexec_fn=_deny)  # fmt: skip

    done = judge("02", str(QUIZ.solution), "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["status"]) == (0, "pass")
    assert (report["sandbox"]["state"], report["sandbox"]["missing"]) == ("partial", ["files"])
    (tmp_path / "a.py").write_text("launch = None\n")
    done = judge("batch", str(tmp_path), "--exercise", "02")
    assert done.returncode == 2 and "sandbox partial (without files)" in done.stderr
