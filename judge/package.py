"""`judge.py package ID`: a Gradescope autograder as a zip file. Hides Gradescope's file names.

The zip holds the judge, tilelab and the one exercise without its solution, mutants and other right
solutions: the hidden cases are drawn by its checks.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from judge.exercise import ROOT, Exercise

_LEFT_OUT = ("__pycache__", "mutants", "accepted", "solution.py", "starter.py")
_DATE = (2020, 1, 1, 0, 0, 0)

SETUP = """#!/usr/bin/env bash
# Run once, when Gradescope builds the image.
set -euo pipefail
python3 - <<'END'
import sys
if sys.version_info < (3, 11):
    sys.exit("this Python is too old: choose a base image with 3.11 or newer (Ubuntu 24.04 has it)")
END
apt-get update
apt-get install -y python3 python3-pip python3-venv bubblewrap
cd /autograder/source
python3 -m venv venv
venv/bin/pip install -c constraints.txt numpy ml_dtypes torch
"""
RUN = """#!/usr/bin/env bash
# Run for each submission: one .py file is expected.
set -uo pipefail
cd /autograder/source
shopt -s nullglob
files=(/autograder/submission/*.py)
mkdir -p /autograder/results
if [ "${{#files[@]}}" -ne 1 ]; then
    echo '{{"score": 0, "output": "hand in exactly one .py file"}}' \\
        > /autograder/results/results.json
    exit 0
fi
venv/bin/python judge/judge.py {exercise} "${{files[0]}}" --gradescope \\
    > /autograder/results/results.json
case $? in
0 | 1 | 3) ;;
2) echo '{{"score": 0, "output": "this file cannot be graded: is it Python text?"}}' \\
    > /autograder/results/results.json ;;
*) echo '{{"score": 0, "output": "the autograder failed: tell your teacher"}}' \\
    > /autograder/results/results.json ;;
esac
exit 0
"""


def files(exercise: Exercise) -> Iterator[tuple[str, bytes]]:
    """Name in the zip and content of every file, in order."""
    yield "setup.sh", SETUP.encode()
    yield "run_autograder", RUN.format(exercise=exercise.id).encode()
    yield "constraints.txt", (ROOT / "constraints.txt").read_bytes()
    for folder in (ROOT / "judge", ROOT / "tilelab", exercise.folder):
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(ROOT).parts
            if path.is_file() and not any(p in _LEFT_OUT for p in parts):
                yield "/".join(parts), path.read_bytes()


def write_package(exercise: Exercise, path: Path) -> int:
    """Write the zip and give its number of files. The same sources give the same bytes."""
    count = 0
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files(exercise):
            info = zipfile.ZipInfo(name, _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            runs = name in ("setup.sh", "run_autograder")
            info.external_attr = (0o100755 if runs else 0o100644) << 16
            archive.writestr(info, content)
            count += 1
    return count
