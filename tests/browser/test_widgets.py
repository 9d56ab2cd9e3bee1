"""Every widget in JupyterLab, in a real browser: it loads, follows clicks and keys, and says so.

The DOM is read, never pixels.
"""

from __future__ import annotations

import re
from typing import Any

import pytest


def on(name: str) -> Any:
    return pytest.mark.parametrize("widget", [name], indirect=True)


def write(field: Any, words: str) -> None:
    """Type as a reader does: `fill` alone makes no change event."""
    field.fill("")
    field.press_sequentially(words)
    field.press("Enter")


def text(part: Any) -> str:
    return str(part.inner_text())


@on("layouts")
def test_layouts_arrow_keys_tell_thread_and_register(widget: Any) -> None:
    canvas = widget.locator("canvas").first
    canvas.focus()
    canvas.press("ArrowRight")
    canvas.press("ArrowDown")
    said = widget.locator("[role=status]").first
    assert "C_local[1, 1]: thread 4 (warp 0, lane 4), register 1" in text(said)
    assert widget.locator("td[data-here]").first.inner_text() == "T4:R1"


@on("layouts")
def test_layouts_hover_and_isolate(widget: Any) -> None:
    canvas = widget.locator("canvas").first
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 2, "y": box["height"] - 2})
    assert "C_local[127, 127]" in text(widget.locator("[role=status]").first)
    canvas.press("Enter")
    assert widget.locator("[data-key=pick-value]").input_value() != ""
    widget.locator("summary", has_text="as a table").first.click()
    rows = widget.locator(".tl-scroll tbody tr")
    assert rows.count() == 128  # what one thread of 128 holds of 128 x 128
    widget.locator("[data-key=pick-none]").click()


@on("by_hand")
def test_layouts_edit_changes_the_conflicts_at_once(widget: Any) -> None:
    verdict = widget.locator(".tl-verdict")
    assert "8-way bank conflict" in text(verdict)
    write(widget.locator("[data-key=expression-0]"), "padded(shape, bits, 8)")
    widget.locator(".tl-verdict", has_text="no bank conflict").wait_for(timeout=5000)
    write(widget.locator("[data-key=expression-0]"), "swizzled(shape, bits, 48)")
    widget.locator("[role=alert]", has_text="no swizzle of 48 bytes").wait_for(timeout=5000)
    assert "no bank conflict" in text(verdict)


@on("by_hand")
def test_layouts_compare_two(widget: Any) -> None:
    assert widget.locator(".tl-pane").count() == 2
    canvas = widget.locator("canvas").first
    canvas.focus()
    canvas.press("ArrowDown")
    said = text(widget.locator("[role=status]").first)
    assert "layout 1[1, 0]" in said and "layout 2[1, 0]" in said


@on("timeline")
def test_timeline_slider_plans_again(widget: Any) -> None:
    note = widget.locator("[data-note]")
    assert text(note) == "as compiled"
    slider = widget.locator("[data-key=stages]")
    slider.focus()
    slider.press("ArrowLeft")
    widget.locator("[data-note]", has_text="what num_stages=2").wait_for(timeout=10_000)
    assert "2 slots" in text(widget.locator(".tl-headline"))
    widget.locator("summary", has_text="schedule as a table").click()
    assert widget.locator("tbody tr").count() > 3


@on("budget")
def test_budget_bytes_are_the_kernels_and_too_many_stages_say_so(widget: Any) -> None:
    assert widget.locator("[data-total]").get_attribute("data-total") == "98352"
    slider = widget.locator("[data-key=stages]")
    slider.focus()
    slider.press("End")
    widget.locator("[role=alert]", has_text="TL1801").wait_for(timeout=10_000)
    slider = widget.locator("[data-key=stages]")
    slider.focus()
    slider.press("ArrowLeft")
    widget.locator("[data-note]", has_text="what num_stages=7").wait_for(timeout=10_000)


@on("passes")
def test_passes_steps_and_links(widget: Any) -> None:
    first = widget.locator("[data-key=pass]").input_value()
    widget.locator("[data-key=next]").click()
    widget.page.wait_for_function(
        "([w, v]) => w.querySelector('[data-key=pass]').value !== v",
        arg=[widget.element_handle(), first],
    )
    assert widget.locator(".tl-line[data-same]").count() > 0
    line = widget.locator("[data-key=python] .tl-line", has_text="T.gemm(").first
    line.hover()
    assert widget.locator("[data-key=cuda] .tl-line[data-lit]").count() > 0
    widget.locator("[data-key=sass-button]").click()
    widget.locator("[data-key=sass] .tl-line", has_text="HGMMA").first.wait_for(timeout=20_000)
    widget.locator("[data-key=sass] .tl-line", has_text="HGMMA").first.hover()
    assert "T.gemm(" in text(widget.locator("[data-key=python] .tl-line[data-lit]").first)


