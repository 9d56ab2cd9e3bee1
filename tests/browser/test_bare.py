"""Each widget's module in a page that offers anywidget's protocol and nothing else.

This is what can be checked of VS Code, Colab and nbconvert's HTML without them: modules load from
a blob under a strict content security policy, import nothing, keep nothing in storage, use the
promised members of the model only, and say so when no kernel answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.browser.conftest import CHROMIUM
from tests.kernels import gemm
from tilelab.layout import atoms, row_major, swizzled
from tilelab.widgets import compare_panel, layout_panel
from tilelab.widgets.bare import Bare, bare_page
from tilelab.widgets.host import script
from tilelab.widgets.panel import Panel
from tilelab.widgets.passes import PassPanel
from tilelab.widgets.plans import BudgetPanel, TimelinePanel
from tilelab.widgets.runs import AccessPanel, PlayerPanel, RooflinePanel

torch = pytest.importorskip("torch")
expect = pytest.importorskip("playwright.sync_api").expect
SLOW = 20_000  # milliseconds that a busy machine may take to answer
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium is installed")


@T.prim_func
def transpose(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((64, 64), "float32")
        T.annotate_layout({tile: row_major((64, 64), 32)})
        for i, j in T.Parallel(64, 64):
            tile[i, j] = A[i, j]
        for i, j in T.Parallel(64, 64):
            B[i, j] = tile[j, i]


def product() -> tuple[Any, tuple[Any, Any]]:
    kernel = tilelab.compile(gemm(256, 256, 512), target="sm_90a", out_idx=-1)
    return kernel, (torch.ones(256, 512).half(), torch.ones(512, 256).half())


@T.prim_func
def increase(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
    with T.Kernel(4, threads=128) as bx:
        for i in T.Parallel(256):
            B[bx * 256 + i] = A[bx * 256 + i] + 1.0


def unremarkable() -> PassPanel:
    """Of a kernel whose passes have no notes."""
    return PassPanel(tilelab.compile(increase, target="sm_90a", out_idx=-1))


def transposed() -> AccessPanel:
    kernel = tilelab.compile(transpose, target="sm_90a", out_idx=-1)
    return AccessPanel(kernel.simulate(torch.ones(64, 64)))


PANELS: dict[str, Callable[[], Panel]] = {
    "layouts": lambda: layout_panel(product()[0]),
    "timeline": lambda: TimelinePanel(product()[0]),
    "budget": lambda: BudgetPanel(product()[0]),
    "passes": unremarkable,
    "accesses": transposed,
    "player": lambda: PlayerPanel(*product()),
    "roofline": lambda: RooflinePanel(*product()),
    "compare": lambda: compare_panel(product()[0]),
}
# Texts that a script made of what is no text.
STRAY = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) found.push(texts.currentNode.data);
  return found.filter((text) => /^(null|undefined|NaN|\\[object .*)$/.test(text));
}"""
# A control of each widget that asks Python for something, and what to do with it.
ASKS = {
    "layouts": ("buffer-0", "select", "1"),
    "timeline": ("target", "select", "sm_80"),
    "budget": ("target", "select", "sm_80"),
    "passes": ("next", "click", ""),
    "accesses": ("better", "click", ""),
    "player": ("block", "fill", "1"),
    "roofline": ("target", "select", "sm_80"),
    "compare": ("side-0", "select", "1"),
}


@pytest.fixture(scope="module")
def bare() -> Iterator[Bare]:
    with bare_page() as made:
        yield made


def use(bare: Bare, name: str) -> None:
    key, way, value = ASKS[name]
    control = bare.page.locator(f"[data-key={key}]")
    if way == "select":
        control.select_option(value)
    elif way == "fill":
        control.fill(value)
        control.press("Enter")
    else:
        control.click()


