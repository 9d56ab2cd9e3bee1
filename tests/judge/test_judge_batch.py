"""Many submissions, other programs, notebooks: batch, cluster, package, formats, assignments."""

from __future__ import annotations

import csv
import json
import os
import re
import time
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from judge import batch as batches
from judge.batch import Table, find_work, run_batch, run_on_cluster
from judge.commands import notebook_of, sandbox_gaps
from judge.exercise import ROOT, UsageError, exercise_ids, load_exercise
from judge.formats import to_gradescope, to_junit
from judge.judge import grade, main
from judge.notebooks import judge_answers
from judge.package import write_package
from judge.report import to_json, to_text
from judge.starters import STUB, starter_text, without_marks

EXERCISE = load_exercise("02")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class: two right solutions, a wrong one, and one that is no text."""
    right = EXERCISE.solution.read_text("utf-8")
    made = tmp_path / "class"
    for name, text in (("ada/a.py", right), ("bob/b.py", right), ("eve/c.py", "launch = None\n")):
        path = made / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (made / "bin.py").write_bytes(b"\xff\xfe")
    return made


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_batch_is_resumed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything is graded once; a changed file and an error are taken up again."""
    if sandbox_gaps():
        assert main(["batch", str(folder), "--exercise", "02"]) == 2
        pytest.skip("this machine's sandbox is partial, and batch refuses")
    table = tmp_path / "grades.csv"
    arguments = ["batch", str(folder), "--exercise", "02", "--csv", str(table), "--jobs", "2"]
    assert main(arguments) == 1  # one file is no text
    shown = capsys.readouterr().out
    assert "4/4" in shown and "1 without a verdict" in shown
    found = {row["submission"]: row["points"] for row in _rows(table)}
    assert found == {"ada/a.py": "64", "bob/b.py": "64", "eve/c.py": "0", "bin.py": ""}
    (folder / "bin.py").unlink()
    (folder / "eve/c.py").write_text(EXERCISE.solution.read_text("utf-8"))
    assert main(arguments) == 0
    assert "2 of 3 were graded before" in capsys.readouterr().out
    rows = _rows(table)
    assert sorted(r["submission"] for r in rows) == ["ada/a.py", "bob/b.py", "eve/c.py"]
    assert all(r["points"] == "64" for r in rows)


