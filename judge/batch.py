"""A class's submissions, many at a time: `judge.py batch FOLDER --jobs N`.

Hides the pool, what was graded before (a batch can be stopped and taken up again), and that one
submission that brings its judge down costs nobody else anything.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.exercise import NOTEBOOK, UsageError, load_exercise, read_regular
from judge.report import validate
from judge.starters import exercise_of

JUDGE = Path(__file__).resolve().parent / "judge.py"
COLUMNS: tuple[str, ...] = (
    "submission", "sha256", "exercise", "status", "points", "assessed", "total", "code", "flags",
    "seconds",
)  # fmt: skip
LIMIT_SECONDS = 900
Row = dict[str, str]
Progress = Callable[[int, int, Row], None]


@dataclass(frozen=True)
class Work:
    """One submission: its name in the table, its file, the hash of its text."""

    name: str
    path: str
    digest: str
    exercise: str


def find_work(folder: Path, exercise: str) -> list[Work]:
    """Every .py file under `folder` and every notebook of the exercise, in order; links and
    Jupyter's checkpoints are left out. UsageError for none."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder")
    name = load_exercise(exercise).id
    found: list[Work] = []
    for path in sorted(folder.rglob("*")):
        kind = path.suffix.lower()  # Windows writes .PY, too
        if kind not in (".py", NOTEBOOK) or path.is_symlink() or not path.is_file():
            continue
        if kind == ".py" or (".ipynb_checkpoints" not in path.parts and _answers(path, name)):
            title = _no_formula(path.relative_to(folder).as_posix())
            found.append(Work(title, str(path), _digest(path), name))
    if not found:
        raise UsageError(f"there is no .py file (or notebook of {name}) under {folder}")
    return found


def _digest(path: Path) -> str:
    """The hash of a file's text; of the reason where it cannot be graded."""
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except UsageError as error:
        return hashlib.sha256(str(error).encode()).hexdigest()


def _answers(path: Path, exercise: str) -> bool:
    """Whether a notebook is of this exercise, or says of none that it can be read."""
    try:
        found = exercise_of(json.loads(read_regular(path)))
        return load_exercise(found).id == exercise
    except (UsageError, ValueError, LookupError, TypeError, RecursionError):
        return True


def _no_formula(name: str) -> str:
    """A name that no spreadsheet takes for a formula, as text that any file and terminal takes."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
    return f"./{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


def grade_one(
    path: str, exercise: str, options: Sequence[str], digest: str = ""
) -> dict[str, Any]:  # fmt: skip
    """The report of one submission, graded in a process of its own (on any machine that has the
    file and this judge).

    A copy is graded that nobody else can reach, and only where its text has the given digest: the
    table would else name a text that was not graded."""
    try:
        data = read_regular(Path(path))
    except UsageError as error:
        return {"error": str(error)}
    if digest and hashlib.sha256(data).hexdigest() != digest:
        return {"error": "it was changed after the batch began: run the batch again"}
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        copy = Path(folder) / f"submission{Path(path).suffix}"
        copy.write_bytes(data)
        report = _grade_file(str(copy), exercise, options)
    if "error" in report:
        return {"error": report["error"].replace(str(copy), Path(path).name)}
    return report


def _grade_file(path: str, exercise: str, options: Sequence[str]) -> dict[str, Any]:
    command = [sys.executable, str(JUDGE), exercise, path, "--json", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                              check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"error": f"no verdict in {LIMIT_SECONDS} s"}
    if done.returncode in (2, 4):
        return {"error": (done.stderr.strip() or "the judge failed").splitlines()[-1]}
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"error": "the judge gave no report"}
    problems = validate(report)
    return {"error": problems[0]} if problems else report


def row_of(work: Work, report: dict[str, Any]) -> Row:
    """One line of the table; an error has the status "error" and no points."""
    base = {"submission": work.name, "sha256": work.digest, "exercise": work.exercise}
    if "error" in report:
        return {**base, "status": "error", "points": "", "assessed": "", "total": "",
                "code": _no_formula(report["error"]), "flags": "", "seconds": ""}  # fmt: skip
    score = report["score"]
    return {
        **base, "status": report["status"], "code": report["code"],
        "flags": " ".join(report["flags"]), "seconds": f"{report['seconds']:.1f}",
        **{key: str(score[key]) for key in ("points", "assessed", "total")},
    }  # fmt: skip


class Table:
    """The CSV file: appended to line by line, so that nothing graded is lost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = list(self._read())

    def _read(self) -> Iterator[Row]:
        if not self.path.exists():
            return
        with self.path.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise UsageError(f"{self.path} is no table of this judge")
            # A line that a killed run left half-written has empty columns.
            yield from (row for row in reader if None not in row.values())

    def missing(self, work: Sequence[Work]) -> list[Work]:
        """What is not in the table yet, with the same text; errors are tried again."""
        done = {(r["submission"], r["sha256"], r["exercise"])
                for r in self.rows if r["status"] != "error"}  # fmt: skip
        return [w for w in work if (w.name, w.digest, w.exercise) not in done]

    def begin(self, work: Sequence[Work]) -> None:
        """Rewrite the file with the rows that still hold."""
        current = {(w.name, w.digest, w.exercise) for w in work}
        other = {w.exercise for w in work}
        self.rows = [
            r for r in self.rows
            if r["exercise"] not in other
            or (r["status"] != "error" and (r["submission"], r["sha256"], r["exercise"]) in current)
        ]  # fmt: skip
        temporary = self.path.with_suffix(".tmp")
        with temporary.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows)
        temporary.replace(self.path)

    def add(self, row: Row) -> None:
        """Append one row, and see it to the disk."""
        self.rows.append(row)
        with self.path.open("a", newline="", encoding="utf-8") as stream:
            csv.DictWriter(stream, COLUMNS).writerow(row)
            stream.flush()
            os.fsync(stream.fileno())