@pytest.mark.parametrize("name", PANELS)
def test_a_module_imports_nothing_and_names_no_address(name: str) -> None:
    text = script(name)
    assert not re.search(r"^\s*import\b|\bimport\s*\(|\brequire\s*\(", text, re.M)
    addresses = set(re.findall(r"https?://[^\"'\s]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name space, never fetched
    banned = r"localStorage|sessionStorage|\beval\b|new Function|innerHTML|document\.write"
    assert not re.search(banned, text)


@pytest.mark.parametrize("protocol", ["signal", "cleanup"])
@pytest.mark.parametrize("name", PANELS)
def test_under_a_strict_policy_it_draws_asks_and_ends(name: str, protocol: str, bare: Bare) -> None:
    bare.show(PANELS[name](), protocol=protocol)
    expect(bare.page.locator(".tilelab[data-painted='1']")).to_have_count(1, timeout=SLOW)
    assert bare.page.evaluate(STRAY) == []
    use(bare, name)
    bare.page.wait_for_selector(".tilelab[data-painted='2']", timeout=SLOW)
    bare.page.wait_for_function("!document.querySelector('.tilelab').hasAttribute('aria-busy')")
    expect(bare.page.locator(".tl-busy")).to_have_text("", timeout=SLOW)
    bare.page.evaluate("window.end()")
    bare.page.wait_for_function("window.model.count() === 0", timeout=SLOW)
    assert bare.violations == []


@pytest.mark.parametrize("name", PANELS)
def test_without_a_comm_the_picture_stays_and_says_so(name: str, bare: Bare) -> None:
    bare.show(PANELS[name](), comm="none")
    before = bare.page.locator(".tl-body").inner_text()
    use(bare, name)
    expect(bare.page.locator(".tl-busy")).to_contain_text("No kernel answers", timeout=SLOW)
    assert bare.page.locator(".tl-body").inner_text() == before
    assert bare.violations == []


def test_a_kernel_that_takes_long_is_waited_for_in_words(bare: Bare) -> None:
    bare.show(PANELS["roofline"](), comm="silent")
    use(bare, "roofline")
    bare.page.wait_for_selector(".tilelab[aria-busy=true]", timeout=SLOW)
    expect(bare.page.locator(".tl-busy")).to_have_text("working…", timeout=SLOW)


def test_times_are_drawn_beside_the_plan_when_asked_for(bare: Bare) -> None:
    bare.show(PANELS["timeline"]())
    bare.page.locator("[data-key=times]").select_option("modelled")
    bare.page.wait_for_selector("[data-key=schedule-0] svg", timeout=SLOW)
    schedule = bare.page.locator("[data-key=schedule-0] svg")
    expect(schedule).to_contain_text("modelled", timeout=SLOW)
    slider = bare.page.locator("[data-key=stages]")
    slider.focus()
    slider.press("ArrowLeft")
    bare.page.wait_for_selector(".tilelab[data-painted='3']", timeout=SLOW)
    bare.page.locator("summary", has_text="times as a table").click()
    times = bare.page.locator("[data-key=times-0] caption")
    expect(times).to_contain_text("2 slots", timeout=SLOW)


@pytest.mark.parametrize("name", PANELS)
def test_it_fits_a_narrow_page(name: str, bare: Bare) -> None:
    bare.page.set_viewport_size({"width": 420, "height": 800})
    bare.show(PANELS[name]())
    wide = bare.page.evaluate(
        "() => { const e = document.querySelector('.tilelab'); return e.scrollWidth"
        " - e.clientWidth; }"
    )
    bare.page.set_viewport_size({"width": 1280, "height": 900})
    assert wide <= 0


@pytest.mark.parametrize("name", PANELS)
def test_no_picture_is_cut_in_a_notebooks_usual_column(name: str, bare: Bare) -> None:
    bare.page.set_viewport_size({"width": 1000, "height": 900})
    bare.show(PANELS[name]())
    cut = bare.page.locator(".tl-picture[data-wide]").count()
    bare.page.set_viewport_size({"width": 1280, "height": 900})
    assert cut == 0


def test_a_verdict_has_the_colour_of_what_it_says(bare: Bare) -> None:
    bare.show(PANELS["accesses"]())
    verdict = bare.page.locator(".tl-verdict")
    edge = "e => getComputedStyle(e).borderLeftColor"
    expect(verdict).to_have_attribute("data-good", "false", timeout=SLOW)
    bad = verdict.evaluate(edge)
    bare.page.locator("[data-key=access]").select_option(index=len(transposed().accesses) - 1)
    expect(verdict).to_have_attribute("data-good", "true", timeout=SLOW)
    assert verdict.evaluate(edge) != bad


def test_two_layouts_stand_side_by_side(bare: Bare) -> None:
    bare.page.set_viewport_size({"width": 1000, "height": 900})
    bare.show(layout_panel(row_major((64, 64), 16), swizzled((64, 64), 16)))
    boxes = [pane.bounding_box() for pane in bare.page.locator(".tl-pane").all()]
    bare.page.set_viewport_size({"width": 1280, "height": 900})
    assert len({box["y"] for box in boxes if box}) == 1 and len(boxes) == 2
    expect(bare.page.locator(".tl-verdict[data-good]")).to_have_count(2, timeout=SLOW)


def test_a_thin_map_is_high_enough_to_point_at(bare: Bare) -> None:
    for layout in (row_major((1, 256), 16), row_major((256, 1), 16), row_major((8, 256), 16)):
        bare.show(layout_panel(layout))
        box = bare.page.locator("canvas").bounding_box()
        assert box is not None and min(box["width"], box["height"]) >= 20
        bare.page.mouse.move(box["x"] + box["width"] - 1.5, box["y"] + box["height"] - 1.5)
        last = ", ".join(str(n - 1) for n in layout.shape)
        expect(bare.page.locator(".tl-said")).to_contain_text(f"[{last}]", timeout=SLOW)


def table_of(bare: Bare) -> Any:
    return bare.page.locator("details[data-key=rows-0]")


def push_now(bare: Bare) -> None:
    """A new state from the kernel, whatever the reader does just now."""
    bare.page.evaluate("model.push({ ...model.get('state'), note: 'pushed' })")


def test_a_part_opened_just_before_a_repaint_stays_open(bare: Bare) -> None:
    bare.show(PANELS["budget"]())
    bare.page.evaluate(
        """() => { // one task: the toggle event comes after the repaint
          document.querySelector('details[data-key=rows-0] summary').click();
          model.push({ ...model.get('state'), note: 'pushed' });
        }"""
    )
    expect(bare.page.locator("[data-note]")).to_have_text("pushed", timeout=SLOW)
    expect(table_of(bare).locator("tbody tr").first).to_be_visible(timeout=SLOW)
    push_now(bare)
    expect(table_of(bare)).to_have_attribute("open", "", timeout=SLOW)


def test_a_repaint_waits_for_the_end_of_a_press(bare: Bare) -> None:
    bare.show(PANELS["budget"]())
    head = table_of(bare).locator("summary")
    head.hover()
    bare.page.mouse.down()
    push_now(bare)
    expect(bare.page.locator(".tilelab[data-painted='1']")).to_have_count(1, timeout=SLOW)
    bare.page.mouse.up()
    expect(bare.page.locator("[data-note]")).to_have_text("pushed", timeout=SLOW)
    expect(table_of(bare)).to_have_attribute("open", "", timeout=SLOW)


def test_a_repaint_keeps_what_is_being_typed(bare: Bare) -> None:
    bare.show(layout_panel(row_major((16, 64), 16)))
    field = bare.page.locator("[data-key=expression-0]")
    field.fill("swizzled(shape, bi")
    push_now(bare)
    expect(bare.page.locator(".tilelab[data-painted='2']")).to_have_count(1, timeout=SLOW)
    expect(field).to_be_focused(timeout=SLOW)
    field.press_sequentially("ts, 128)")
    field.press("Enter")
    expect(field).to_have_value("swizzled(shape, bits, 128)", timeout=SLOW)
    expect(bare.page.locator(".tl-verdict")).to_contain_text("no bank conflict", timeout=SLOW)


def test_a_picture_in_a_narrow_column_scrolls_by_keyboard(bare: Bare) -> None:
    bare.page.set_viewport_size({"width": 420, "height": 800})
    bare.show(PANELS["budget"]())
    frame = bare.page.locator("[data-key=kernel-0]")
    expect(frame).to_have_attribute("tabindex", "0", timeout=SLOW)
    scale = bare.page.evaluate(
        "() => { const s = document.querySelector('.tl-picture svg');"
        " return s.getBoundingClientRect().width / s.viewBox.baseVal.width; }"
    )
    bare.page.set_viewport_size({"width": 1280, "height": 900})
    expect(frame).not_to_have_attribute("tabindex", "0", timeout=SLOW)
    assert scale >= 0.79


def test_a_finding_marks_its_line_and_its_spans(bare: Bare) -> None:
    @T.prim_func
    def unset(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.copy(A, tile)
            T.gemm(tile, tile, sums)
            T.copy(sums, C)

    kernel = tilelab.compile(unset, target="sm_90a", out_idx=-1)
    bare.show(PlayerPanel(kernel, (torch.ones(64, 64).half(),)))
    line = bare.page.locator(".tl-line[data-finding]")
    expect(line).to_contain_text("TL2002", timeout=SLOW)
    expect(line).to_contain_text("T.gemm(tile, tile, sums)", timeout=SLOW)
    marks = bare.page.locator(".tl-picture text", has_text="!")
    expect(marks.first).to_be_visible(timeout=SLOW)
    spans = bare.page.locator(".tl-picture rect[data-finding]")
    expect(spans.first.locator("title")).to_contain_text("TL2002", timeout=SLOW)


def test_a_warp_is_isolated(bare: Bare) -> None:
    bare.show(layout_panel(atoms.wgmma_accumulator(64)))
    bare.page.locator("[data-key=pick-by]").select_option("warp")
    number = bare.page.locator("[data-key=pick-value]")
    number.fill("2")
    number.press("Enter")
    bare.page.locator("summary", has_text="as a table").first.click()
    rows = bare.page.locator(".tl-scroll tbody th")
    expect(rows.first).to_have_text("32, 0", timeout=SLOW)
    expect(rows).to_have_count(512, timeout=SLOW)
