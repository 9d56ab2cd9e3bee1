"""What a student starts from, made from the marked solution: nothing outside the marks differs.

Hides the marks (nbgrader's own) and the notebook form of an exercise, which is read back here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
_REGION = re.compile(
    rf"^(?P<indent>[ \t]*){re.escape(BEGIN)}\n.*?^[ \t]*{re.escape(END)}\n",
    re.MULTILINE | re.DOTALL,
)
_MAGIC = re.compile(r"^%%?exercise(?:_points)?[ \t]+([\w.]+)", re.MULTILINE)
STUB = 'raise NotImplementedError("write your solution here")'


def starter_text(solution: str) -> str:
    """The solution with every marked region replaced by one line that raises.

    ValueError for a text without marks, or with marks that do not pair up."""
    if not solution.count(BEGIN) == solution.count(END) == len(_REGION.findall(solution)) > 0:
        raise ValueError(f"the solution has no pairs of {BEGIN!r} and {END!r}")
    return _REGION.sub(lambda match: f"{match['indent']}{STUB}\n", solution)


def without_marks(solution: str) -> str:
    """The solution as a program to read: the marks' own lines left out."""
    lines = solution.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() not in (BEGIN, END))


def notebook(exercise: str, task: str, solution: str, points: int) -> dict[str, Any]:
    """An nbgrader assignment with one autograded answer and one cell that grades it.

    The answer cell holds the marked solution: `nbgrader generate_assignment` strips it. The last
    cell is a validate cell worth `points`: its value is the judge's number, which nbgrader takes.
    """
    answer = f"%%exercise {exercise}\n{solution}"
    cells = [
        _markdown(task),
        _code("%load_ext tilelab", "setup", {"locked": True}),
        _code(answer, "answer", {"solution": True}),
        _code(
            f"%exercise_points {exercise}",
            "points",
            {"grade": True, "locked": True, "points": points},
        ),
    ]
    return {
        "cells": cells,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3",
                                    "language": "python"}},
        "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip


def to_json(made: dict[str, Any]) -> str:
    """A notebook as the text of its file."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def exercise_of(made: Mapping[str, Any]) -> str:
    """The exercise that a notebook answers: of its points cell, which students cannot edit, or else
    of a `%%exercise`; empty for none."""
    found = [
        match.group(1) for cell in _code_cells(made) if (match := _MAGIC.search(_source(cell)))
    ]
    return found[-1] if found else ""


def answer_of(made: Mapping[str, Any]) -> str:
    """The text of a notebook's answer cell, without its `%%exercise` line; nothing else of the
    notebook is looked at. ValueError where there is no such cell."""
    for cell in _code_cells(made):
        source = _source(cell)
        if is_cell(cell, "answer") or source.startswith("%%exercise"):
            first, _, rest = source.partition("\n")
            return rest if first.startswith("%%exercise") else source
    raise ValueError("the notebook has no answer cell")


def is_cell(cell: Mapping[str, Any], name: str) -> bool:
    """Whether a cell is nbgrader's cell of that name."""
    return cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == name


def _code_cells(made: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [cell for cell in made["cells"] if cell["cell_type"] == "code"]


def _source(cell: Mapping[str, Any]) -> str:
    """A cell's text, which a file may hold as lines."""
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": "task", "metadata": {}, "source": text}


def _code(text: str, name: str, facts: dict[str, Any]) -> dict[str, Any]:
    nbgrader = {
        "grade": False, "solution": False, "locked": False, "schema_version": 3,
        "grade_id": name, "task": False, **facts,
    }  # fmt: skip
    return {
        "cell_type": "code", "id": name, "metadata": {"nbgrader": nbgrader}, "source": text,
        "outputs": [], "execution_count": None,
    }  # fmt: skip