def test_batch_is_stopped_and_goes_on(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C keeps what was graded, begins nothing more, and says how to go on."""
    report, asked = to_json(grade(EXERCISE, EXERCISE.solution, seed=1)), list[str]()

    def stopped(path: str, *_: Any) -> dict[str, Any]:
        asked.append(path)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return report

    monkeypatch.setattr("judge.commands.sandbox_gaps", list)
    monkeypatch.setattr(batches, "grade_one", stopped)
    arguments = ["batch", str(folder), "--exercise", "02", "--csv", str(tmp_path / "grades.csv")]
    assert main(arguments) == 130
    assert "stopped with 3 of 4 to go" in capsys.readouterr().out
    assert len(_rows(tmp_path / "grades.csv")) == 1
    assert main(arguments) == 0
    assert len({row["submission"] for row in _rows(tmp_path / "grades.csv")}) == 4


def test_names_of_a_class_are_kept(folder: Path) -> None:
    """Spaces, other alphabets, quotes; what a spreadsheet takes for a formula gets a folder."""
    names = ["ada/ö 李.py", "=cmd.py", "-x.py", 'a, "b".py', "UPPER.PY"]
    for name in names:
        (folder / name).write_text("launch = None\n")
    found = {work.name for work in find_work(folder, "02")}
    assert {"ada/ö 李.py", "./=cmd.py", "./-x.py", 'a, "b".py', "UPPER.PY"} <= found


def test_names_that_no_terminal_takes(folder: Path, tmp_path: Path) -> None:
    """Escapes, halves of characters and bytes that are no text: a row each, on one line."""
    for name in (b"a\x1b[2J.py", b"\xff\xfe.py", b"two\nlines.py", b"\t=1.py"):
        with open(os.fsencode(folder) + b"/" + name, "wb") as stream:
            stream.write(b"\xff")
    work = find_work(folder, "02")
    assert all(w.name.isprintable() and w.name[0] not in "=+-@" for w in work)
    table = Table(tmp_path / "grades.csv")
    odd = [w for w in work if "/" not in w.name]
    rows = run_batch(odd, table, [], 1, lambda *_: None)
    assert len(odd) == 5 and [r["status"] for r in rows] == ["error"] * 5
    assert {r["submission"] for r in _rows(table.path)} == {w.name for w in odd}


def _answered(exercise: Any, answer: str) -> Any:
    """A student's notebook: the assignment with this answer cell."""
    made: Any = json.loads(json.dumps(notebook_of(exercise)))
    (cell,) = [c for c in made["cells"] if c["id"] == "answer"]
    cell["source"] = answer
    return made


HEAD = f"%%exercise {EXERCISE.id}\n"
TAKES_OVER = "get_ipython().register_magic_function(lambda line: 64, 'line', 'exercise_points')\n"


@pytest.mark.parametrize(
    ("answer", "points"),
    [(HEAD + EXERCISE.solution.read_text("utf-8"), "64"), (HEAD + "launch = None\n", "0"),
     (TAKES_OVER, "0")],
    ids=["right", "wrong", "takes-over"],
)  # fmt: skip
def test_nbgrader_gets_the_judges_number(answer: str, points: str) -> None:
    """Graded by the answer cell's text; no other cell runs, and what they showed is gone."""
    made = _answered(EXERCISE, answer)
    for cell in made["cells"][1:]:
        cell["outputs"] = [{"output_type": "execute_result", "data": {"text/plain": "64"}}]
    judged, resources = judge_answers(made, {"of": "nbgrader"})
    shown = {c["id"]: c["outputs"] for c in judged["cells"][1:]}
    assert resources == {"of": "nbgrader"} and shown["setup"] == []
    assert shown["points"][0]["data"]["text/plain"] == points
    assert EXERCISE.id in shown["answer"][0]["data"]["text/plain"]


def test_notebooks_of_a_class_are_graded(tmp_path: Path) -> None:
    """As nbgrader collects them: those of the exercise, by their answer cells."""
    right = HEAD + EXERCISE.solution.read_text("utf-8")
    other = load_exercise("01")
    for name, text in {
        "ada/ps1/02.ipynb": json.dumps(_answered(EXERCISE, right)),
        "ada/ps1/01.ipynb": json.dumps(_answered(other, HEAD)),
        "ada/ps1/.ipynb_checkpoints/02.ipynb": json.dumps(_answered(EXERCISE, HEAD)),
        "bob/ps1/02.ipynb": json.dumps(_answered(EXERCISE, TAKES_OVER)),
        "eve/ps1/02.ipynb": '{"cells": [{"cell_type": "code"}]}',
        "gus/ps1/02.ipynb": "[" * 100_000,
    }.items():
        path = tmp_path / "class" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    work = find_work(tmp_path / "class", "02")
    rows = run_batch(work, Table(tmp_path / "grades.csv"), [], 2, lambda *_: None)
    found = {r["submission"].partition("/")[0]: (r["status"], r["points"]) for r in rows}
    assert found == {
        "ada": ("pass", "64"), "bob": ("fail", "0"), "eve": ("error", ""), "gus": ("error", ""),
    }  # fmt: skip


def test_a_partial_sandbox_grades_no_batch(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("judge.commands.sandbox_gaps", lambda: ["files"])
    assert main(["batch", str(folder), "--exercise", "02"]) == 2
    assert "sandbox partial (without files)" in capsys.readouterr().err


def test_a_half_written_line_is_graded_again(folder: Path, tmp_path: Path) -> None:
    """What a killed batch left behind."""
    work = find_work(folder, "02")[:1]
    path = tmp_path / "grades.csv"
    path.write_text(",".join(batches.COLUMNS) + "\nada/a.py,12")
    assert Table(path).missing(work) == work


def test_a_file_that_changes_meanwhile_is_not_graded_under_its_old_hash(folder: Path) -> None:
    work = next(w for w in find_work(folder, "02") if w.name == "eve/c.py")
    Path(work.path).write_text(EXERCISE.solution.read_text("utf-8"))
    report = batches.grade_one(work.path, work.exercise, [], work.digest)
    assert report == {"error": "it was changed after the batch began: run the batch again"}
    Path(work.path).unlink()
    Path(work.path).symlink_to(EXERCISE.solution)
    assert "is no regular file" in batches.grade_one(work.path, work.exercise, [])["error"]


def test_wrong_folders_are_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(UsageError):
            find_work(folder, "02")
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError):
        Table(other)


def _slow(path: str, exercise: str, options: Any, digest: str) -> dict[str, Any]:
    """Stands for a grading: takes a moment, and leaves a mark for each run."""
    time.sleep(0.4)
    with open(path + ".runs", "a") as stream:
        stream.write("x")
    return json.loads(Path(path).with_suffix(".json").read_text())


def test_a_lost_worker_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Separate processes, one killed midway: every submission has one row."""
    distributed = pytest.importorskip("distributed")
    report = to_json(grade(EXERCISE, EXERCISE.solution, seed=1))
    for number in range(16):
        (tmp_path / f"s{number:02}.py").write_text(f"# {number}\n")
        (tmp_path / f"s{number:02}.json").write_text(json.dumps(report))
    monkeypatch.setattr(batches, "grade_one", _slow)
    table = Table(tmp_path / "grades.csv")
    killed: list[int] = []
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:

        def progress(done: int, total: int, row: dict[str, str]) -> None:
            if done == 3:
                worker = next(iter(cluster.workers.values()))
                killed.append(worker.pid)
                worker.process.process._process.kill()

        rows = run_on_cluster(find_work(tmp_path, "02"), table, [], cluster.scheduler_address,
                              progress)  # fmt: skip
    assert killed
    names = [r["submission"] for r in rows]
    assert sorted(names) == [f"s{number:02}.py" for number in range(16)]
    assert all(r["points"] == "64" for r in rows)
    assert _rows(table.path) == rows


def test_run_batch_takes_what_is_missing(folder: Path, tmp_path: Path) -> None:
    table, seen = Table(tmp_path / "grades.csv"), []
    work = find_work(folder, "02")
    run_batch(work[:1], table, [], 1, lambda done, total, row: seen.append((done, total)))
    assert seen == [(1, 1)]
    assert not Table(table.path).missing(work[:1])


def test_package_grades_without_solutions(tmp_path: Path) -> None:
    """The zip has what Gradescope runs, no answer, and the same bytes each time."""
    path, again = tmp_path / "a.zip", tmp_path / "b.zip"
    assert write_package(EXERCISE, path) == write_package(EXERCISE, again)
    assert path.read_bytes() == again.read_bytes()
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert {"setup.sh", "run_autograder", "judge/judge.py", "tilelab/__init__.py"} <= set(names)
        assert "exercises/02_launch_shape/checks.py" in names
        assert not [n for n in names if re.search(r"solution|starter\.py|mutants|accepted", n)
                    and n.startswith("exercises/")]  # fmt: skip
        assert archive.getinfo("run_autograder").external_attr >> 16 & 0o111
        script = archive.read("run_autograder").decode()
        assert "0 | 1 | 3)" in script and "cannot be graded" in script


def test_formats_say_what_the_report_says() -> None:
    verdict = grade(EXERCISE, EXERCISE.mutants()[0][0], seed=1)
    report = to_json(verdict)
    suite = ElementTree.fromstring(to_junit([report]))[0]
    failed = [c for c in report["cases"] if c["status"] == "fail"]
    assert int(suite.attrib["failures"]) == len(failed) == len(suite.findall("testcase/failure"))
    made = to_gradescope(report, to_text(verdict))
    assert made["score"] == report["score"]["points"] == sum(t["score"] for t in made["tests"])
    assert len(made["tests"]) == len(report["cases"])


@pytest.mark.parametrize("name", exercise_ids())
def test_assignments_come_from_the_marked_solution(name: str) -> None:
    """The answer cell is the solution; outside the marks nothing differs from the starter."""
    exercise = load_exercise(name)
    solution = exercise.solution.read_text("utf-8")
    made = notebook_of(exercise)
    cells = {cell["id"]: cell for cell in made["cells"]}  # type: ignore[attr-defined]
    assert cells["answer"]["source"] == f"%%exercise {exercise.id}\n{solution}"
    assert cells["points"]["metadata"]["nbgrader"]["points"] == exercise.points
    kept = [line for line in starter_text(solution).splitlines() if STUB not in line]
    outside = without_marks(solution).splitlines()
    assert all(line in outside for line in kept)
    assert STUB in starter_text(solution)


def test_marks_that_do_not_pair_are_refused() -> None:
    for text in ("x = 1\n", "### BEGIN SOLUTION\nx = 1\n"):
        with pytest.raises(ValueError, match="pairs"):
            starter_text(text)


def test_hints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["03", "--hint", "2"]) == 0
    assert "--hint 3 shows the next" in capsys.readouterr().out
    assert main(["03", "--hint", "9"]) == 2


def test_the_magic_grades_a_cell() -> None:
    """`%%exercise` shows the judge's report, and its number is the judge's."""
    from tilelab.errors import TileError
    from tilelab.notebook.exercise import ExerciseMagics, grade_text

    shown: list[Any] = []

    class Shell:
        displayhook = staticmethod(shown.append)

    magics = ExerciseMagics(Shell())
    assert magics.points("02") == 0
    magics.cell("02", EXERCISE.solution.read_text("utf-8"))
    assert magics.points("02") == magics.points(EXERCISE.id) == 64
    assert "64 of 64 points" in shown[0].to_text()
    wrong = grade_text("02", EXERCISE.mutants()[0][0].read_text("utf-8"))
    assert "<table>" in wrong.to_html() and wrong.report["code"] in ("AREA_DIVIDED",)
    with pytest.raises(TileError, match="TL1675"):
        grade_text("99", "x = 1")
    assert (ROOT / "judge" / "judge.py").is_file()
