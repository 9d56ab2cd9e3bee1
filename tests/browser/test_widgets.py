"""Every widget in JupyterLab, in a real browser: it loads, follows clicks and keys, and says so.

The DOM is read, never pixels, and every reading waits: a page answers when it gets to it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api").expect
SLOW = 20_000  # milliseconds that a busy machine may take to answer


def on(name: str) -> Any:
    return pytest.mark.parametrize("widget", [name], indirect=True)


def write(field: Any, words: str) -> None:
    """Type as a reader does: `fill` alone makes no change event."""
    field.fill("")
    field.press_sequentially(words)
    field.press("Enter")


def says(part: Any, *words: str) -> None:
    for each in words:
        expect(part).to_contain_text(each, timeout=SLOW)


def shows_rows(widget: Any, at_least: int) -> None:
    widget.locator("tbody tr").nth(at_least - 1).wait_for(timeout=SLOW)


@on("layouts")
def test_layouts_arrow_keys_tell_thread_and_register(widget: Any) -> None:
    canvas = widget.locator("canvas").first
    canvas.focus()
    canvas.press("ArrowRight")
    canvas.press("ArrowDown")
    said = widget.locator("[role=status]").first
    says(said, "C_local[1, 1]: thread 4 (warp 0, lane 4), register 1")
    expect(widget.locator("td[data-here]").first).to_have_text("T4:R1", timeout=SLOW)


@on("layouts")
def test_layouts_hover_and_isolate(widget: Any) -> None:
    canvas = widget.locator("canvas").first
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 2, "y": box["height"] - 2})
    says(widget.locator("[role=status]").first, "C_local[127, 127]")
    canvas.press("Enter")
    expect(widget.locator("[data-key=pick-value]")).not_to_have_value("", timeout=SLOW)
    widget.locator("summary", has_text="as a table").first.click()
    rows = widget.locator(".tl-scroll tbody tr")
    expect(rows).to_have_count(128, timeout=SLOW)  # what one thread of 128 holds of 128 x 128
    widget.locator("[data-key=pick-none]").click()


@on("by_hand")
def test_layouts_edit_changes_the_conflicts_at_once(widget: Any) -> None:
    verdict = widget.locator(".tl-verdict").first
    says(verdict, "layout 1", "8-way bank conflict")
    says(widget.locator(".tl-verdict").nth(1), "layout 2", "no bank conflict")
    write(widget.locator("[data-key=expression-0]"), "padded(shape, bits, 8)")
    says(verdict, "no bank conflict")
    write(widget.locator("[data-key=expression-0]"), "swizzled(shape, bits, 48)")
    says(widget.locator("[role=alert]"), "no swizzle of 48 bytes")
    says(verdict, "no bank conflict")


@on("by_hand")
def test_layouts_compare_two(widget: Any) -> None:
    expect(widget.locator(".tl-pane")).to_have_count(2, timeout=SLOW)
    canvas = widget.locator("canvas").first
    canvas.focus()
    canvas.press("ArrowDown")
    says(widget.locator("[role=status]").first, "layout 1[1, 0]", "layout 2[1, 0]")


@on("timeline")
def test_timeline_slider_plans_again(widget: Any) -> None:
    note = widget.locator("[data-note]")
    expect(note).to_have_text("as compiled", timeout=SLOW)
    slider = widget.locator("[data-key=stages]")
    slider.focus()
    slider.press("ArrowLeft")
    says(note, "what num_stages=2")
    says(widget.locator(".tl-headline"), "2 slots")
    widget.locator("summary", has_text="schedule as a table").click()
    shows_rows(widget, 4)


@on("budget")
def test_budget_bytes_are_the_kernels_and_too_many_stages_say_so(widget: Any) -> None:
    total = widget.locator("[data-total]")
    expect(total).to_have_attribute("data-total", "98352", timeout=SLOW)
    slider = widget.locator("[data-key=stages]")
    slider.focus()
    slider.press("End")
    says(widget.locator("[role=alert]"), "TL1801")
    slider = widget.locator("[data-key=stages]")
    slider.focus()
    slider.press("ArrowLeft")
    says(widget.locator("[data-note]"), "what num_stages=7")


@on("passes")
def test_passes_steps_and_links(widget: Any) -> None:
    first = widget.locator("[data-key=pass]").input_value()
    widget.locator("[data-key=next]").click()
    widget.page.wait_for_function(
        "([w, v]) => w.querySelector('[data-key=pass]').value !== v",
        arg=[widget.element_handle(), first],
    )
    widget.locator(".tl-line[data-same]").first.wait_for(timeout=SLOW)
    line = widget.locator("[data-key=python] .tl-line", has_text="T.gemm(").first
    line.hover()
    widget.locator("[data-key=cuda] .tl-line[data-lit]").first.wait_for(timeout=SLOW)
    widget.locator("[data-key=sass-button]").click()
    widget.locator("[data-key=sass] .tl-line", has_text="HGMMA").first.wait_for(timeout=SLOW)
    widget.locator("[data-key=sass] .tl-line", has_text="HGMMA").first.hover()
    says(widget.locator("[data-key=python] .tl-line[data-lit]").first, "T.gemm(")


@on("accesses")
def test_accesses_show_the_worst_first(widget: Any) -> None:
    says(widget.locator(".tl-verdict"), "bank conflict")
    says(widget.locator("svg"), "wavefront 1")
    widget.locator("[data-key=better]").click()
    widget.page.wait_for_function(
        "w => w.querySelector('[data-key=access]').value === '1'", arg=widget.element_handle()
    )
    widget.locator("summary", has_text="all accesses").click()
    shows_rows(widget, 4)


@on("player")
def test_player_steps_and_lights_the_line_at_work(widget: Any) -> None:
    widget.locator("[data-key=next]").click()
    widget.locator("[data-key=next]").click()
    says(widget.locator("[role=status]").first, "cycle")
    slide = widget.locator("[data-key=time]")
    slide.focus()
    slide.press("End")
    slide.press("PageDown")
    widget.locator("[data-lit]").first.wait_for(timeout=SLOW)
    says(widget.locator("caption").first, "of")
    block = widget.locator("[data-key=block]")
    write(block, "3")
    widget.page.wait_for_function(
        "w => w.querySelector('[data-key=block]').value === '3' && w.dataset.painted >= 2",
        arg=widget.element_handle(), timeout=SLOW,
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
    expect(widget.locator("[data-key=play]")).to_have_text("play", timeout=SLOW)


@on("roofline")
def test_roofline_of_another_chip(widget: Any) -> None:
    says(widget.locator("h3"), "Roofline of sm_90a")
    widget.locator("[data-key=target]").select_option("sm_80")
    says(widget.locator("h3"), "sm_80")


@on("compare")
def test_compare_shows_two_steps_and_their_gain(widget: Any) -> None:
    says(widget.locator("[data-key=ladder] svg"), "gain of the step")
    widget.locator("[data-key=picture]").select_option("memory")
    says(widget.locator("[data-key=side-0-0] svg"), "limit of a block")
    before = widget.locator("[data-facts='0']").text_content()
    widget.locator("[data-key=side-0]").focus()
    widget.locator("[data-key=side-0]").press("End")
    widget.page.wait_for_function(
        "([w, t]) => w.querySelector('[data-facts=\"0\"]').textContent !== t",
        arg=[widget.element_handle(), before], timeout=SLOW,
    )  # fmt: skip


def test_theme_follows_the_notebook(page: Any) -> None:
    root = page.locator(".tilelab").first
    expect(root).to_have_attribute("data-theme", "light", timeout=SLOW)
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
    expect(output).to_have_text("same sockets: True", timeout=SLOW)
    assert page.outside == []
