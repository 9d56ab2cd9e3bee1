"""Panels without a browser: what they tell equals the compiled kernel, and wishes are checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.kernels import gemm
from tilelab import widgets
from tilelab.errors import TileError
from tilelab.layout import Fragment, atoms, padded, row_major, swizzled
from tilelab.views import PATTERNS, access_of, access_view, from_json, shared_view, show
from tilelab.widgets import layout_panel
from tilelab.widgets.passes import PassPanel
from tilelab.widgets.plans import BudgetPanel, TimelinePanel
from tilelab.widgets.runs import AccessPanel, PlayerPanel, RooflinePanel

LIMIT = 300_000


@pytest.fixture(scope="module")
def kernel() -> Any:
    return tilelab.compile(gemm(256, 256, 512), target="sm_90a", out_idx=-1)


@pytest.mark.parametrize("make", [layout_panel, TimelinePanel, BudgetPanel, PassPanel])
def test_state_is_plain_and_twins_are_small(make: Any, kernel: Any) -> None:
    panel = make(kernel)
    state = panel.state()
    assert json.loads(json.dumps(state))["title"]
    for view in panel.twins():
        assert len(view.to_svg().encode()) <= LIMIT
        assert view.to_text().strip()


def test_layout_state_equals_enumeration(kernel: Any) -> None:
    panel = layout_panel(kernel, buffer="C_local")
    (pane,) = panel.state()["panes"]
    fragment = next(e.layout for e in panel.entries if e.name == "C_local")
    for flat, place in enumerate(np.ndindex(*pane["shape"])):
        assert pane["threads"][flat] == fragment.thread_of(place, 0)
        assert pane["registers"][flat] == fragment.register_of(place)


def test_tiles_of_single_threads_are_explored_too() -> None:
    @T.prim_func
    def turned(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((64,), "float32")
            t = T.get_thread_binding()
            tile[t] = A[t]
            T.sync_threads()
            B[t] = tile[63 - t]

    panel = layout_panel(tilelab.compile(turned, target="sm_90a"))
    state = panel.state()
    assert state["names"] == ["tile"] and state["panes"][0]["offsets"] == list(range(64))
    assert state["access"]["pattern"] == "rows" and "no bank conflict" in state["access"]["verdict"]


def test_two_layouts_are_compared_and_edited() -> None:
    panel = layout_panel(row_major((64, 64), 16), swizzled((64, 64), 16))
    assert panel.shown == [0, 1]
    access = panel.state()["access"]
    assert "8-way" in access["verdict"] and not access["good"]
    (other,) = access["others"]
    assert other["name"] == "layout 2" and other["good"] and "no bank" in other["verdict"]
    panel.answer({"edit": 0, "expression": "padded(shape, bits, 8)"})
    assert panel.state()["access"]["verdict"].endswith("no bank conflict")
    assert panel.state()["panes"][0]["reason"] == "edited by hand"
    panel.answer({"access": {"pattern": "column", "vector": 1}})
    assert panel.state()["access"]["pattern"] == "column"


@pytest.mark.parametrize(
    "expression",
    ["", "1 + 1", "swizzled(shape, bits, 48)", "nonsense(", "row_major((4096, 4096), bits)", "1/0"],
)
def test_a_wrong_expression_is_refused_and_nothing_changes(expression: str) -> None:
    panel = layout_panel(row_major((64, 64), 16))
    before = panel.state()
    with pytest.raises(TileError) as caught:
        panel.answer({"edit": 0, "expression": expression})
    assert caught.value.hint
    assert panel.state() == before


def test_a_fragment_can_be_edited() -> None:
    panel = layout_panel(atoms.wgmma_accumulator(64))
    panel.answer({"edit": 0, "expression": "Fragment.blocked(shape, threads, 4)"})
    assert panel.entries[0].layout == Fragment.blocked((64, 64), 128, 4)


def test_every_layout_of_a_kernel_is_made_again_by_its_expression(kernel: Any) -> None:
    """Fragments and shared tiles of any rank: what stands in the line is the layout itself."""
    panel = layout_panel(kernel)
    ranks = set[int]()
    for number, entry in enumerate(panel.entries):
        ranks.add(len(entry.layout.shape))
        panel.answer({"edit": number, "expression": entry.expression})
        assert panel.entries[number].layout == entry.layout, entry.expression
    assert len(panel.entries) >= 3 and len(ranks) >= 2


def test_a_fragment_is_edited_from_what_it_was_given(kernel: Any) -> None:
    panel = layout_panel(atoms.mma_c())
    assert panel.state()["panes"][0]["expression"] == "layout"
    for _ in range(2):  # of the given one each time, not of the one before
        panel.answer({"edit": 0, "expression": "layout.repeat(2, 1)"})
        assert panel.entries[0].layout == atoms.mma_c().repeat(2, 1)
    panel.answer({"edit": 0, "expression": "layout"})
    assert panel.entries[0].layout == atoms.mma_c()


def test_budget_and_timeline_follow_the_stages_exactly(kernel: Any) -> None:
    for stages in (1, 2, 4, 5):
        own = tilelab.compile(gemm(256, 256, 512, stages=stages), target="sm_90a", out_idx=-1)
        budget, timeline = BudgetPanel(kernel), TimelinePanel(kernel)
        budget.answer({"stages": stages})
        timeline.answer({"stages": stages})
        (shown,) = budget.state()["kernels"]
        part = own.program.kernels[0]
        assert shown["total"] == part.dynamic_bytes + part.static_bytes
        expected = TimelinePanel(own).state()["loops"]
        for loop, other in zip(timeline.state()["loops"], expected, strict=True):
            assert (loop["rows"], loop["barriers"]) == (other["rows"], other["barriers"])
        assert f"num_stages={stages}" in budget.state()["note"]
    part = kernel.program.kernels[0]  # the reader's kernel stays as it was
    own_total = BudgetPanel(kernel).state()["kernels"][0]["total"]
    assert own_total == part.dynamic_bytes + part.static_bytes


def test_budget_on_another_chip(kernel: Any) -> None:
    panel = BudgetPanel(kernel)
    panel.answer({"target": "sm_80"})
    assert panel.state()["target"] == "sm_80" and "sm_80 would give" in panel.state()["note"]
    with pytest.raises(TileError, match="sm_80"):
        panel.answer({"target": "sm_75x"})


def test_what_does_not_fit_is_the_compilers_error(kernel: Any) -> None:
    panel = BudgetPanel(kernel)
    with pytest.raises(TileError, match="shared memory"):
        panel.answer({"stages": 8})
    assert panel.state()["note"] == "as compiled"


def test_passes_grey_exactly_what_stayed(kernel: Any) -> None:
    panel = PassPanel(kernel)
    for number in range(len(kernel.trace.steps)):
        panel.answer({"pass": number})
        state = panel.state()
        same_before = [text for text, same, _ in state["before"] if same]
        assert same_before == [text for text, same, _ in state["after"] if same]
        if not state["passes"][number]["changed"]:
            assert all(same for _, same, _ in state["after"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda k: widgets.timeline(3), "no compiled kernel"),
        (lambda k: layout_panel(k, buffer="nope"), "C_local"),
        (lambda k: layout_panel(), "no layout to explore"),
        (lambda k: layout_panel(object()), "is no layout"),
        (lambda k: access_view([0], 3), "width=3"),
        (lambda k: access_view([0], 4, space="moon"), "shared, global"),
        (lambda k: access_of(shared_view(row_major((8, 8), 16)), "diagonal", 1), "rows"),
    ],
)
def test_bad_input_is_named(call: Any, words: str, kernel: Any) -> None:
    with pytest.raises(TileError, match=words):
        call(kernel)


@pytest.mark.parametrize(
    ("layout", "pattern", "vector", "waves"),
    [
        (row_major((64, 32), 32), "column", 1, 32),
        (padded((64, 32), 32, 1), "column", 1, 1),
        (row_major((64, 64), 16), "ldmatrix", 8, 32),
        (row_major((64, 32), 16), "ldmatrix", 8, 16),
        (row_major((64, 16), 16), "ldmatrix", 8, 8),
        (swizzled((64, 64), 16, 128), "ldmatrix", 8, 4),
        (swizzled((64, 32), 16, 64), "ldmatrix", 8, 4),
        (swizzled((64, 16), 16, 32), "ldmatrix", 8, 4),
    ],
)
def test_fixed_points_of_bank_conflicts(layout: Any, pattern: str, vector: int, waves: int) -> None:
    view = access_of(shared_view(layout), pattern, vector)
    assert len(view.waves) == waves
    assert sorted(lane for wave in view.waves for lane in wave.lanes) == list(range(32))
    assert from_json(view.to_json()) == view


def test_global_sectors() -> None:
    coalesced = access_view([4 * k for k in range(32)], 4, space="global")
    assert (len(coalesced.waves), coalesced.ideal) == (4, 4)
    strided = access_view([128 * k for k in range(32)], 4, space="global")
    assert (len(strided.waves), strided.ideal) == (32, 4)
    assert "8 times the bytes" in strided.verdict()


def test_every_pattern_is_described() -> None:
    for name, (words, _) in PATTERNS.items():
        view = access_of(shared_view(swizzled((64, 64), 16)), name, 8)
        assert words in view.title and view.to_svg().startswith("<svg")


def inputs(kernel: Any) -> list[Any]:
    return list(kernel.get_profiler().make_inputs())


def test_accesses_equal_the_counters(kernel: Any) -> None:
    report = kernel.simulate(*inputs(kernel))
    panel = AccessPanel(report)
    for number, access in enumerate(panel.accesses):
        panel.answer({"access": number})
        (view,) = panel.twins()
        if access.space == "shared":
            assert len(view.waves) >= access.worst >= 1
        assert panel.state()["rows"][number][2] == access.units


def test_player_times_any_block_and_marks_findings(kernel: Any) -> None:
    panel = PlayerPanel(kernel, inputs(kernel))
    panel.answer({"block": 3})
    assert panel.state()["block"] == 3 and panel.report.block == 3
    assert all(start <= end for _, _, start, end, *_ in panel.state()["kernels"][0]["spans"])
    with pytest.raises(TileError, match="block=4"):
        panel.answer({"block": 4})
    assert json.dumps(panel.state())


def test_roofline_point_is_the_kernels_work(kernel: Any) -> None:
    panel = RooflinePanel(kernel, inputs(kernel), seconds=1e-3)
    (view,) = panel.twins()
    (point,) = view.points
    assert point.flops >= 2 * 256 * 256 * 512
    assert point.num_bytes == 2 * (256 * 512 + 512 * 256 + 256 * 256)
    assert point.rate == point.flops / 1e-3 and point.source == "measured"
    assert view.bound_of(point) == "memory bandwidth"
    assert from_json(view.to_json()) == view


@pytest.mark.parametrize("kind", ["layout", "sass", "sim", "schedule", "roofline"])
def test_show_knows_every_kind(kind: str, kernel: Any) -> None:
    (view,) = show(kernel, kind).views
    assert view.to_svg().startswith("<svg") and len(view.to_svg()) <= LIMIT
    assert kind != "sass" or dict(view.counts)["HGMMA"] > 0
