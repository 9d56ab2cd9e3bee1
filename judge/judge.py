"""The judge's command line: `python judge/judge.py EXERCISE [SOLUTION]`, `judge.py all`.

Exit codes: 0 everything assessed passed, 1 something failed, 2 wrong usage, 3 nothing could be
assessed, 4 the judge itself failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import secrets
import sys
import time
from collections.abc import Generator, Sequence
from pathlib import Path

if __name__ == "__main__":  # as a script, Python puts judge/ on the path instead of its parent
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from judge.checks import CaseResult, Outcome, Quiz, grade_quiz
from judge.commands import COMMANDS, INTERRUPTED, stop_writing
from judge.exercise import Exercise, UsageError, exercise_ids, load_exercise, read_submission
from judge.failure import CODE as JUDGE_FAILED
from judge.failure import JudgeFailed
from judge.formats import to_gradescope, to_junit
from judge.grading import NoGpu, grade_kernel
from judge.report import Verdict, to_json, to_text, validate
from judge.runner import Runner
from judge.sandbox import Limits
from judge.session import Budget, Session

PASSED, FAILED, USAGE, NOT_ASSESSED, BROKEN = 0, 1, 2, 3, 4
EXIT = {"pass": PASSED, "fail": FAILED, "not assessed": NOT_ASSESSED}


KERNEL_BUDGET = Budget(limits=Limits(cpu_seconds=120, memory_bytes=6 << 30))


def grade(
    exercise: Exercise, submission: Path, *, seed: int | None = None,
    budget: Budget | None = None, gpu: bool | None = None,
) -> Verdict:  # fmt: skip
    """Grade one file. Without a seed the hidden cases are drawn from a secret one. Kernels run on
    the GPU where there is one; `gpu` True or False asks for it or for the simulator alone. Where
    the judge itself fails the verdict says so, and assesses nothing."""
    begun = time.monotonic()
    source = read_submission(submission)
    rng = random.Random(secrets.randbits(128) if seed is None else seed)
    try:
        outcome = _graded(exercise, source, rng, budget, gpu)
    except JudgeFailed as error:
        outcome = _judge_failed(exercise, str(error))
    return Verdict(exercise.id, submission.as_posix(), outcome, time.monotonic() - begun)


def _graded(
    exercise: Exercise, source: str, rng: random.Random, budget: Budget | None, gpu: bool | None
) -> Outcome:
    task = exercise.task
    if isinstance(task, Quiz):
        with Session(source, task.entry, budget) as session:
            return grade_quiz(task, session, rng)
    with (
        Runner(exercise.id, source, gpu is not False) as runner,
        Session(source, task.entry, budget or KERNEL_BUDGET, kernels=True) as session,
    ):
        return grade_kernel(task, session, runner, rng, gpu)


def _judge_failed(exercise: Exercise, why: str) -> Outcome:
    """One case that stands for all, and was not assessed."""
    only = CaseResult(
        "judge", "the judge itself", False, "not assessed", 0, exercise.points, JUDGE_FAILED, why
    )
    hint = "this says nothing about the solution: tell whoever runs the judge"
    return Outcome((only,), JUDGE_FAILED, why, hint, (), {})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="judge.py",
        description="Grade an exercise; or: judge.py batch|package|notebook --help. "
        "Exit codes: 0 passed, 1 failed, 2 usage, "
        "3 nothing assessed, 4 the judge failed.",
    )
    parser.add_argument("exercise", help="an exercise's name or number, or 'all'")
    parser.add_argument(
        "solution", nargs="?", type=Path,
        help="the file to grade (the exercise's starter.py, which you edit, when left out)",
    )  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the verdict as JSON")
    form.add_argument("--junit", action="store_true", help="print it as JUnit XML")
    form.add_argument("--gradescope", action="store_true", help="print Gradescope's results.json")
    parser.add_argument("--hint", type=int, metavar="N", help="show the N-th hint and do not grade")
    parser.add_argument("--seed", type=int, help="draw the hidden cases from this seed")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--sim", action="store_true", help="run kernels in the simulator alone")
    where.add_argument(
        "--gpu", action="store_true", help="run kernels on the GPU, or say that there is none"
    )
    return parser


def _verdicts(arguments: argparse.Namespace) -> list[Verdict]:
    where = True if arguments.gpu else False if arguments.sim else None
    if arguments.exercise != "all":
        exercise = load_exercise(arguments.exercise)
        submission = arguments.solution or exercise.starter
        with _waiting(exercise.id):
            return [grade(exercise, submission, seed=arguments.seed, gpu=where)]
    if arguments.solution is not None:
        raise UsageError("'all' grades the shipped solutions and takes no file")
    verdicts: list[Verdict] = []
    for exercise in map(load_exercise, exercise_ids()):
        with _waiting(exercise.id):
            verdicts.append(grade(exercise, exercise.solution, seed=arguments.seed, gpu=where))
    return verdicts


@contextlib.contextmanager
def _waiting(name: str) -> Generator[None]:
    """A line on the terminal while an exercise is graded, gone afterwards; none in a log."""
    text, terminal = f"grading {name} ...", sys.stderr.isatty()
    if terminal:
        print(text, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if terminal:
            print("\r" + " " * len(text) + "\r", end="", file=sys.stderr, flush=True)


def _show(verdicts: Sequence[Verdict], arguments: argparse.Namespace) -> None:
    reports = [to_json(v) for v in verdicts]
    problems = [problem for report in reports for problem in validate(report)]
    assert not problems, problems
    texts = [to_text(v) for v in verdicts]
    together = arguments.exercise == "all"
    if arguments.json:
        print(json.dumps(reports if together else reports[0], indent=2))
    elif arguments.junit:
        print(to_junit(reports), end="")
    elif arguments.gradescope:
        made = [to_gradescope(r, t) for r, t in zip(reports, texts, strict=True)]
        print(json.dumps(made if together else made[0], indent=2))
    else:
        print("\n".join(texts))


def _hint(name: str, number: int) -> str:
    """The N-th hint of an exercise."""
    exercise = load_exercise(name)
    hints = exercise.hints
    if not 1 <= number <= len(hints):
        raise UsageError(f"{exercise.id} has {len(hints)} hints, there is no number {number}")
    more = f" (of {len(hints)}; --hint {number + 1} shows the next)" if number < len(hints) else ""
    return f"hint {number}{more}: {hints[number - 1]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, grade, print; the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    verdicts: list[Verdict] = []
    try:
        if words and words[0] in COMMANDS:
            return COMMANDS[words[0]](words[1:], lambda line: print(line, flush=True))
        options = _parser().parse_intermixed_args(words)
        if options.hint is not None:
            print(_hint(options.exercise, options.hint))
            return PASSED
        verdicts = _verdicts(options)
        _show(verdicts, options)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough: the exit code still says what came of it
        stop_writing()
        if not verdicts:
            return PASSED
    except (UsageError, NoGpu) as error:
        print(f"judge: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("judge: stopped", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # never let the judge's own fault look like the student's
        print(f"judge: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        return BROKEN
    broken = [v for v in verdicts if v.outcome.code == JUDGE_FAILED]
    for verdict in broken:
        print(f"judge: {verdict.exercise}: the judge failed: {verdict.outcome.cause}",
              file=sys.stderr)  # fmt: skip
    # One failure fails the run; a run with nothing assessed never counts as passed.
    codes = {BROKEN} if broken else {EXIT[v.status] for v in verdicts}
    return next((c for c in (BROKEN, FAILED, NOT_ASSESSED) if c in codes), PASSED)


if __name__ == "__main__":
    sys.exit(main())
