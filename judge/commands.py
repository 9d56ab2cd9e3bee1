"""The judge's other commands: `batch`, `package`, `notebook`. Hides their options.

Each gives an exit code of judge.py's table, and writes through the `say` that it is given.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from judge.batch import Row, Table, bar, find_work, run_batch, run_on_cluster
from judge.exercise import Exercise, UsageError, load_exercise
from judge.package import write_package
from judge.sandbox import missing
from judge.session import Session
from judge.starters import notebook, to_json

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended."""
Say = Callable[[str], None]


def stop_writing() -> None:
    """Nobody reads standard output any more: what is left goes nowhere, without a word."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def sandbox_gaps() -> list[str]:
    """Parts of the sandbox that are not to be had on this machine."""
    with Session("", "nothing") as session:
        session.load()
        return missing(session.sandbox)


def batch(arguments: Sequence[str], say: Say) -> int:
    """Grade a folder of submissions; 0 when every one has a verdict, 1 otherwise."""
    parser = argparse.ArgumentParser(
        prog="judge.py batch",
        description="Grade every .py file under a folder, and write a table. Started again, it "
        "grades what is new or changed. Refused where the sandbox is partial.",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--exercise", help="default: the folder's name")
    parser.add_argument("--csv", type=Path, help="the table (default: FOLDER/grades.csv)")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default: 1)")
    parser.add_argument("--dask", metavar="ADDRESS", help="a dask.distributed scheduler instead")
    parser.add_argument("--sim", action="store_true", help="run kernels in the simulator alone")
    options = parser.parse_intermixed_args(arguments)
    if options.jobs < 1:
        raise UsageError(f"--jobs {options.jobs}: give a number from 1 on")
    gaps = sandbox_gaps()
    if gaps:
        raise UsageError(f"sandbox partial (without {', '.join(gaps)}): batch runs code of people "
                         "who are not here, and refuses")  # fmt: skip
    work = find_work(options.folder, options.exercise or options.folder.resolve().name)
    table = Table(options.csv or options.folder / "grades.csv")
    extra = ["--sim"] if options.sim else []
    known = len(work) - len(table.missing(work))
    if known:
        say(f"{known} of {len(work)} were graded before")

    def progress(done: int, total: int, row: Row) -> None:
        mark = row["points"] or row["code"]
        say(f"{bar(done, total)} {row['submission']}: {row['status']} {mark}")

    try:
        if options.dask:
            rows = run_on_cluster(work, table, extra, options.dask, progress)
        else:
            rows = run_batch(work, table, extra, options.jobs, progress)
    except KeyboardInterrupt:
        left = len(table.missing(work))
        say(f"stopped with {left} of {len(work)} to go: the same command grades these")
        return INTERRUPTED
    failed = sum(row["status"] == "error" for row in rows)
    say(f"{len(rows)} rows in {table.path}" + (f", {failed} without a verdict" if failed else ""))
    return 1 if failed else 0


def package(arguments: Sequence[str], say: Say) -> int:
    """Write a Gradescope autograder."""
    parser = argparse.ArgumentParser(prog="judge.py package", description="Make a Gradescope zip.")
    parser.add_argument("exercise")
    parser.add_argument("path", nargs="?", type=Path, help="default: ID.zip in this folder")
    options = parser.parse_intermixed_args(arguments)
    exercise = load_exercise(options.exercise)
    path = options.path or Path(f"{exercise.id}.zip")
    say(f"{path}: {write_package(exercise, path)} files")
    return 0


def write_notebook(arguments: Sequence[str], say: Say) -> int:
    """Write an nbgrader assignment."""
    parser = argparse.ArgumentParser(
        prog="judge.py notebook",
        description="Make an nbgrader source notebook out of an exercise's marked solution.",
    )
    parser.add_argument("exercise")
    parser.add_argument("path", nargs="?", type=Path, help="default: ID.ipynb in this folder")
    options = parser.parse_intermixed_args(arguments)
    exercise = load_exercise(options.exercise)
    path = options.path or Path(f"{exercise.id}.ipynb")
    path.write_text(to_json(notebook_of(exercise)), encoding="utf-8")
    say(f"{path}: assignment of {exercise.points} points")
    return 0


def notebook_of(exercise: Exercise) -> dict[str, object]:
    """The nbgrader source notebook of an exercise."""
    task = (exercise.folder / "task.md").read_text("utf-8")
    solution = exercise.solution.read_text("utf-8")
    return notebook(exercise.id, task, solution, exercise.points)


COMMANDS: dict[str, Callable[[Sequence[str], Say], int]] = {
    "batch": batch, "package": package, "notebook": write_notebook,
}  # fmt: skip
