"""While loops without an end are found soon, and those with one are not."""

from __future__ import annotations

import time

import numpy as np
import pytest

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


def test_a_loop_that_comes_nearer_to_its_end_has_all_the_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tilelab.sim.endless.PATIENCE", 100)

    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        x = T.alloc_var("int32", init=0)
        y = T.alloc_var("int32", init=0)
        while x < 1500 and y >= 0:
            x = x + 1
            y = y + x % 7
        B[tx] = y

    assert report_of(body, ints(), zeros(), loop_seconds=0.0).ok


@pytest.mark.expects_findings
def test_a_loop_that_comes_no_nearer_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tilelab.sim.endless.PATIENCE", 100)

    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        x = T.alloc_var("int32", init=0)
        y = T.alloc_var("int32", init=0)
        while x < 1500:
            y = y + 1
            x = y % 64
        B[tx] = y

    report = report_of(body, ints(), zeros(), loop_seconds=0.0)
    assert report.codes() == ("TL2010",) and "loop_seconds" in report.findings[0].hint
