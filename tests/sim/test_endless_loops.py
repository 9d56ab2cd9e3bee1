"""While loops without an end are found soon, and those with one are not."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.sim.test_programs import ints, report_of, zeros


@pytest.mark.expects_findings
def test_a_loop_that_nothing_ends_is_found_at_once():
    @T.macro
    def body(A, B, bx):
        x = T.alloc_var("int32", init=0)
        while x < 10:
            B[0] = 1

    started = time.process_time()
    report = report_of(body, ints(), zeros())
    assert report.codes() == ("TL2010",) and time.process_time() - started < 5
    assert "what the condition reads" in report.findings[0].hint


@pytest.mark.expects_findings
def test_a_loop_that_runs_too_long_is_given_up():
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        x = T.alloc_var("int32", init=0)
        while x >= 0:
            x = (x + 1) % 1000003
        B[tx] = x

    report = report_of(body, ints(), zeros(), loop_seconds=0.5)
    assert report.codes() == ("TL2010",) and "loop_seconds" in report.findings[0].hint


@pytest.mark.expects_findings
@pytest.mark.parametrize("turn", [1, 7, 500, 3000])
def test_a_loop_whose_registers_come_back_has_no_end(turn: int):
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        x = T.alloc_var("int32", init=0)
        while x < A[tx] + 5000:
            x = (x + 1) % turn
        B[tx] = x

    report = report_of(body, ints(), zeros(), loop_seconds=1e9)
    assert report.codes() == ("TL2010",) and "what they were before" in report.findings[0].message


def test_long_loops_that_end_are_not_reported():
    """Some threads leave before others; another's variables stay the same for long."""

    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        x = T.alloc_var("int32", init=0)
        y = T.alloc_var("int32", init=0)
        while x < 1000 + 40 * tx:
            x = x + 1
            if x > 1500:
                y = y + 1
        B[tx] = x + y

    out = zeros()
    assert report_of(body, ints(), out).ok
    count = 1000 + 40 * np.arange(len(out))
    np.testing.assert_array_equal(out, count + np.maximum(count - 1500, 0))


@pytest.mark.expects_findings
def test_memory_that_comes_back_has_no_end_either():
    """Which time alone would not tell: it has enough."""

    @T.macro
    def body(A, B, bx):
        while B[0] < 5:
            B[0] = (B[0] + 1) % 3
        A[0] = B[0]

    report = report_of(body, ints(), zeros(), threads=1, loop_seconds=60)
    assert report.codes() == ("TL2010",) and "what they were before" in report.findings[0].message


@pytest.mark.expects_findings
@pytest.mark.parametrize("ends", [True, False])
def test_a_loop_is_given_up_that_comes_no_nearer_to_its_end(
    ends: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tilelab.sim.endless.PATIENCE", 100)

    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        x = T.alloc_var("int32", init=0)
        y = T.alloc_var("int32", init=0)
        while x < 1500 and y >= 0:
            y = y + 1
            x = x + 1 if ends else (y * y) >> 4 & 63
        B[tx] = y

    report = report_of(body, ints(), zeros(), loop_seconds=0.0)
    assert report.ok if ends else report.codes() == ("TL2010",)
    assert ends or "loop_seconds" in report.findings[0].hint


@pytest.mark.parametrize("waits", [True, False])
def test_a_long_loop_that_ends_by_a_counter_is_not_reported(waits: bool):
    """What its iterations write comes back, and the counter by which it ends does not."""

    @T.macro
    def body(A, B, bx):
        x = T.alloc_var("int32", init=0)
        y = T.alloc_var("int32", init=0)
        while x // 1500 % 4 < 2:
            if waits:
                T.sync_warp()
            y = (y + 1) % 3
            x = x + 1
        B[0] = x

    out = zeros()
    assert report_of(body, ints(), out, threads=1).ok and out[0] == 3000


@pytest.mark.expects_findings
@pytest.mark.parametrize(("blocks", "come"), [(64, 64), (64, 65), (200, 201), (2000, 2001)])
def test_a_barrier_of_the_grid_that_is_never_completed(blocks: int, come: int):
    """All blocks ask in vain a few times; none waits until every other one has given up, and those
    for which there is no room never begin."""

    @T.prim_func
    def main(B: T.Tensor((128,), "int32")):
        with T.Kernel(blocks, threads=128):
            tx = T.get_thread_binding()
            if tx == 0:
                T.atomic_add(B[0], 1)
                while T.atomic_load(B[0]) < come:
                    T.evaluate(0)
            T.sync_threads()

    kernel, started = tilelab.compile(main, target="sm_90a"), time.process_time()
    report = kernel.simulate(zeros(128))
    if come == blocks:
        assert report.ok, str(report)
        return
    assert report.codes() == ("TL2010",), str(report)
    (times,) = re.findall(r"has run (\d+) times", report.findings[0].message)
    assert int(times) < 10 and time.process_time() - started < 4


def test_who_waits_at_the_end_of_a_branch_goes_on_before_a_question_is_in_vain():
    @T.prim_func
    def main(F: T.Tensor((1,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            if tx == 0:
                while T.atomic_load(F[0], memory_order="acquire") == 0:
                    T.evaluate(0)
            if tx == 32:
                T.atomic_store(F[0], 1, memory_order="release")
            B[tx] = tx

    torch = pytest.importorskip("torch")
    kernel = tilelab.compile(main, target="sm_90a")
    for schedule in ("late", "eager", "random"):
        tensors = [torch.zeros(n, dtype=torch.int32) for n in (1, 64)]
        report = kernel.simulate(*tensors, schedule=schedule)
        assert report.ok, str(report)
