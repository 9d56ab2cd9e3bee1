"""Runs the shipped notebooks and stores what they show: `python -m tests.notebook.remake`.

Each is run from top to bottom in a fresh kernel with no GPU, and keeps text and pictures only:
a widget's state is large and of no use without its kernel. `make test` runs them again and
compares (`sanitize.cfg` says what may differ).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).parents[2] / "notebooks"
KEPT = ("text/plain", "image/svg+xml")
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TILELAB_LOG_LEVEL": "WARNING"}
"""No GPU, and no line that tells how long a step took."""


def run(notebook: Any, folder: Path) -> Any:
    """The notebook with the outputs of a run; NotebookError of a cell that fails unasked."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", store_widget_state=False,
        record_timing=False, resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    made = client.execute(env={**os.environ, **QUIET})
    for cell in made.cells:
        for output in cell.get("outputs", ()):
            kept(output)
    made.metadata = {k: v for k, v in made.metadata.items() if k == "kernelspec"}
    made.metadata["language_info"] = {"name": "python"}
    return made


def kept(output: Any) -> None:
    """Leave text and pictures in an output, and no trace of where tilelab lies."""
    if "data" in output:
        output.data = {mime: output.data[mime] for mime in KEPT if mime in output.data}
        output.metadata = {}
    if "traceback" in output:
        output.traceback = [line for line in output.traceback if str(FOLDER.parent) not in line]


def main(paths: Sequence[Path]) -> None:
    """Run and rewrite notebooks."""
    for path in paths or sorted(FOLDER.glob("*.ipynb")):
        made = run(nbformat.read(path, as_version=4), path.parent)
        nbformat.write(made, path)
        sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
