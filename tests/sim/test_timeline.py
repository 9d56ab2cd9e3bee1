"""The modelled timeline: overlap of copies and compute, the trace file, reports as data."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.attention import flash_attention
from tests.sim.programs import Block, ampere_gemm, hopper_gemm, load, loop
from tests.sim.test_gemm import gemm_arrays
from tilelab.errors import TileValueError
from tilelab.ir import Var
from tilelab.sim import SimReport, simulate
from tilelab.sim.overlap import both, length, union
from tilelab.sim.timeline import ENGINES, MAX_EVENTS, TENSOR_CORES, TMA
from tilelab.target import SM90A
from tilelab.thread import Program
from tilelab.thread import intrinsics as I
from tilelab.thread.costs import COSTS, rates
from tilelab.thread.intrinsic import Cost

SIZES = (128, 128, 512)


def report_of(program: Program, **options) -> SimReport:
    arrays, _ = gemm_arrays(*SIZES)
    report = simulate(program, arrays, **options)
    assert report.ok, str(report)
    return report


def gemm_report(stages: int, **options) -> SimReport:
    return report_of(hopper_gemm(*SIZES, stages=stages), **options)


def test_overlap_grows_with_the_stages():
    reports = [gemm_report(stages) for stages in (1, 2, 3)]
    shares = [r.overlaps()[0].share for r in reports]
    assert shares[0] < 0.05 and shares[0] < shares[1] < shares[2]
    cycles = [r.cycles for r in reports]
    assert cycles[0] > 1.4 * cycles[1] > 1.4 * cycles[2]
    for report, stages in zip(reports, (1, 2, 3), strict=True):
        by_stage = report.overlaps()[1:]
        assert [o.stage for o in by_stage] == list(range(stages))
        assert sum(o.copies for o in by_stage) == report.overlaps()[0].copies == 8 * 3


@pytest.mark.parametrize("block", [0, 3])
def test_blocks_of_other_lengths_leave_no_events(block: int):
    """A role does one thing at a time, and waits for products only where it issued some."""
    kernel = tilelab.compile(flash_attention((1, 256, 1, 64)), target=SM90A, out_idx=-1)
    report = kernel.simulate(*kernel.get_profiler().make_inputs(), timeline_block=block)
    for role in {e.role for e in report.events}:
        own = sorted((e.start, e.end) for e in report.events if e.track == role)
        assert all(end <= start for (_, end), (start, _) in pairwise(own)), role
    first = min(e.start for e in report.events if e.kind == "wgmma")
    assert not [e for e in report.events if e.name == "wgmma" and e.start < first]


def test_cp_async_runs_ahead_of_the_products():
    sizes = (64, 64, 512)

    def share(stages: int) -> float:
        arrays, _ = gemm_arrays(*sizes)
        return simulate(ampere_gemm(*sizes, stages=stages), arrays).overlaps()[0].share

    assert share(2) < share(3) < share(4)


def pipelined_by_cp_async(stages: int) -> SimReport:
    """A product whose tiles cp.async brings, in `stages` slots."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"),
        B: T.Tensor((256, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    kernel = tilelab.compile(main, target="sm_80")
    a, b = torch.ones(64, 256).half(), torch.ones(256, 64).half()
    return kernel.simulate(a, b, torch.empty(64, 64))


@pytest.mark.parametrize("stages", [2, 3])
def test_copies_by_cp_async_name_their_slot(stages: int, tmp_path: Path) -> None:
    """Each iteration's copies fill the next slot; the wait for them says which, and an arrow in
    the trace leads from one to the other."""
    report = pipelined_by_cp_async(stages)
    copies = [e for e in report.events if e.kind == "cp.async"]
    each = len(copies) // 8
    assert [e.stage for e in copies] == [k % stages for k in range(8) for _ in range(each)]
    waits = [e.stage for e in report.events if e.kind == "wait" and e.name == "cp.async"]
    assert [w for w in waits if w is not None] == [k % stages for k in range(8)]
    assert [o.stage for o in report.overlaps()] == [None, *range(stages)]
    assert sum(o.copies for o in report.overlaps()[1:]) == len(copies)
    trace = json.loads(report.write_trace(tmp_path / "t.json").read_text("utf-8"))
    assert sum(e["ph"] == "s" for e in trace["traceEvents"]) == 8


@pytest.mark.parametrize("seed", range(4))
def test_times_do_not_depend_on_the_schedule(seed: int):
    late = gemm_report(3)
    other = gemm_report(3, schedule="random", seed=seed)
    assert other.cycles == late.cycles
    assert sorted(map(str, other.events)) == sorted(map(str, late.events))


def test_products_take_the_tensor_cores_peak():
    report = gemm_report(3)
    products = [e for e in report.events if e.track == TENSOR_CORES]
    flops = 2 * 128 * 128 * 512
    at_peak = flops / rates(SM90A.limits).tensor_flops
    assert sum(e.end - e.start for e in products) == pytest.approx(at_peak)
    assert all(a.end <= b.start for a, b in pairwise(products))


def test_a_wait_ends_when_its_copies_have_arrived():
    report = gemm_report(2)
    loads = [e for e in report.events if e.kind == "tma load" and e.stage == 0]
    waits = [e for e in report.events if e.role == "consumer" and e.name == "full[0]"]
    waits = [e for e in waits if e.kind == "wait"]
    assert len(waits) == 4 and [e.phase for e in waits] == [1, 2, 3, 4]
    for turn, wait in enumerate(waits):
        arrived = max(e.end for e in loads[3 * turn : 3 * turn + 3])
        assert wait.end == max(wait.start, arrived) + COSTS["wait"].latency


def test_another_block_can_be_timed():
    sizes = (256, 256, 128)
    arrays, _ = gemm_arrays(*sizes)
    report = simulate(hopper_gemm(*sizes), arrays, timeline_block=3)
    assert report.block == 3 and report.cycles > 0
    arrays, _ = gemm_arrays(*sizes)
    split = simulate(hopper_gemm(*sizes), arrays, timeline_block=3, max_memory=1)
    assert split.cycles == report.cycles


def test_long_programs_drop_events():
    b = Block(32)
    s, out, v = b.shared("S", (32,), "float32"), b.tensor("out", (32,)), b.local("v", 1)
    i = Var("i", lo=0, hi=20_000)
    b.add(
        loop(i, 20_001, b.store(s, b.tx, 1.0), b.store(v, 0, 2.0)),
        b.store(out, b.tx, load(s, b.tx)),
    )
    report = simulate(b.program(), {"out": np.zeros(32, np.float32)}, checks=False)
    assert len(report.events) == MAX_EVENTS and "more events" in str(report)


# ---- the trace file ----------------------------------------------------------------------------


def test_trace_is_what_perfetto_reads(tmp_path):
    path = gemm_report(3).write_trace(tmp_path / "trace.json")
    trace = json.loads(path.read_text("utf-8"))
    events = trace["traceEvents"]
    needs = {"X": {"ts", "dur"}, "i": {"ts", "s"}, "M": {"args"}, "s": {"id"}, "f": {"id", "bp"}}
    assert {e["ph"] for e in events} == set(needs)
    for event in events:
        assert {"name", "pid", "tid", *needs[event["ph"]]} <= set(event)
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert event["ts"] >= 0 and event.get("dur", 0) >= 0
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {"producer", "consumer", TMA, TENSOR_CORES} <= names
    assert {e["pid"] for e in events} == {0}
    starts = {e["id"] for e in events if e["ph"] == "s"}
    assert starts == {e["id"] for e in events if e["ph"] == "f"} and len(starts) == 8
    loads = [e for e in events if e.get("cat") == "tma load"]
    assert {e["args"]["stage"] for e in loads} == {0, 1, 2}
    assert {e["args"]["phase"] for e in events if e.get("cat") == "wait" and "phase" in e["args"]}


def test_slices_of_one_track_do_not_overlap(tmp_path):
    trace = json.loads(gemm_report(3).write_trace(tmp_path / "t.json").read_text("utf-8"))
    by_track: dict[int, list[tuple[float, float]]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            by_track.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for slices in by_track.values():
        slices.sort()
        for (_, end), (start, _) in pairwise(slices):
            assert end <= start + 1e-9


# ---- reports as data ---------------------------------------------------------------------------


def test_json_comes_back():
    report = gemm_report(2)
    again = SimReport.from_json(report.to_json())
    assert again.to_json() == report.to_json() and str(again) == str(report)
    assert again.events == report.events and again.findings == report.findings
    data = json.loads(report.to_json())
    assert data["schema"] == "tilelab.simreport/2" and data["ok"] is True


@pytest.mark.expects_findings
def test_findings_come_back():
    program = hopper_gemm(*SIZES)
    kernel = program.kernels[0]
    kept = [s for s in kernel.body.body if getattr(s, "intrinsic", None) is not I.SYNCTHREADS]
    assert len(kept) == len(kernel.body.body) - 1
    body = tuple(kept)
    program = replace(program, kernels=(replace(kernel, body=replace(kernel.body, body=body)),))
    arrays, _ = gemm_arrays(*SIZES)
    report = simulate(program, arrays)
    assert not report.ok
    again = SimReport.from_json(report.to_json())
    assert again.codes() == report.codes() and again.findings[0].loc == report.findings[0].loc
    assert str(again) == str(report)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "tilelab.simreport/99"}'])
def test_other_text_is_no_report(text: str):
    with pytest.raises(TileValueError, match="no simulation report"):
        SimReport.from_json(text)


def test_text_says_the_launch_and_every_access():
    text = str(gemm_report(3))
    assert "limited by shared memory" in text and "registers not known" in text
    assert "C written, 4 B a lane" in text and "beside compute" in text
    known = str(gemm_report(3, registers={"kernel": 255}))
    assert "255 registers" in known and "1 block " in known


# ---- parts ---------------------------------------------------------------------------------------


def test_intervals():
    assert union([(3, 4), (0, 1), (1, 2)]) == [(0, 2), (3, 4)]
    assert both([(0, 2), (3, 5)], [(1, 4)]) == [(1, 2), (3, 4)]
    assert length([(0, 2), (3, 4)]) == 3


def test_every_class_has_a_cost_with_its_source():
    assert set(COSTS) == set(get_args(Cost))
    assert all(c.source and c.what and c.issue >= 0 and c.latency >= 0 for c in COSTS.values())
    assert len(set(ENGINES)) == 4