def run_batch(
    work: Sequence[Work], table: Table, options: Sequence[str], jobs: int, progress: Progress
) -> list[Row]:
    """Grade what the table lacks, `jobs` at a time on this machine; all rows of `work`.

    Interrupted, it ends after what runs, and begins nothing more."""
    todo = table.missing(work)
    table.begin(work)
    pool = ThreadPoolExecutor(max(jobs, 1))
    try:
        running = {pool.submit(grade_one, w.path, w.exercise, options, w.digest): w for w in todo}
        for done, future in enumerate(as_completed(running), 1):
            row = row_of(running[future], future.result())
            table.add(row)
            progress(done, len(todo), row)
    finally:  # stopped: what has not begun is for the next time
        pool.shutdown(cancel_futures=True)
    return table.rows


def run_on_cluster(
    work: Sequence[Work], table: Table, options: Sequence[str], address: str, progress: Progress
) -> list[Row]:
    """The same over the workers of a dask.distributed scheduler.

    A worker that is lost gives its submissions to another one; a verdict is written once, when it
    arrives. UsageError where dask.distributed is not installed or does not answer.
    """
    try:
        import distributed
    except ImportError:
        raise UsageError("--dask needs dask.distributed: pip install 'tilelab[judge]'") from None
    cluster: Any = distributed
    todo = table.missing(work)
    table.begin(work)
    try:
        client = cluster.Client(address, timeout=20)
    except (OSError, ValueError) as error:
        raise UsageError(f"no scheduler answers at {address}: {error}") from None
    with client:
        futures = {
            client.submit(grade_one, w.path, w.exercise, list(options), w.digest, pure=False,
                          retries=3,
                          key=f"judge-{w.exercise}-{w.digest}-{i}"): w
            for i, w in enumerate(todo)
        }  # fmt: skip
        for done, future in enumerate(cluster.as_completed(list(futures)), 1):
            work_of = futures[future]
            error = future.exception()
            report = {"error": f"{type(error).__name__}"} if error else future.result()
            row = row_of(work_of, report)
            table.add(row)
            progress(done, len(todo), row)
    return table.rows


def bar(done: int, total: int, width: int = 30) -> str:
    """A progress bar of text."""
    filled = width if not total else width * done // total
    return f"[{'#' * filled}{'.' * (width - filled)}] {done}/{total}"
