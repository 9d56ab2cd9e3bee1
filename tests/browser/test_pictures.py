"""Every static picture as a browser lays it out: text inside it, readable on its ground in both
themes, and not made small by a narrow column. The unit tests know only how wide text may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import CHROMIUM
from tests.views.every import named
from tilelab.views.palette import contrast
from tilelab.views.svg import with_prefix
from tilelab.widgets.bare import FLAGS

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium is installed")
NAMES = ("tile", "WwMm" * 30, "accumulator_of_the_first_of_two_products_" * 3)

TEXTS = """() => [...document.querySelectorAll('svg')].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].map((text) => {
    const box = text.getBoundingClientRect();
    return { words: text.textContent, over: Math.max(frame.left - box.left,
      box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom),
      scale: frame.width / svg.viewBox.baseVal.width,
      size: Number(text.getAttribute('font-size')) };
  });
})"""
# What lies under the middle of each text: the first filled shape below it.
GROUNDS = """() => [...document.querySelectorAll('text')].map((text) => {
  text.scrollIntoView({ block: 'center' });
  const box = text.getBoundingClientRect();
  const stack = document.elementsFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
  const below = stack.find((e) => ['rect', 'path'].includes(e.tagName)
    && getComputedStyle(e).fill !== 'none' && !e.closest('[opacity]'));
  return [text.textContent, getComputedStyle(text).fill,
    below ? getComputedStyle(below).fill : 'none'];
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


def shown(browser: Any, name: str, width: int, scheme: str) -> Any:
    """A page with every picture, each in a frame that may scroll."""
    page = browser.new_page(viewport={"width": width, "height": 1000}, color_scheme=scheme)
    pictures = [with_prefix(view.to_svg(), f"p{k}") for k, view in enumerate(named(name))]
    page.set_content("".join(f'<div style="overflow-x:auto">{p}</div>' for p in pictures))
    return page


@pytest.mark.parametrize("name", NAMES, ids=["short", "wide", "long"])
def test_text_lies_inside_its_picture(browser: Any, name: str) -> None:
    page = shown(browser, name, 1400, "light")
    outside = [(t["words"], t["over"]) for t in page.evaluate(TEXTS) if t["over"] > 1]
    page.close()
    assert outside == []


def test_a_narrow_column_scrolls_and_text_stays_readable(browser: Any) -> None:
    page = shown(browser, "tile", 420, "light")
    small = {t["words"] for t in page.evaluate(TEXTS) if t["size"] * t["scale"] < 7.5}
    sideways = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    page.close()
    assert small == set() and sideways <= 0


def channels(colour: str) -> str:
    numbers = [int(float(n)) for n in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    return "#" + "".join(f"{n:02x}" for n in numbers)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_on_what_lies_below_it(browser: Any, scheme: str) -> None:
    page = shown(browser, "tile", 1400, scheme)
    found = page.evaluate(GROUNDS)
    page.close()
    faint = {
        (words, ink, ground) for words, ink, ground in found
        if ground != "none" and contrast(channels(ink), channels(ground)) < 4.5
    }  # fmt: skip
    assert len(found) > 500 and faint == set()
