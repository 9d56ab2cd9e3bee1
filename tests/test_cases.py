"""Small programs after public bug reports: each must print OK, for every feature set.

They run as a user runs them (`tilelab run CASE`), on the simulator: their tensors are on the CPU.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilelab.target import TARGETS

CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))
RUNNER = """
import contextlib, io, json, sys, traceback
from tilelab.commands.run import run_script
from tilelab.target import TARGETS, open_targets_mean
from tilelab import shim

shim.install()
target = TARGETS[sys.argv[1]]
for path in sys.argv[2:]:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), open_targets_mean(target):
            run_script(path, [])
        verdict = out.getvalue().strip().splitlines()[-1]
    except BaseException:
        verdict = traceback.format_exc()
    print(json.dumps([path, verdict]), flush=True)
"""


@pytest.fixture(scope="session")
def verdicts() -> dict[tuple[str, str], str]:
    """The last line (or the error) of every case and target: one process a target runs all."""
    import json

    found: dict[tuple[str, str], str] = {}
    for target in TARGETS:
        command = [sys.executable, "-c", RUNNER, target, *map(str, CASES)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        for line in done.stdout.splitlines():
            if line.startswith("["):
                path, verdict = json.loads(line)
                found[Path(path).stem, target] = verdict
    return found


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.stem)
def test_case(case: Path, target: str, verdicts: dict[tuple[str, str], str]) -> None:
    verdict = verdicts.get((case.stem, target), "the process ended before this case")
    assert verdict.startswith("OK"), verdict
