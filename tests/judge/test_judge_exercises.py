"""Every exercise: the starter fails for the stated reason, right solutions pass, mutants do not."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from judge.exercise import ROOT, Exercise, exercise_ids, load_exercise
from judge.judge import grade, main
from judge.report import to_json, to_text, validate

EXERCISES = [load_exercise(name) for name in exercise_ids()]
MUTANTS = [(e, path, code) for e in EXERCISES for path, code in e.mutants()]
RIGHT = [(e, path) for e in EXERCISES for path in (e.solution, *e.accepted())]
SEEDS = 1000 if os.environ.get("TILELAB_FULL") == "1" else 50


def _name(value: object) -> str:
    return value.id if isinstance(value, Exercise) else getattr(value, "stem", str(value))


@pytest.mark.parametrize("exercise", EXERCISES, ids=_name)
def test_starter_fails_for_its_reason(exercise: Exercise) -> None:
    verdict = grade(exercise, exercise.starter)
    assert verdict.status == "fail"
    assert verdict.outcome.code == exercise.quiz.starter_code
    assert verdict.points[0] == 0


@pytest.mark.parametrize(("exercise", "path"), RIGHT, ids=_name)
def test_right_solutions_pass(exercise: Exercise, path: Path) -> None:
    verdict = grade(exercise, path)
    won, assessed, total = verdict.points
    assert verdict.status == "pass", to_text(verdict)
    assert won == assessed == total
    assert not verdict.outcome.flags


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("exercise", "path", "code"), MUTANTS, ids=_name)
def test_mutants_fail_with_their_code(exercise: Exercise, path: Path, code: str, seed: int) -> None:
    verdict = grade(exercise, path, seed=seed)
    assert verdict.status == "fail"
    assert verdict.outcome.code == code, to_text(verdict)
    assert verdict.outcome.hint
    assert len(to_text(verdict).splitlines()) <= 40
    assert not validate(to_json(verdict))


def test_exercises_are_complete() -> None:
    """At least six mutants, two other right solutions, sixty hidden cases, a task to read."""
    for exercise in EXERCISES:
        assert len(exercise.mutants()) >= 6
        assert len(exercise.accepted()) >= 2
        assert len(exercise.quiz.draw(random.Random(0))) >= 60
        assert (exercise.folder / "task.md").read_text("utf-8").strip()


@pytest.mark.parametrize("exercise", EXERCISES, ids=_name)
def test_case_ids_are_stable_and_cases_new(exercise: Exercise) -> None:
    """Two draws have the same ids and different questions; no id occurs twice."""
    one, two = (exercise.quiz.draw(random.Random(seed)) for seed in (1, 2))
    assert [c.id for c in one] == [c.id for c in two]
    assert max(Counter(c.id for c in (*exercise.quiz.public, *one)).values()) == 1
    assert sum(a.args != b.args for a, b in zip(one, two, strict=True)) > len(one) // 2


@pytest.mark.parametrize("exercise", EXERCISES, ids=_name)
def test_honest_solutions_never_fail(exercise: Exercise) -> None:
    """Zero false failures over many seeds."""
    for seed in range(SEEDS):
        verdict = grade(exercise, exercise.solution, seed=seed)
        assert verdict.status == "pass", (seed, to_text(verdict))


def test_anchor_of_exercise_01() -> None:
    """The figures that the task states."""
    quiz = load_exercise("01").quiz
    assert dict(quiz.expected(128, 128, 64, 16, 3, 228 * 1024)) == {
        "bytes_per_stage": 32_768,
        "total_bytes": 98_304,
        "blocks_per_sm": 2,
    }


def test_every_idea_differs_from_the_truth() -> None:
    """Each recognised mistake shows on some hidden case of every draw, and no two look alike."""
    for exercise in EXERCISES:
        for seed in range(20):
            cases = exercise.quiz.draw(random.Random(seed))
            answers = [
                tuple(tuple(sorted(dict(compute(**c.args)).items())) for c in cases)
                for compute in (exercise.quiz.expected, *(i.compute for i in exercise.quiz.ideas))
            ]
            assert len(set(answers)) == len(answers), seed


# -- the command line -----------------------------------------------------------------------------


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "judge/judge.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_command_line_as_documented() -> None:
    """Exit codes, JSON, and `all`, from a script as the README shows it."""
    done = _run("01_shared_memory_budget")
    assert done.returncode == 1 and "NOT_IMPLEMENTED" in done.stdout
    done = _run("01", "exercises/01_shared_memory_budget/solution.py", "--json")
    assert done.returncode == 0
    assert validate(json.loads(done.stdout)) == []
    assert _run("all", "--sim").returncode == 0


@pytest.mark.parametrize(
    "arguments", [["99"], ["01", "no_such_file.py"], ["all", "x.py"]], ids=" ".join
)
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "judge:" in capsys.readouterr().err


def test_internal_errors_have_their_own_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The judge's own fault never reads as the student's."""

    def broken(*_: object) -> None:
        raise OSError("no pipes left")

    monkeypatch.setattr("judge.judge.grade_quiz", broken)
    assert main(["01"]) == 4
    assert "internal error" in capsys.readouterr().err
