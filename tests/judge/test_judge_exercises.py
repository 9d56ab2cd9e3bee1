"""Every exercise: the starter fails for the stated reason, right solutions pass, mutants do not."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from judge.checks import Quiz
from judge.exercise import ROOT, Exercise, exercise_ids, load_exercise
from judge.judge import grade, main
from judge.report import to_json, to_text, validate
from judge.starters import starter_text

EXERCISES = [load_exercise(name) for name in exercise_ids()]
QUIZZES = [e for e in EXERCISES if isinstance(e.task, Quiz)]
# Quizzes are quick: two draws. A kernel's mutants are graded once.
MUTANTS = [
    (e, path, code, seed)
    for e in EXERCISES
    for path, code in e.mutants()
    for seed in ((1, 2) if e in QUIZZES else (1,))
]
RIGHT = [(e, path) for e in EXERCISES for path in (e.solution, *e.accepted())]
SEEDS = 1000 if os.environ.get("TILELAB_FULL") == "1" else 50


def _name(value: object) -> str:
    return value.id if isinstance(value, Exercise) else getattr(value, "stem", str(value))


@pytest.mark.parametrize("exercise", EXERCISES, ids=_name)
def test_starter_fails_for_its_reason(exercise: Exercise) -> None:
    verdict = grade(exercise, exercise.starter)
    assert verdict.status == "fail"
    assert verdict.outcome.code == exercise.task.starter_code
    assert verdict.points[0] == 0
    made = starter_text(exercise.solution.read_text("utf-8"))
    assert exercise.starter.read_text("utf-8") == made, "make it anew with judge.starters"


@pytest.mark.parametrize(("exercise", "path"), RIGHT, ids=_name)
def test_right_solutions_pass(exercise: Exercise, path: Path) -> None:
    verdict = grade(exercise, path)
    won, assessed, _ = verdict.points
    assert verdict.status == "pass", to_text(verdict)
    assert won == assessed > 0
    assert not verdict.outcome.flags


@pytest.mark.parametrize(("exercise", "path", "code", "seed"), MUTANTS, ids=_name)
def test_mutants_fail_with_their_code(exercise: Exercise, path: Path, code: str, seed: int) -> None:
    verdict = grade(exercise, path, seed=seed)
    assert verdict.status == "fail"
    assert verdict.outcome.code == code, to_text(verdict)
    assert verdict.outcome.hint
    assert len(to_text(verdict).splitlines()) <= 40
    assert not validate(to_json(verdict))


def test_exercises_are_complete() -> None:
    """At least six mutants, two other right solutions, many hidden cases, a task to read."""
    for exercise in EXERCISES:
        assert len(exercise.mutants()) >= 6
        assert len(exercise.accepted()) >= 2
        least = 60 if exercise in QUIZZES else 10
        assert len(exercise.task.draw(random.Random(0))) >= least
        assert (exercise.folder / "task.md").read_text("utf-8").strip()


@pytest.mark.parametrize("exercise", EXERCISES, ids=_name)
def test_case_ids_are_stable_and_cases_new(exercise: Exercise) -> None:
    """Two draws have the same ids and different questions; no id occurs twice."""
    one, two = (exercise.task.draw(random.Random(seed)) for seed in (1, 2))
    assert [c.id for c in one] == [c.id for c in two]
    assert max(Counter(c.id for c in (*exercise.task.public, *one)).values()) == 1
    differ = sum(a != b for a, b in zip(one, two, strict=True))
    # The values of a kernel's inputs are new in every case, its sizes in some.
    assert differ > (len(one) // 2 if exercise in QUIZZES else 2)


@pytest.mark.parametrize("exercise", QUIZZES, ids=_name)
def test_honest_solutions_never_fail(exercise: Exercise) -> None:
    """Zero false failures over many draws."""
    scope: dict[str, Any] = {}
    exec(exercise.solution.read_text("utf-8"), scope)
    quiz = exercise.quiz
    for seed in range(SEEDS):
        for case in quiz.draw(random.Random(seed)):
            assert scope[quiz.entry](**case.args) == quiz.expected(**case.args), (seed, case)


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
    for exercise in QUIZZES:
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
    done = _run("02", "exercises/02_launch_shape/solution.py", "--junit")
    assert done.returncode == 0 and done.stdout.startswith("<?xml")


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
