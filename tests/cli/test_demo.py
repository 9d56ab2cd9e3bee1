"""The demo at a small size: the table, and a page that is whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilelab.cli import main
from tilelab.target import TARGETS

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What the demo printed, and its page."""
    from contextlib import redirect_stdout
    from io import StringIO

    page = tmp_path_factory.mktemp("demo") / "demo.html"
    said = StringIO()
    with redirect_stdout(said):
        assert main(["demo", "--size", "128", "--output", str(page)]) == 0
    return said.getvalue(), Path(page).read_text("utf-8")


def row(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(name))
    return re.split(r"\s{2,}", line.strip())[1:]


def test_table_tells_both_machines_apart(outcome: tuple[str, str]) -> None:
    text, _ = outcome
    assert row(text, " ") == sorted(TARGETS, reverse=True) or TARGETS.keys() <= set(text.split())
    tma, none = map(int, row(text, "TMA loads"))
    assert tma > 0 and none == 0
    assert row(text, "mbarriers") == ["6", "0"]
    assert [int(n) > 0 for n in row(text, "wgmma")] == [True, False]
    assert [int(n) > 0 for n in row(text, "mma.sync")] == [False, True]
    assert all(cell.startswith("98,304 B") for cell in row(text, "dynamic shared memory"))
    assert row(text, "bytes spilled") == ["0", "0"]
    assert all(int(n) <= 99 for n in row(text, "CUDA lines"))
    assert all(float(n) < 1e-3 for n in row(text, "error against torch"))
    assert "every result agrees with torch" in text


def test_page_needs_nothing_else(outcome: tuple[str, str]) -> None:
    _, page = outcome
    rest = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r'https?://|<link|src="|@import', rest)
    assert page.count("<svg ") == 6 and "prefers-color-scheme:dark" in page


def test_ids_are_unique_and_every_link_has_its_end(outcome: tuple[str, str]) -> None:
    _, page = outcome
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    known = set(ids)
    for targets in re.findall(r'data-to="([^"]+)"', page):
        assert set(targets.split()) <= known
    for target in re.findall(r'href="#([^"]+)"', page) + re.findall(r"url\(#([^)]+)\)", page):
        assert target in known
    for names in re.findall(r'aria-labelledby="([^"]+)"', page):
        assert set(names.split()) <= known


def test_linked_lines_can_be_reached_by_keyboard(outcome: tuple[str, str]) -> None:
    _, page = outcome
    linked = re.findall(r"<li [^>]*data-to=[^>]*>", page)
    assert len(linked) > 60
    assert all('tabindex="0"' in line for line in linked)
