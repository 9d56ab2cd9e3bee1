"""No text of a picture is wider than the picture, or cut without its tooltip, whatever is named."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.every import named
from tilelab.views import View
from tilelab.views.measure import ELLIPSIS, cut, fitted, width_of, wrapped
from tilelab.views.svg import Svg

SPACE = "{http://www.w3.org/2000/svg}"
GLYPHS = st.sampled_from("iIlmMWw_0@é矩阵ß… ")
WORDS = st.text(GLYPHS, min_size=1, max_size=160).map(str.strip).filter(bool)


def drawn(view: View) -> Iterator[tuple[str, float, float, float]]:
    """(text, left, right, width of the picture) of every text that is not rotated."""
    root = ElementTree.fromstring(view.to_svg())
    width = float(root.get("width") or 0)
    for text in root.iter(f"{SPACE}text"):
        if text.get("transform"):
            continue
        words = text.text or ""
        size = width_of(
            words, float(text.get("font-size") or 12), mono=bool(text.get("font-family")),
            bold=bool(text.get("font-weight")),
        )  # fmt: skip
        anchor = text.get("text-anchor") or ("middle" if view.kind == "fragment" and re.fullmatch(
            r"[TR]\d+", words) else "start")  # fmt: skip
        x = float(text.get("x") or 0)
        left = {"start": x, "middle": x - size / 2, "end": x - size}[anchor]
        yield words, left, left + size, width


@settings(max_examples=10, deadline=None, derandomize=True)
@given(WORDS)
def test_every_text_lies_inside_its_picture(name: str) -> None:
    for view in named(name):
        for words, left, right, width in drawn(view):
            assert left >= -0.1 and right <= width + 0.1, (view.kind, words)


def test_what_is_cut_has_its_whole_text_as_a_tooltip() -> None:
    name = "accumulator_of_the_first_of_two_products_" * 3
    tips = 0
    for view in named(name):
        root = ElementTree.fromstring(view.to_svg())
        for text in root.iter(f"{SPACE}text"):
            words = text.text or ""
            if words.startswith("accumulator") and words.endswith(ELLIPSIS):
                tip = text.find(f"{SPACE}title")
                if view.kind == "source":  # code ends at a column, as in an editor
                    continue
                assert tip is not None and name in (tip.text or ""), (view.kind, words)
                tips += 1
    assert tips >= 3


def test_a_heading_takes_the_lines_it_needs_and_the_rest_moves_down() -> None:
    def made(words: str) -> tuple[float, list[str]]:
        svg = Svg("x", 300, 100, "t", "d")
        svg.heading(words)
        svg.sub("below")
        svg.rect(0, 60, 10, 10, "load")
        root = ElementTree.fromstring(svg.render())
        return float(root.get("height") or 0), [t.text or "" for t in root.iter(f"{SPACE}text")]

    long = made("a heading of many more words than one line has room for")
    assert made("a few words") == (100, ["a few words", "below"])
    assert len(long[1]) >= 3 and " ".join(long[1][:-1]).endswith("room for")
    assert long[0] == 100 + 19 * (len(long[1]) - 2)


@given(WORDS, st.floats(1, 400), st.booleans(), st.booleans())
def test_fitting_and_wrapping_keep_to_the_room(
    text: str, room: float, mono: bool, bold: bool
) -> None:
    shown, size = fitted(text, room, 12, mono=mono, bold=bold)
    assert width_of(shown, size, mono=mono, bold=bold) <= room + 1e-6
    assert shown == text or shown == "" or shown.endswith(ELLIPSIS)
    assert cut(text, 1e9, 12) == text
    lines = wrapped(text, room, 12, bold=bold)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(width_of(line, 12, bold=bold) <= room or len(line) == 1 for line in lines)


@pytest.mark.parametrize("wide, narrow", [("WWWW", "iiii"), ("矩阵", "ab"), ("MM", "é́é́")])
def test_glyphs_have_widths_of_their_own(wide: str, narrow: str) -> None:
    assert width_of(wide, 12) > width_of(narrow, 12)
