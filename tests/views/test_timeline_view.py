"""The timeline as a picture, and reports of simulated calls in notebooks."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import gemm
from tests.sim.programs import hopper_gemm
from tests.sim.test_gemm import gemm_arrays
from tilelab.errors import TileError
from tilelab.sim import Event, SimReport, simulate
from tilelab.views import SimulationReport, TimelineView, from_json, timeline_views
from tilelab.views.timeline import CLASSES, MAX_SPANS
from tilelab.views.timeline_svg import PAINT

MOST_BYTES = 300 * 1024


def gemm_report(k: int = 512) -> SimReport:
    arrays, _ = gemm_arrays(128, 128, k)
    return simulate(hopper_gemm(128, 128, k), arrays, checks=False)


@T.prim_func
def scale(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), seed: T.float32):
    with T.Kernel(1, threads=64) as _bx:
        s = T.alloc_shared((64,), "float32")
        t = T.get_thread_binding()
        s[t] = A[t] * seed
        T.sync_threads()
        B[t] = s[63 - t]


def test_the_view_says_what_the_events_do() -> None:
    report = gemm_report()
    (view,) = timeline_views(report)
    assert isinstance(view, TimelineView) and view.cycles == report.cycles
    assert view.lanes[:3] == ("block", "consumer", "producer") and "tensor cores" in view.lanes
    copies = [s for s in view.spans if s.what == "copy"]
    assert len(copies) == 8 * 3 and {s.stage for s in copies} == {0, 1, 2}
    assert from_json(view.to_json()) == view
    text = view.to_text()
    assert "beside compute" in text and "tensor cores" in text


def test_copies_of_one_statement_share_a_track() -> None:
    kernel = tilelab.compile(gemm(128, 128, 192), target="sm_80", out_idx=-1)
    report = kernel.simulate(*kernel.get_profiler().make_inputs())
    (view,) = timeline_views(report)
    issued = sum(e.kind == "cp.async" for e in report.events)
    copies = [s for s in view.spans if view.lanes[s.lane].startswith("cp.async")]
    assert issued > 20 and sum(s.times for s in copies) == issued
    assert len(copies) == 3 * 2 and len(view.lanes) <= 1 + 2 * 3
    ends = {e.stage: e.end for e in report.events if e.kind == "cp.async"}
    assert {s.stage: s.end for s in copies} == ends  # the last to arrive ends the span


def test_the_picture_is_svg_with_every_kind_told_in_words() -> None:
    (view,) = timeline_views(gemm_report())
    root = ET.fromstring(view.to_svg())
    said = " ".join(t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text"))
    for word in (*PAINT, "producer", "consumer", "TMA", "Stage 2", "cycle"):
        assert word in said
    assert set(CLASSES.values()) == set(PAINT)
    assert view.to_svg() == view.to_svg()


def test_long_runs_stay_small() -> None:
    report = gemm_report(8192)
    assert len(report.events) > 2 * MAX_SPANS
    made = SimulationReport.of(report)
    (view,) = made.views()
    assert len(view.spans) <= MAX_SPANS
    bundle = made._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/svg+xml"}
    assert all(len(text.encode()) <= MOST_BYTES for text in bundle.values())
    assert re.search(r"\(\d+ events\)", bundle["image/svg+xml"])


def test_a_kernel_gives_outputs_and_takes_names() -> None:
    kernel = tilelab.compile(scale, out_idx=[1])
    x = torch.arange(64, dtype=torch.float32)
    report = kernel.simulate(x, 3.0)
    assert report.ok and isinstance(report, SimulationReport)
    (out,) = report.outputs
    torch.testing.assert_close(out, 3 * x.flip(0))
    again = kernel.simulate(A=x, seed=3.0, checks={"races"}, schedule="random")
    torch.testing.assert_close(again.outputs[0], out)  # the program's own `seed` is the tensor's
    assert again.counters[0].launch is not None
    assert "line" in str(report) and "s[63 - t]" in str(report)


def test_wrong_names_are_errors() -> None:
    kernel = tilelab.compile(scale, out_idx=[1])
    with pytest.raises(TileError):
        kernel.simulate(torch.zeros(64), 1.0, shedule="late")


def test_registers_are_known_once_compiled() -> None:
    kernel = tilelab.compile(scale, out_idx=[1], target="sm_90a")
    x = torch.zeros(64)
    assert kernel.simulate(x, 1.0).counters[0].launch.registers is None
    registers = next(iter(kernel.cubin.resources.values())).registers
    launch = kernel.simulate(x, 1.0).counters[0].launch
    assert launch.registers == registers > 0 and "registers" in str(kernel.simulate(x, 1.0))


def test_a_report_without_events_shows_text_only() -> None:
    empty = SimulationReport((), (), (), 0.0, 0)
    assert set(empty._repr_mimebundle_()) == {"text/plain", "text/html"}
    one = SimulationReport((), (), (Event("k", "block", "simt", 0, 10, "block"),), 0.0, 1)
    assert "block" in one.views()[0].to_text()
