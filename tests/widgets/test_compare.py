"""Plain and fast side by side: a step for each switch that changes the code, times that are the
runs', on one axis, and measured gains beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tilelab
from tests.attention import flash_attention
from tests.kernels import gemm
from tilelab import widgets
from tilelab.bench import rows as bench_rows
from tilelab.bench.table import Row, Table
from tilelab.errors import TileError
from tilelab.tile.structure import FOLD_CLEAR, IN_FLIGHT, PERSISTENT, PLAIN, STAGED_STORES, SWITCHES
from tilelab.views import from_json
from tilelab.views.variants import TEXTBOOK
from tilelab.widgets import compare_panel
from tilelab.widgets.compare import PICTURES

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def kernel() -> Any:
    return tilelab.compile(gemm(256, 256, 512), target="sm_90a", out_idx=-1)


@pytest.fixture(scope="module")
def panel(kernel: Any) -> Any:
    return compare_panel(kernel)


def test_steps_go_from_the_textbook_to_the_kernel_itself(kernel: Any, panel: Any) -> None:
    first, *rest = panel.variants
    assert first.name == TEXTBOOK and first.kernel.pass_configs == {PLAIN: True}
    keys = [switch.key for switch in SWITCHES]
    assert [v.switch for v in rest] == [k for k in keys if k in {v.switch for v in rest}]
    assert rest[-1].kernel.get_kernel_source() == kernel.get_kernel_source()
    texts = [v.kernel.get_kernel_source() for v in panel.variants]
    assert all(a != b for a, b in pairwise(texts)) and len(texts) >= 3


def test_the_ladder_is_the_runs(panel: Any) -> None:
    ladder = panel.ladder
    report = panel.variants[0].kernel.simulate(*panel.inputs)
    assert ladder.steps[0].time == pytest.approx(max(e.end for e in report.events))
    assert ladder.gain(0) == 1 and ladder.total(1) == pytest.approx(ladder.gain(1))
    assert from_json(ladder.to_json()) == ladder
    assert "modelled" in ladder.to_text() and len(ladder.to_svg().encode()) < 300_000


def test_every_step_is_named_in_words() -> None:
    assert all(switch.what and switch.what != switch.key for switch in SWITCHES)
    assert len({switch.what for switch in SWITCHES}) == len(SWITCHES)


def test_ladder_and_pictures_tell_of_the_same_block() -> None:
    """Blocks of a causal mask have unequal work: the longest is drawn, as it is counted."""
    fast = tilelab.compile(flash_attention((1, 128, 1, 64)), target="sm_90a", out_idx=-1)
    panel = compare_panel(fast, fast.remade(pass_configs={PLAIN: True}))
    ladder, *pictures = panel.twins()
    assert [round(v.cycles) for v in pictures] == [round(s.time) for s in ladder.steps]


@pytest.mark.parametrize("picture", PICTURES)
def test_both_sides_show_the_chosen_picture(picture: str, panel: Any) -> None:
    panel.answer({"picture": picture})
    state = json.loads(json.dumps(panel.state()))
    assert len(state["sides"]) == 2 and all(side["svgs"] for side in state["sides"])
    assert next(v.kind for v in panel.twins()) == "ladder" and len(panel.twins()) >= 3
    panel.answer({"side": 0, "variant": 1})
    assert panel.state()["sides"][0]["variant"] == 1
    panel.answer({"side": 0, "variant": 0})


@pytest.mark.parametrize(
    "request_", [{"picture": "film"}, {"side": 2, "variant": 0}, {"side": 0, "variant": 99}]
)
def test_a_wrong_wish_is_named(request_: Any, panel: Any) -> None:
    with pytest.raises(TileError, match="cannot be shown"):
        panel.answer(request_)


def test_two_kernels_of_the_readers_own(kernel: Any) -> None:
    other = tilelab.compile(gemm(256, 256, 512, stages=2), target="sm_90a", out_idx=-1)
    panel = compare_panel(kernel, other)
    assert [v.kernel for v in panel.variants] == [other, kernel]
    assert [v.name for v in panel.variants] == ["kernel (plain)", "kernel"]
    with pytest.raises(TileError, match="is no compiled kernel"):
        widgets.compare(kernel, "plain")  # type: ignore[arg-type]


def test_a_kernel_without_structure_has_nothing_to_compare() -> None:
    plain = tilelab.compile(gemm(128, 128, 64, stages=0), target="sm_80", out_idx=-1)
    with pytest.raises(TileError, match="nothing differs"):
        compare_panel(plain)


def ladder_file(folder: Path, named: Sequence[str]) -> Path:
    rows: list[Row] = []
    for size, first in (("4096^3", 500.0), ("8192^3", 510.0)):
        for k, name in enumerate(named):
            values: dict[str, float | None] = {
                "tilelab": first + 100 * k, "to textbook": 1 + 0.2 * k, "to step before": 1.0,
            }  # fmt: skip
            rows.append(Row(f"fp16 {size}, s3: {name}", "TFLOP/s", values))
    table = Table("ladder", "tilelab bench ladder", "2026-01-01", "a GPU", rows)
    path = folder / "ladder.json"
    path.write_text(json.dumps([table.to_json()]))
    return path


def test_measured_gains_stand_beside_the_modelled_ones(kernel: Any, tmp_path: Path) -> None:
    """By the names of steps; a step that the file does not have is said not to be measured."""
    path = ladder_file(tmp_path, [TEXTBOOK, IN_FLIGHT.what, FOLD_CLEAR.what, PERSISTENT.what])
    ladder = compare_panel(kernel, bench=path, row="fp16 4096^3").ladder
    assert [s.measured for s in ladder.steps[:3]] == pytest.approx([1.0, 1.2, 1.4])
    known = {s.switch: ladder.measured(k) for k, s in enumerate(ladder.steps)}
    assert known[FOLD_CLEAR.key] == "1.17x" and known[STAGED_STORES.key] == "not measured"
    words = "measured: fp16 4096^3, s3 on a GPU, 2026-01-01: 500 TFLOP/s at first, 800 with all"
    assert ladder.measurement.startswith(words) and "1.40 times, measured" in ladder.headline()
    assert from_json(ladder.to_json()) == ladder and "measured: 1.40 times" in ladder.to_svg()
    for row, words in (("fp16", "several ladders"), ("fp32", "no ladder")):
        with pytest.raises(TileError, match=words):
            compare_panel(kernel, bench=path, row=row)
    path = ladder_file(tmp_path, ["a step of another version"])
    with pytest.raises(TileError, match="none of the steps"):
        compare_panel(kernel, bench=path, row="fp16 4096^3")


def test_the_ladder_that_is_measured_has_the_steps_that_are_shown(kernel: Any, panel: Any) -> None:
    measured = list(bench_rows.ladder(bench_rows.LADDER[0]))
    assert [v.name for v in panel.variants] == [n for n in measured if n in
                                                {v.name for v in panel.variants}]  # fmt: skip
    assert ladder_says(panel) == {"not measured"}


def ladder_says(panel: Any) -> set[str]:
    return {panel.ladder.measured(k) for k in range(len(panel.ladder.steps))}


@pytest.mark.parametrize("picture", ["sim", "schedule"])
def test_times_of_both_sides_have_one_axis(picture: str, panel: Any) -> None:
    """The shorter run is the shorter picture, and says where it ends."""
    panel.answer({"picture": picture})
    views = [v for v in panel.twins() if v.kind in ("timeline", "schedule")]
    longest = max(v.end for v in views)
    assert len(views) == 2 and {v.axis for v in views} == {longest}
    for view in views:
        assert ("ends at" in view.to_svg()) == (view.end < longest)
    assert "blocks on each multiprocessor" in panel.state()["sides"][1]["facts"]
