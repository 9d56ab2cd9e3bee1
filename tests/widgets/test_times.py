"""Times on the timeline panel, and rows of a benchmark on the roofline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tilelab
from tests.kernels import gemm
from tilelab import widgets
from tilelab.bench.table import Row, Table
from tilelab.errors import TileError
from tilelab.widgets.benched import bench_rows, named_row, peer_points
from tilelab.widgets.plans import TimelinePanel

torch = pytest.importorskip("torch")
ROW = "fp16 4096^3, 128x256x64"


@pytest.fixture(scope="module")
def kernel() -> Any:
    return tilelab.compile(gemm(256, 256, 512), target="sm_90a", out_idx=-1)


def test_times_are_shown_when_asked_for_and_follow_the_slider(kernel: Any) -> None:
    panel = TimelinePanel(kernel)
    assert panel.state()["schedules"] == [] and len(panel.twins()) == 1
    panel.answer({"times": "modelled"})
    three = panel.state()["schedules"][0]["headline"]
    panel.answer({"stages": 2, "target": "sm_90a"})
    state = panel.state()
    assert state["stages"] == 2 and state["times"] == "modelled"
    assert state["schedules"][0]["headline"] != three
    assert "2 slots" in state["schedules"][0]["caption"]
    assert [v.kind for v in panel.twins()] == ["pipeline", "schedule"]
    panel.answer({"times": "plan"})
    assert panel.state()["schedules"] == []
    assert json.dumps(panel.state())


def test_inputs_of_the_reader_are_used_and_what_fails_changes_nothing(kernel: Any) -> None:
    wrong = torch.zeros(3, 3).half()
    panel = TimelinePanel(kernel, (wrong, wrong))
    with pytest.raises(TileError, match="A"):
        panel.answer({"times": "modelled"})
    assert panel.state()["times"] == "plan"
    with pytest.raises(TileError, match="times='real'"):
        panel.answer({"times": "real"})


def test_what_cannot_have_times_goes_back_to_the_plan_it_had(kernel: Any) -> None:
    panel = TimelinePanel(kernel)
    panel.answer({"times": "modelled"})
    with pytest.raises(TileError, match="runs ahead"):
        panel.answer({"stages": 0, "target": "sm_90a"})
    state = panel.state()
    assert state["stages"] == 3 and state["schedules"] and state["note"] == "as compiled"


def bench(folder: Path, **work: float) -> Path:
    values = {"tilelab": 700.0, "torch": 720.0, "triton": None, "tilelab/torch": 0.97}
    row = Row(ROW, "TFLOP/s", values, bound=989.0, **work)
    other = Row("host time of a call", "us", {"tilelab": 3.0})
    path = folder / "bench.json"
    table = Table("gemm", "tilelab bench gemm", "2026-01-01", "a machine", [row, other])
    path.write_text(json.dumps([table.to_json()]))
    return path


def test_columns_of_a_row_become_points(tmp_path: Path, kernel: Any) -> None:
    path = bench(tmp_path, flops=2 * 4096.0**3, moved=6 * 4096.0**2)
    points = peer_points(named_row(bench_rows(path), "fp16 4096^3"))
    assert [p.name for p in points] == ["tilelab", "torch"]
    assert points[0].rate == pytest.approx(700e12)
    assert points[0].seconds == pytest.approx(2 * 4096**3 / 700e12)
    inputs = kernel.get_profiler().make_inputs()
    text = widgets.roofline(kernel, *inputs, bench=path, row=ROW).panel.state()["text"]
    assert "torch" in text and "measured by tilelab bench" in text


def test_bandwidth_rows_count_bytes(tmp_path: Path) -> None:
    row = {"name": "x", "unit": "TB/s", "values": {"copy": 4.0}, "flops": 10.0, "moved": 8e9}
    (point,) = peer_points(row)
    assert point.seconds == pytest.approx(2e-3)


@pytest.mark.parametrize(
    ("row", "words"),
    [("fp16 9999", "is no row"), ("", "beginning of several"), ("host time", "how much work"),
     (ROW, "how much work")],
)  # fmt: skip
def test_a_row_that_cannot_be_drawn_is_named(row: str, words: str, tmp_path: Path) -> None:
    path = bench(tmp_path)
    with pytest.raises(TileError, match=words):
        peer_points(named_row(bench_rows(path), row))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"rows": [{}]}]'])
def test_a_file_that_is_no_benchmark_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(text)
    with pytest.raises(TileError, match="cannot be read") as caught:
        named_row(bench_rows(path), "x")
    assert caught.value.code == "TL1716"
