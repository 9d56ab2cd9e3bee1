"""`%%exercise ID`: grade a cell with the judge, and show its verdict.

The judge is a program of the repository, run as a process and read as JSON; nothing of it is
imported. Hides where it is found and how its report becomes a table.
"""

from __future__ import annotations

import html
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.commands.arguments import HelpShown, Parser, split_line
from tilelab.errors import TileRuntimeError
from tilelab.notebook.registry import Magic, not_first

CELL, LINE = "exercise", "exercise_points"
LIMIT_SECONDS = 900
_NO_VERDICT = (2, 4)


@dataclass(frozen=True)
class Verdict:
    """The judge's report of a cell; a notebook shows it as a table."""

    report: dict[str, Any]

    @property
    def points(self) -> int:
        """What was won."""
        return int(self.report["score"]["points"])

    @property
    def headline(self) -> str:
        """Exercise, status, points."""
        score = self.report["score"]
        more = "" if score["assessed"] == score["total"] else f" (of {score['total']})"
        return (
            f"{self.report['exercise']}: {self.report['status']}, {score['points']} of "
            f"{score['assessed']} points assessed{more}"
        )

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Case, points, status, what is wrong; hidden cases by category."""
        found: list[tuple[str, str, str, str]] = []
        for case in self.report["cases"]:
            name = case["category"] if case["hidden"] else case["id"]
            points = f"{case['points']}/{case['max_points']}" if case["max_points"] else ""
            detail: dict[str, Any] = case["detail"]
            words = [case["message"], str(detail.get("cause", ""))]
            if "index" in detail:
                words.insert(1, f"at {detail['index']}: expected {detail['expected']}, "
                                f"got {detail['got']}")  # fmt: skip
            text = "; ".join(w for w in words if w) or case["code"]
            found.append((name, points, case["status"], text))
        return found

    def to_text(self) -> str:
        """The report as lines of text: the cases that did not pass, cause and hint."""
        lines = [self.headline]
        bad = Counter(row for row in self.rows() if row[2] != "pass")
        for (name, points, status, text), times in list(bad.items())[:30]:
            lines.append(f"  {name}: {status} {points}  {text}" + f" ({times} times)" * (times > 1))
        for key in ("cause", "hint"):
            lines += [f"  {key}: {self.report[key]}"] if self.report[key] else []
        lines += [f"  flagged: {', '.join(self.report['flags'])}"] if self.report["flags"] else []
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def to_html(self) -> str:
        """The report as a table; untrusted text is escaped."""
        body = "".join(
            f"<tr><td>{_MARKS[status]}</td>"
            + "".join(f"<td style='text-align:left'>{html.escape(x)}</td>" for x in rest)
            + "</tr>"
            for name, points, status, text in self.rows()
            for rest in [(name, points, text)]
        )
        reason = " ".join(html.escape(self.report[key]) for key in ("cause", "hint"))
        return (
            f"<div><b>{html.escape(self.headline)}</b><p>{reason}</p><table><tr><th></th>"
            f"<th>case</th><th>points</th><th></th></tr>{body}</table></div>"
        )


_MARKS = {"pass": "&#10003;", "fail": "&#10007;", "not assessed": "&ndash;"}


def find_judge() -> Path:
    """The judge's script: of the repository that tilelab was installed from, or of the one that
    the notebook lies in. TileRuntimeError (TL1675) where there is none."""
    package = Path(__file__).resolve().parent.parent
    here = Path.cwd().resolve()
    for folder in (package.parent, here, *here.parents):
        script = folder / "judge" / "judge.py"
        if script.is_file():
            return script
    raise TileRuntimeError(
        "the judge is not here: it belongs to tilelab's repository, not to the package",
        code="TL1675", hint="clone the repository, and open the notebook inside it",
    )  # fmt: skip


def grade_text(exercise: str, text: str, options: Sequence[str] = ()) -> Verdict:
    """Grade a program text. TileRuntimeError (TL1675) when the judge gives no verdict: for an
    exercise that does not exist, or a fault of its own."""
    with tempfile.TemporaryDirectory(prefix="tilelab-") as folder:
        path = Path(folder) / "cell.py"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, str(find_judge()), exercise, str(path), "--json", *options]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment,
                                  timeout=LIMIT_SECONDS, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise _no_verdict(f"no verdict in {LIMIT_SECONDS} s") from None
    if done.returncode in _NO_VERDICT:
        raise _no_verdict(done.stderr.strip().removeprefix("judge: "))
    return Verdict(json.loads(done.stdout))


def _no_verdict(problem: str) -> TileRuntimeError:
    return TileRuntimeError(
        f"the judge gave no verdict: {problem}", code="TL1675",
        hint="name an exercise by its number or folder, for example %%exercise 03",
    )  # fmt: skip


class ExerciseMagics:
    """The two magics of one shell. The newest verdict of each exercise is kept."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._verdicts: dict[str, Verdict] = {}

    def cell(self, line: str, cell: str) -> None:
        """Grade the cell as the solution of an exercise; see `%%exercise --help`."""
        parser = Parser(prog="%%exercise", description="Grade the cell with the judge.")
        parser.add_argument("exercise", help="its number or folder, for example 03")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--sim", action="store_true", help="run in the simulator alone")
        where.add_argument("--gpu", action="store_true", help="run on the GPU")
        try:
            options = parser.parse_args(split_line(line))
        except HelpShown as shown:
            sys.stdout.write(shown.text + "\n")
            return
        chosen = [f"--{name}" for name in ("sim", "gpu") if getattr(options, name)]
        verdict = grade_text(options.exercise, cell, chosen)
        self._verdicts[options.exercise] = verdict
        self._verdicts[verdict.report["exercise"]] = verdict
        self._shell.displayhook(verdict)

    def points(self, line: str) -> int:
        """`%exercise_points ID`: what the last `%%exercise ID` won, as a number; 0 before one.

        The value of an nbgrader cell that ends in it is the mark."""
        found = self._verdicts.get(line.strip())
        return 0 if found is None else found.points


def magics(shell: Any) -> dict[Magic, Callable[..., Any]]:
    """`%%exercise` and `%exercise_points` of one shell."""
    made = ExerciseMagics(shell)
    return {
        ("cell", CELL): made.cell, ("line", LINE): made.points,
        ("line", f"%{CELL}"): not_first(CELL),
    }  # fmt: skip
