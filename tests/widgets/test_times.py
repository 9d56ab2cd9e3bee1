"""Times on the timeline panel, and rows of a benchmark on the roofline."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelab
from tests.kernels import gemm
from tests.passes.test_stamp_schedule import of_first_threads, raw
from tilelab import widgets
from tilelab.bench.table import Row, Table
from tilelab.errors import TileError
from tilelab.kernel import JITKernel
from tilelab.thread.intrinsics.stamp import SYMBOL
from tilelab.widgets import times
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


class Stamped:
    """A loaded module that holds stamps as a GPU would have written them."""

    def __init__(self, rows: list[list[int]]) -> None:
        self._rows = rows
        self.cleared = 0

    def clear_variable(self, name: str) -> None:
        assert name == SYMBOL
        self.cleared += 1

    def variable(self, name: str) -> bytes:
        assert name == SYMBOL
        return np.array(self._rows, np.uint64).tobytes()


def test_measured_times_are_drawn_from_stamps(kernel: Any, monkeypatch: Any) -> None:
    """The path of a machine with a GPU, on a record of stamps that the simulator's times make."""
    built = kernel.remade(pass_configs={"tl.stamp_schedule": 0})
    report = built.simulate(*built.get_profiler().make_inputs())
    module = Stamped(raw(built, of_first_threads(report.events)))
    runs: list[Any] = []
    monkeypatch.setattr(times, "driver", SimpleNamespace(find=object))
    monkeypatch.setattr(JITKernel, "__call__", lambda self, *args: runs.append(self))
    monkeypatch.setattr(JITKernel, "loaded", (module,))
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self: self)
    panel = TimelinePanel(kernel)
    panel.answer({"times": "measured"})
    (schedule,) = panel.state()["schedules"]
    assert "measured" in schedule["headline"] and "<svg" in schedule["svg"]
    assert module.cleared == 1 and len(runs) == 2  # to warm up, and for the stamps
    assert all(run.pass_configs["tl.stamp_schedule"] == 0 for run in runs)
    (view,) = (v for v in panel.twins() if v.kind == "schedule")
    assert [use.k for use in view.uses] == list(range(8))
    assert all(use.arrived is None for use in view.uses)


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
