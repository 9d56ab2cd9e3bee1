"""What holds for every picture: theme, contrast, accessible names, escaping, bundles."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from typing import Any

import pytest

from tilelab.codegen.source import CudaSource, KernelSpan, LineLink
from tilelab.errors import Loc, TileValueError
from tilelab.ir import Function, Seq
from tilelab.layout import atoms, row_major
from tilelab.runtime.nvrtc import Resources
from tilelab.target import SM90A
from tilelab.thread.nodes import Program
from tilelab.views import (
    View,
    fragment_view,
    from_json,
    memory_view,
    passes_view,
    pipeline_view,
    shared_view,
    show,
    source_view,
)
from tilelab.views.fragment import decision_view
from tilelab.views.palette import PAINTS, TEXT_ON, contrast, lane_colours
from tilelab.views.svg import Svg

from .samples import kernel, plan, trace

CUDA = "// helpers\nvoid k() {\n  int a = 1 < 2;\n  load();\n}\n"


def source() -> CudaSource:
    here = Loc(__file__, 5)
    node = Seq(())
    macro = Loc(__file__, 9, caller=Loc(__file__, 7))
    links = (LineLink(3, node, here), LineLink(4, node, macro))
    return CudaSource(CUDA, links, (KernelSpan("k", 2, 5),))


@dataclass
class Kernel:
    """What `show` reads of a compiled kernel."""

    trace: Any = field(default_factory=trace)
    program: Program = field(default_factory=lambda: Program("matmul", (), (), (kernel(),), ()))
    source: CudaSource = field(default_factory=source)
    prim_func: Function = field(default_factory=lambda: Function("matmul", (), ()))
    resources: Any = field(default_factory=lambda: {"k": Resources(168)})


def views() -> list[View]:
    made = trace()
    return [
        decision_view(made.layouts[0]), pipeline_view(plan()), memory_view(kernel(), SM90A),
        source_view(source()), passes_view(made),
    ]  # fmt: skip


@pytest.mark.parametrize("view", views(), ids=lambda v: v.kind)
def test_picture_is_self_contained_and_named(view: View) -> None:
    picture = view.to_svg()
    root = ElementTree.fromstring(picture)
    names = {e.get("id"): e.text for e in root.iter() if e.get("id")}
    assert root.get("role") == "img"
    assert all(names[i] for i in (root.get("aria-labelledby") or "").split())
    assert len(picture.encode()) <= 300_000
    assert "prefers-color-scheme:dark" in picture
    for foreign in ("<script", "@import", "http://", "https://", "url(http"):
        assert foreign not in picture.replace("http://www.w3.org/2000/svg", "")
    assert from_json(view.to_json()).to_svg() == picture


@pytest.mark.parametrize("view", views(), ids=lambda v: v.kind)
def test_classes_used_have_rules_in_both_themes(view: View) -> None:
    picture = view.to_svg()
    used = set(re.findall(r"\b[fs]-[a-z-]+\b", " ".join(re.findall(r'class="([^"]*)"', picture))))
    light, dark = picture.split("<style>")[1].split("</style>")[0].split("@media")
    for name in used:
        assert f".{name}{{" in light and f".{name}{{" in dark


@pytest.mark.parametrize("pair", TEXT_ON, ids="-on-".join)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_contrast(pair: tuple[str, str], theme: str) -> None:
    text, ground = (getattr(PAINTS[name], theme) for name in pair)
    assert contrast(text, ground) >= 4.5


def test_lane_labels_have_contrast_and_colours_differ() -> None:
    colours = lane_colours()
    assert len(set(colours)) == 32
    assert min(contrast(PAINTS["cell-ink"].light, c) for c in colours) >= 4.5


def test_a_long_name_stays_inside_the_picture() -> None:
    name = "accumulator_of_the_first_of_two_products_" * 4
    for view in (fragment_view(atoms.mma_c(), buffer=name),
                 shared_view(row_major((8, 64), 16), buffer=name)):  # fmt: skip
        root = ElementTree.fromstring(view.to_svg())
        texts = [e for e in root.iter() if e.tag.endswith("}text") and e.get("font-weight")]
        room = float(root.get("width") or 0) - 48
        assert len(texts[0].text or "") * 0.62 * float(texts[0].get("font-size") or 0) <= room
        assert name in view.to_text()


def test_text_is_escaped() -> None:
    svg = Svg("a<b", 100, 10, "<t>", "a & b")
    svg.text(0, 0, "<script>&\"'")
    svg.rect(0, 0, 1, 1, title="x<y")
    root = ElementTree.fromstring(svg.render())
    assert [e.text for e in root.iter() if e.tag.endswith("text")] == ["<script>&\"'"]


def test_source_links_both_ways_and_through_macros() -> None:
    view = source_view(source())
    assert view.cuda_of(5) == (3,) and view.cuda_of(7) == (4,) and view.cuda_of(9) == (4,)
    assert view.python_of(4) == (7, 9)
    assert [line.number for line in view.cuda] == [2, 3, 4, 5]
    assert "int a = 1 < 2;" in view.to_text()


def test_passes_tell_notes_and_warnings() -> None:
    view = passes_view(trace())
    assert "2 passes for sm_90a, 1 warning" in view.summary()
    assert "infer_layouts: wgmma fixes C_local (line 14)" in view.to_text()
    assert "warning: the tile is read twice (line 12)" in view.to_text()
    assert "changed nothing" in view.to_svg()


def test_show_bundles_the_three_pictures() -> None:
    report = show(Kernel())
    assert [v.kind for v in report.views] == ["fragment", "pipeline", "memory"]
    bundle = report._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/html"].count("<svg") == 3 and "<script" not in bundle["text/html"]
    assert "FRAGMENT" in bundle["text/plain"] and "SHARED MEMORY" in bundle["text/plain"]
    ids = re.findall(r'\bid="([^"]+)"', bundle["text/html"])
    assert len(ids) == len(set(ids))
    for view in report.views:
        assert set(view._repr_mimebundle_()) == {"text/plain", "image/svg+xml"}


def test_show_displays_one_output_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    import IPython.display

    shown: list[Any] = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    show(Kernel(), "memory", "passes", "source")._ipython_display_()
    assert [v.kind for v in shown] == ["memory", "passes", "source"]


def test_show_refuses_unknown_kinds_and_names_the_others() -> None:
    with pytest.raises(TileValueError, match=r"(?s)no view 'timeline'.*fragment, pipeline"):
        show(Kernel(), "timeline")
    with pytest.raises(KeyError, match="no 'source'"):
        _ = show(Kernel())["source"]
