"""Grades nbgrader's submissions without running them: `judge_answers` in place of `Execute`.

nbgrader runs a notebook in one kernel and believes what its cells show, so a cell that takes
`%exercise_points` over gives itself any number. Here the text of the answer cell alone goes to the
judge, as in `judge.py batch`. Hides how a verdict becomes the outputs that nbgrader reads.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from judge.exercise import UsageError, load_exercise
from judge.failure import CODE, JudgeFailed
from judge.judge import grade
from judge.report import to_text
from judge.starters import answer_of, exercise_of, is_cell


def judge_answers(notebook: Any, resources: Any) -> tuple[Any, Any]:
    """A preprocessor of nbgrader's (a notebook node and its resources, both given back): the points
    cell shows the judge's number, the answer cell its report; other cells show nothing.

    UsageError for a notebook of no exercise, JudgeFailed where the judge gives no verdict: nbgrader
    then reports the submission, and writes no mark."""
    exercise = load_exercise(exercise_of(notebook))
    with tempfile.TemporaryDirectory(prefix="judge-") as folder:
        path = Path(folder) / "answer.py"
        try:
            path.write_text(answer_of(notebook), encoding="utf-8")
        except ValueError as error:
            raise UsageError(str(error)) from error
        verdict = grade(exercise, path)
    if verdict.outcome.code == CODE:
        raise JudgeFailed(verdict.outcome.cause)
    shown = {
        "answer": {"output_type": "display_data", "data": {"text/plain": to_text(verdict)}},
        "points": {"output_type": "execute_result", "execution_count": 1,
                   "data": {"text/plain": str(verdict.points[0])}},
    }  # fmt: skip
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            outputs = [{**shown[name], "metadata": {}} for name in shown if is_cell(cell, name)]
            cell["outputs"] = [type(notebook)(output) for output in outputs]
    return notebook, resources
