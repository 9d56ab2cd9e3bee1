"""Plain and fast side by side: a step for each switch that changes the code, times that are the
runs', and measured ladders in their place."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tilelab
from tests.attention import flash_attention
from tests.kernels import gemm
from tilelab import widgets
from tilelab.bench.table import Row, Table
from tilelab.errors import TileError
from tilelab.tile.structure import PLAIN, SWITCHES
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
    with pytest.raises(TileError, match="is no compiled kernel"):
        widgets.compare(kernel, "plain")  # type: ignore[arg-type]


def test_a_kernel_without_structure_has_nothing_to_compare() -> None:
    plain = tilelab.compile(gemm(128, 128, 64, stages=0), target="sm_80", out_idx=-1)
    with pytest.raises(TileError, match="nothing differs"):
        compare_panel(plain)


def ladder_file(folder: Path) -> Path:
    rows: list[Row] = []
    for size, rates in (("4096^3", (500.0, 600.0, 750.0)), ("8192^3", (510.0, 640.0, 740.0))):
        for k, rate in enumerate(rates):
            before = rates[max(k - 1, 0)]
            values: dict[str, float | None] = {
                "tilelab": rate, "to textbook": rate / rates[0], "to step before": rate / before,
            }  # fmt: skip
            rows.append(Row(f"fp16 {size}, s3: step {k}", "TFLOP/s", values))
    table = Table("ladder", "tilelab bench ladder", "2026-01-01", "a GPU", rows)
    path = folder / "ladder.json"
    path.write_text(json.dumps([table.to_json()]))
    return path


def test_a_measured_ladder_takes_the_place_of_the_modelled_one(kernel: Any, tmp_path: Path) -> None:
    path = ladder_file(tmp_path)
    panel = compare_panel(kernel, bench=path, row="fp16 4096^3")
    ladder = panel.ladder
    assert [s.name for s in ladder.steps] == ["step 0", "step 1", "step 2"]
    assert ladder.gain(1) == pytest.approx(1.2) and ladder.total(2) == pytest.approx(1.5)
    assert "measured on a GPU" in ladder.to_text() and ladder.steps[2].detail == "750 TFLOP/s"
    for row, words in (("fp16", "several ladders"), ("fp32", "no ladder")):
        with pytest.raises(TileError, match=words):
            compare_panel(kernel, bench=path, row=row)
