"""What stays of a widget where no widget lives: all of its pictures in one, of bounded size."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from typing import Any

import pytest

from tests.kernels import gemm
from tilelab import compile as compile_kernel
from tilelab.layout import row_major, swizzled
from tilelab.views.svg import stacked
from tilelab.widgets import compare_panel, layout_panel
from tilelab.widgets.host import static_bundle

SPACE = "{http://www.w3.org/2000/svg}"


def parts(markup: str) -> list[Any]:
    return list(ElementTree.fromstring(markup).iter(f"{SPACE}svg"))[1:]


def test_both_layouts_of_a_comparison_stay() -> None:
    panel = layout_panel(row_major((64, 64), 16), swizzled((64, 64), 16))
    picture = static_bundle(panel)["image/svg+xml"]
    first, second = parts(picture)
    assert second.get("y") == first.get("height") and first.get("style") is None
    assert "layout 1:" in picture and "layout 2:" in picture
    (single,) = (v.to_svg() for v in layout_panel(row_major((64, 64), 16)).twins())
    assert stacked([single]) == single


def test_pictures_of_one_name_keep_their_own_ids() -> None:
    kernel = compile_kernel(gemm(128, 128, 128), target="sm_90a", out_idx=-1)
    other = compile_kernel(gemm(128, 128, 128, stages=2), target="sm_90a", out_idx=-1)
    picture = static_bundle(compare_panel(kernel, other))["image/svg+xml"]
    assert len(parts(picture)) == 3
    ids = re.findall(r'\bid="([^"]*)"', picture)
    assert max(Counter(ids).values()) == 1
    named = " ".join(re.findall(r'aria-labelledby="([^"]*)"', picture)).split()
    assert {*named} | {*re.findall(r"url\(#([^)]*)\)", picture)} <= {*ids}


def test_what_is_too_much_for_one_picture_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = layout_panel(row_major((64, 64), 16), swizzled((64, 64), 16))
    first, second = (view.to_svg() for view in panel.twins())
    monkeypatch.setitem(static_bundle.__globals__, "LARGEST", len(first) + len(second))
    bundle = static_bundle(panel)
    assert bundle["image/svg+xml"] == first and "layout 2:" in bundle["text/plain"]