@on("accesses")
def test_accesses_show_the_worst_first(widget: Any) -> None:
    assert "bank conflict" in text(widget.locator(".tl-verdict"))
    assert "wavefront 1" in widget.locator("svg").text_content()
    widget.locator("[data-key=better]").click()
    widget.page.wait_for_function(
        "w => w.querySelector('[data-key=access]').value === '1'", arg=widget.element_handle()
    )
    widget.locator("summary", has_text="all accesses").click()
    assert widget.locator("tbody tr").count() >= 4


@on("player")
def test_player_steps_and_lights_the_line_at_work(widget: Any) -> None:
    widget.locator("[data-key=next]").click()
    widget.locator("[data-key=next]").click()
    assert "cycle" in text(widget.locator("[role=status]").first)
    slide = widget.locator("[data-key=time]")
    slide.focus()
    slide.press("End")
    slide.press("PageDown")
    assert widget.locator("[data-lit]").count() >= 1
    assert "of" in text(widget.locator("caption").first)
    block = widget.locator("[data-key=block]")
    write(block, "3")
    widget.page.wait_for_function(
        "w => w.querySelector('[data-key=block]').value === '3' && w.dataset.painted >= 2",
        arg=widget.element_handle(), timeout=20_000,
    )  # fmt: skip


@on("player")
def test_player_plays_to_the_end_by_itself(widget: Any) -> None:
    slide = widget.locator("[data-key=time]")
    slide.focus()
    slide.press("Home")
    before = slide.input_value()
    widget.locator("[data-key=play]").click()
    widget.page.wait_for_function(
        "([w, v]) => w.querySelector('[data-key=time]').value !== v",
        arg=[widget.element_handle(), before],
    )
    widget.locator("[data-key=play]").click()
    assert text(widget.locator("[data-key=play]")) == "play"


@on("roofline")
def test_roofline_of_another_chip(widget: Any) -> None:
    assert "Roofline of sm_90a" in text(widget.locator("h3"))
    widget.locator("[data-key=target]").select_option("sm_80")
    widget.locator("h3", has_text="sm_80").wait_for(timeout=10_000)


@on("compare")
def test_compare_shows_two_steps_and_their_gain(widget: Any) -> None:
    assert "gain of the step" in widget.locator("[data-key=ladder] svg").text_content()
    widget.locator("[data-key=picture]").select_option("memory")
    widget.locator("[data-key=side-0-0] svg", has_text="limit of a block").wait_for(timeout=20_000)
    before = text(widget.locator("[data-facts='0']"))
    widget.locator("[data-key=side-0]").focus()
    widget.locator("[data-key=side-0]").press("End")
    widget.page.wait_for_function(
        "([w, t]) => w.querySelector('[data-facts=\"0\"]').textContent !== t",
        arg=[widget.element_handle(), before], timeout=20_000,
    )  # fmt: skip


def test_theme_follows_the_notebook(page: Any) -> None:
    root = page.locator(".tilelab").first
    assert root.get_attribute("data-theme") == "light"
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_function("document.querySelector('.tilelab').dataset.theme === 'dark'")
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    page.wait_for_function("document.querySelector('.tilelab').dataset.theme === 'light'")


@pytest.mark.parametrize("light", ["true", "false"])
def test_axe_finds_nothing_serious(page: Any, light: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("v => { document.body.dataset.jpThemeLight = v }", light)
    found = Axe().run(page, context=".tilelab")
    serious = [v for v in found.response["violations"] if v["impact"] in ("serious", "critical")]
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    assert not serious, [(v["id"], v["nodes"][0]["html"][:200]) for v in serious]


def test_every_control_is_reachable_and_named(page: Any) -> None:
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('.tilelab :is(input,select,button,canvas)')]
        .filter((e) => e.tabIndex < 0 || !(e.labels?.length || e.textContent.trim()
          || e.getAttribute('aria-label'))).map((e) => e.outerHTML.slice(0, 100))"""
    )
    assert unnamed == []


def test_no_socket_is_opened_and_nothing_is_loaded_from_elsewhere(page: Any) -> None:
    output = page.locator(".jp-OutputArea-output", has_text=re.compile("same sockets"))
    assert text(output).strip() == "same sockets: True"
    assert page.outside == []
