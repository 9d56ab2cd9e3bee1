"""The shipped notebooks as GitHub shows them: pictures stored, small, and of no machine."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
from nbformat import NotebookNode

from tests.notebook.remake import KEPT, kept
from tilelab.views.palette import PAINTS

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def outputs(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """(source of the cell, output) of every output."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [("".join(c["source"]), o) for c in cells for o in c.get("outputs", [])]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_pictures_are_stored(path: Path) -> None:
    pictures = [
        "".join(o["data"]["image/svg+xml"])
        for _, o in outputs(path)
        if "image/svg+xml" in o.get("data", {})
    ]
    assert len(pictures) >= 3
    for picture in pictures:
        assert len(picture.encode()) <= 300_000
        ElementTree.fromstring(picture)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_errors_are_the_deliberate_ones_and_no_path_is_named(path: Path) -> None:
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        failed = any(o["output_type"] == "error" for o in cell.get("outputs", []))
        assert failed == ("raises-exception" in cell["metadata"].get("tags", []))
    assert not re.search(r"/(?:home|root|tmp|Users|work)/", path.read_text("utf-8"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_pictures_are_painted_in_the_palette_of_today(path: Path) -> None:
    """What else they show is compared by running them (`make test`)."""
    used: set[str] = set()
    for _, output in outputs(path):
        picture = "".join(output.get("data", {}).get("image/svg+xml", ""))
        for style in re.findall(r"<style>(.*?)</style>", picture):  # of each part of a picture
            for theme, rules in zip(("light", "dark"), style.split("@media"), strict=True):
                for role, colour in re.findall(
                    r"\.[fs]-([a-z-]+)\{(?:fill|stroke):([^}]+)\}", rules
                ):
                    assert colour == getattr(PAINTS[role], theme), (theme, role)
                    used.add(role)
    assert {"ink", "card", "muted"} <= used


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_outputs_hold_text_and_pictures_and_no_state_of_widgets(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    assert "widgets" not in notebook["metadata"] and path.stat().st_size < 400_000
    for _, output in outputs(path):
        assert set(output.get("data", {})) <= set(KEPT)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_cell_runs_again_in_any_order(
    path: Path, shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cells from the first to the last, then each again from the last to the first."""
    monkeypatch.chdir(path.parent)  # as JupyterLab runs a notebook
    cells = [
        ("".join(c["source"]), "raises-exception" in c["metadata"].get("tags", []))
        for c in json.loads(path.read_text("utf-8"))["cells"] if c["cell_type"] == "code"
    ]  # fmt: skip
    for source, fails in [*cells, *reversed(cells)]:
        result = shell.run_cell(source)
        assert bool(result.error_in_exec or result.error_before_exec) == fails, source


def test_a_stored_output_keeps_what_it_should() -> None:
    widget = "application/vnd.jupyter.widget-view+json"
    output = NotebookNode(data={"text/plain": "x", widget: {}}, metadata={"a": 1})
    kept(output)
    assert output == {"data": {"text/plain": "x"}, "metadata": {}}
