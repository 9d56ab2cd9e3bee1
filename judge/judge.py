"""The judge's command line: `python judge/judge.py EXERCISE [SOLUTION]`, `judge.py all`.

Exit codes: 0 everything assessed passed, 1 something failed, 2 wrong usage, 3 nothing could be
assessed, 4 the judge itself failed.
"""

from __future__ import annotations

import argparse
import json
import random
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":  # as a script, Python puts judge/ on the path instead of its parent
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from judge.checks import grade_quiz
from judge.exercise import Exercise, UsageError, exercise_ids, load_exercise, read_submission
from judge.report import Verdict, to_json, to_text, validate
from judge.session import Budget, Session

PASSED, FAILED, USAGE, NOT_ASSESSED, BROKEN = 0, 1, 2, 3, 4
EXIT = {"pass": PASSED, "fail": FAILED, "not assessed": NOT_ASSESSED}


def grade(
    exercise: Exercise, submission: Path, *, seed: int | None = None, budget: Budget | None = None
) -> Verdict:
    """Grade one file. Without a seed the hidden cases are drawn from a secret one."""
    begun = time.monotonic()
    source = read_submission(submission)
    rng = random.Random(secrets.randbits(128) if seed is None else seed)
    with Session(source, exercise.quiz.entry, budget) as session:
        outcome = grade_quiz(exercise.quiz, session, rng)
    return Verdict(exercise.id, submission.as_posix(), outcome, time.monotonic() - begun)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="judge.py",
        description="Grade an exercise. Exit codes: 0 passed, 1 failed, 2 usage, "
        "3 nothing assessed, 4 the judge failed.",
    )
    parser.add_argument("exercise", help="an exercise's name or number, or 'all'")
    parser.add_argument(
        "solution", nargs="?", type=Path,
        help="the file to grade (the exercise's starter.py, which you edit, when left out)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument("--seed", type=int, help="draw the hidden cases from this seed")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--sim", action="store_true", help="run kernels in the simulator (a quiz runs none)"
    )
    where.add_argument(
        "--gpu", action="store_true", help="run kernels on the GPU (a quiz runs none)"
    )
    return parser


def _verdicts(arguments: argparse.Namespace) -> list[Verdict]:
    if arguments.exercise != "all":
        exercise = load_exercise(arguments.exercise)
        submission = arguments.solution or exercise.starter
        return [grade(exercise, submission, seed=arguments.seed)]
    if arguments.solution is not None:
        raise UsageError("'all' grades the shipped solutions and takes no file")
    exercises = [load_exercise(name) for name in exercise_ids()]
    return [grade(e, e.solution, seed=arguments.seed) for e in exercises]


def _show(verdicts: Sequence[Verdict], as_json: bool, together: bool) -> None:
    reports = [to_json(v) for v in verdicts]
    problems = [problem for report in reports for problem in validate(report)]
    assert not problems, problems
    if as_json:
        print(json.dumps(reports if together else reports[0], indent=2))
    else:
        print("\n".join(to_text(v) for v in verdicts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, grade, print; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        verdicts = _verdicts(options)
        _show(verdicts, options.json, options.exercise == "all")
    except UsageError as error:
        print(f"judge: {error}", file=sys.stderr)
        return USAGE
    except Exception as error:  # never let the judge's own fault look like the student's
        print(f"judge: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        return BROKEN
    # One failure fails the run; a run with nothing assessed never counts as passed.
    codes = {EXIT[v.status] for v in verdicts}
    return next((c for c in (FAILED, NOT_ASSESSED) if c in codes), PASSED)


if __name__ == "__main__":
    sys.exit(main())
