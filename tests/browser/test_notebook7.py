"""Jupyter Notebook 7 in a real browser: the same widgets under its own front end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import CELLS, CHROMIUM, offline_page, run_all, served
from tilelab.widgets.bare import FLAGS

pytest.importorskip("notebook")
expect = pytest.importorskip("playwright.sync_api").expect
SLOW = 20_000  # milliseconds that a busy machine may take to answer


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with (
        served(tmp_path_factory.mktemp("notebook"), "notebook") as (address, token),
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = offline_page(browser)
        page.goto(f"{address}/notebooks/widgets.ipynb?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        kernel = page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        expect(kernel).to_have_count(1, timeout=60_000)
        run_all(page)
        yield page
        browser.close()


def widget(page: Any, name: str) -> Any:
    return page.locator(".tilelab").nth(list(CELLS).index(name))


def test_widgets_answer_mouse_and_keyboard(notebook: Any) -> None:
    layouts = widget(notebook, "layouts")
    canvas = layouts.locator("canvas").first
    canvas.focus()
    canvas.press("ArrowRight")
    canvas.press("ArrowDown")
    said = layouts.locator("[role=status]").first
    expect(said).to_contain_text("C_local[1, 1]: thread 4", timeout=SLOW)
    slider = widget(notebook, "timeline").locator("[data-key=stages]")
    slider.focus()
    slider.press("ArrowLeft")
    headline = widget(notebook, "timeline").locator(".tl-headline")
    expect(headline).to_contain_text("2 slots", timeout=SLOW)
    slider = widget(notebook, "budget").locator("[data-key=stages]")
    slider.focus()
    slider.press("End")
    expect(widget(notebook, "budget").locator("[role=alert]")).to_contain_text(
        "TL1801", timeout=SLOW
    )
    passes = widget(notebook, "passes")
    passes.locator("[data-key=sass-button]").click()
    line = passes.locator("[data-key=sass] .tl-line", has_text="HGMMA").first
    expect(line).to_be_visible(timeout=SLOW)
    widget(notebook, "player").locator("[data-key=next]").click()
    said = widget(notebook, "player").locator("[role=status]").first
    expect(said).to_contain_text("cycle", timeout=SLOW)


def test_the_theme_is_followed_and_nothing_is_loaded_from_elsewhere(notebook: Any) -> None:
    root = notebook.locator(".tilelab").first
    expect(root).to_have_attribute("data-theme", "light", timeout=SLOW)
    notebook.evaluate("document.body.dataset.jpThemeLight = 'false'")
    expect(root).to_have_attribute("data-theme", "dark", timeout=SLOW)
    output = notebook.locator(".jp-OutputArea-output", has_text="same sockets")
    expect(output).to_have_text("same sockets: True", timeout=SLOW)
    assert notebook.outside == []
