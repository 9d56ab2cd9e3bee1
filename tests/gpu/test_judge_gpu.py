"""The judge's timing on a GPU: verdicts that stay what they are, targets that solutions reach."""

from __future__ import annotations

import linecache
import os
from typing import Any

import pytest

from judge.bench import measure
from judge.exercise import Exercise, load_exercise
from judge.grading import speed_points
from judge.running import load
from tilelab import artifact, shim

pytestmark = pytest.mark.gpu
TIMES = 50 if os.environ.get("TILELAB_FULL") == "1" else 4


def _kernel(exercise: Exercise) -> Any:
    """The shipped solution at the size that is timed, by way of an artefact."""
    text, name = exercise.solution.read_text("utf-8"), f"{exercise.id}_solution.py"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"__name__": "solution"}
    task = exercise.kernel_task
    shim.install()
    try:
        exec(compile(text, name, "exec"), scope)
        made = scope[task.entry].compile(**task.performance.sizes)
    finally:
        shim.uninstall()
    return load(task, artifact.save(made, "hopper"), task.performance.sizes)


@pytest.mark.parametrize("name", ["03", "05", "10"])
def test_a_kernel_judged_again_keeps_its_verdict(name: str) -> None:
    """Full points for the shipped solution, each time but one at most."""
    exercise = load_exercise(name)
    task, kernel = exercise.kernel_task, _kernel(exercise)
    found = [measure(task, kernel, 10_000 * number) for number in range(TIMES)]
    plan = task.performance
    points = [speed_points(one["ratio"], plan.floor, plan.target) for one in found]
    ratios = sorted(round(one["ratio"], 3) for one in found)
    assert sum(p < 15 for p in points) <= 1, ratios
    assert all("code" not in one for one in found)
