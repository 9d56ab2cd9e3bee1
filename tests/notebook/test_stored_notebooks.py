"""The shipped notebooks as GitHub shows them: pictures stored, small, and of no machine."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

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
