"""Programs in the language whose findings or values the simulator must get right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.sim.programs import Block, at, lanes, load, ref, when
from tilelab.errors import TileValueError
from tilelab.ir import Var
from tilelab.sim import SimReport, simulate
from tilelab.thread import intrinsics as I

TARGETS = ("sm_80", "sm_90a")


def report_of(
    body: Any, a: np.ndarray, b: np.ndarray, blocks: int = 1, threads: int = 64,
    target: str = "sm_80", **options: Any,
) -> SimReport:  # fmt: skip
    """Run `body(A, B, bx)` on two int32 vectors."""

    @T.prim_func
    def main(A: T.Tensor((len(a),), "int32"), B: T.Tensor((len(b),), "int32")):
        with T.Kernel(blocks, threads=threads) as bx:
            body(A, B, bx)

    kernel = tilelab.compile(main, target=target)
    return simulate(kernel.program, {"A": a, "B": b}, **options)


def ints(n: int = 64) -> np.ndarray:
    return np.arange(n, dtype=np.int32)


def zeros(n: int = 64) -> np.ndarray:
    return np.zeros(n, np.int32)


# ---- values that later stores must not change --------------------------------------------------


@T.macro
def _kept_local(A, B, bx):
    tx = T.get_thread_binding()
    s = T.alloc_local((2,), "int32")
    s[0] = A[tx]
    s[1] = A[63 - tx]
    w = s[0] + 0
    s[0] = s[1]
    s[1] = w
    B[tx] = s[0] * 1000 + s[1]


@T.macro
def _swapped_local(A, B, bx):
    tx = T.get_thread_binding()
    s = T.alloc_local((2,), "int32")
    s[0] = A[tx]
    s[1] = A[63 - tx]
    s[0], s[1] = s[1], s[0]
    B[tx] = s[0] * 1000 + s[1]


@T.macro
def _kept_variables(A, B, bx):
    tx = T.get_thread_binding()
    x = T.alloc_var("int32")
    y = T.alloc_var("int32")
    x = A[tx]
    y = A[63 - tx]
    w = x
    x = y
    y = w
    B[tx] = x * 1000 + y


@T.macro
def _kept_shared(A, B, bx):
    tx = T.get_thread_binding()
    s = T.alloc_shared((64,), "int32")
    s[tx] = A[tx]
    w = s[tx]
    s[tx] = A[63 - tx]
    B[tx] = s[tx] * 1000 + w


@T.macro
def _kept_fragment(A, B, bx):
    s = T.alloc_fragment((64,), "int32")
    T.copy(A, s)
    for i in T.Parallel(64):
        w = s[i]
        s[i] = A[63 - i]
        B[i] = s[i] * 1000 + w


@T.macro
def _kept_global(A, B, bx):
    tx = T.get_thread_binding()
    B[tx] = A[tx]
    w = B[tx]
    B[tx] = A[63 - tx]
    B[tx] = B[tx] * 1000 + w


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "body",
    [_kept_local, _swapped_local, _kept_variables, _kept_shared, _kept_fragment, _kept_global],
    ids=["local", "swap", "variables", "shared", "fragment", "global"],
)
def test_a_bound_load_is_a_copy(body, target):
    out = zeros()
    assert report_of(body, ints(), out, target=target).ok
    np.testing.assert_array_equal(out, ints()[::-1] * 1000 + ints())


def test_a_loop_keeps_its_extent():
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        n = T.alloc_var("int32")
        n = A[tx]
        for _ in T.serial(n):
            n = 0
            B[tx] = B[tx] + 1

    out = zeros()
    assert report_of(body, ints(), out).ok
    np.testing.assert_array_equal(out, ints())


# ---- loops -------------------------------------------------------------------------------------


@pytest.mark.expects_findings
def test_steps_are_counted_and_limited():
    """A loop that ends, with too few steps: the same verdict on every machine."""

    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        B[tx] = 0
        for i in T.serial(1000):
            B[tx] += A[tx]

    report = report_of(body, ints(), zeros())
    assert report.ok and 1000 <= report.steps < 10_000
    limited = report_of(body, ints(), zeros(), max_steps=report.steps)
    assert limited.ok and limited.steps == report.steps
    stopped = report_of(body, ints(), zeros(), max_steps=report.steps - 1)
    assert stopped.codes() == ("TL2010",) and "simulator steps" in stopped.findings[0].message
    assert stopped.findings[0].loc is not None
    with pytest.raises(TileValueError, match="TL2115"):
        report_of(body, ints(), zeros(), max_steps=0)


def test_a_long_loop_of_threads_that_leave_one_by_one():
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        x = T.alloc_var("int32", init=0)
        while x < A[tx] * 30:
            x += 1
        B[tx] = x

    out = zeros(256)
    assert report_of(body, ints(256), out, threads=256).ok
    np.testing.assert_array_equal(out, ints(256) * 30)


def _left(limit: int) -> int:
    return sum(i for i in range(100) if i <= limit and i % 3 != limit % 3)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("loop", ["for", "while"])
def test_break_and_continue_of_some_threads(loop, target):
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        total = T.alloc_var("int32", init=0)
        if loop == "for":
            for i in T.serial(100):
                if i > A[tx]:
                    break
                if i % 3 == A[tx] % 3:
                    continue
                total += i
        else:
            i = T.alloc_var("int32", init=-1)
            while i < 99:
                i += 1
                if i > A[tx]:
                    break
                if i % 3 == A[tx] % 3:
                    continue
                total += i
        B[bx * 64 + tx] = total

    out = zeros(128)
    assert report_of(body, ints(), out, blocks=2, target=target).ok
    np.testing.assert_array_equal(out, [_left(n) for n in range(64)] * 2)


def test_break_in_nested_loops():
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        total = T.alloc_var("int32", init=0)
        for i in T.serial(10):
            if i > A[tx]:
                break
            for j in T.serial(10):
                if j > i:
                    break
                total += 1
            total += 100
        B[tx] = total

    out = zeros()
    assert report_of(body, ints(), out).ok
    rounds = np.minimum(ints() + 1, 10)
    np.testing.assert_array_equal(out, rounds * (rounds + 1) // 2 + 100 * rounds)


@pytest.mark.parametrize("target", TARGETS)
def test_blocks_break_out_of_a_loop_with_barriers(target):
    @T.macro
    def body(A, B, bx):
        s = T.alloc_shared((64,), "int32")
        total = T.alloc_fragment((64,), "int32")
        T.clear(total)
        for i in T.serial(8):
            if i > A[bx]:
                break
            for j in T.Parallel(64):
                s[j] = j + i
            for j in T.Parallel(64):
                total[j] += s[63 - j]
        for j in T.Parallel(64):
            B[bx * 64 + j] = total[j]

    out = zeros(256)
    report = report_of(body, ints(), out, blocks=4, target=target)
    assert report.ok, str(report)
    j = np.arange(64)
    expected = [sum(63 - j + i for i in range(b + 1)) for b in range(4)]
    np.testing.assert_array_equal(out, np.concatenate(expected))


@pytest.mark.expects_findings
def test_a_barrier_that_threads_broke_away_from():
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        for i in T.serial(4):
            if tx < 32:
                break
            T.sync_threads()
        B[tx] = 1

    assert report_of(body, ints(), zeros()).codes() == ("TL2008",)


# ---- bounds and arithmetic ---------------------------------------------------------------------


def past_the_end(kind: str) -> Block:
    """64 threads that touch 8 bytes each of a shared buffer with room for half of them."""
    b = Block(64)
    A, s, v = b.tensor("A", (128,)), b.shared("s", (64,), "float32"), b.local("v", 2)
    i = Var("i", lo=0, hi=1)
    b.add(lanes(i, 2, b.store(v, i, 1.0)), lanes(i, 2, b.store(s, i * 32 + b.tx % 32, 1.0)))
    b.add(b.call(I.SYNCTHREADS))
    place = ref(s, b.tx * 2, count=2)
    if kind == "read":
        b.add(b.copy(ref(v, 0, count=2), place, 2, loc=at(50)))
    elif kind == "write":
        b.add(b.copy(place, ref(v, 0, count=2), 2, loc=at(50)))
    else:
        source = ref(A, b.tx * 2, count=2)
        b.add(b.call(I.cp_async(8), place, source, loc=at(50)))
        b.add(b.call(I.CP_ASYNC_COMMIT), b.call(I.cp_async_wait(0)))
    return b


@pytest.mark.expects_findings
@pytest.mark.parametrize("kind", ["read", "write", "cp.async"])
def test_runs_past_the_end_of_a_shared_buffer(kind):
    program = past_the_end(kind).program()
    report = simulate(program, {"A": np.zeros(128, np.float32)})
    assert report.codes() == ("TL2001",), str(report)
    found = report.findings[0]
    assert found.loc.line == 50 and found.buffer == "s" and found.index == (64,)


@pytest.mark.expects_findings
def test_a_run_whose_last_element_is_past_the_end():
    b = Block(32)
    s, v = b.shared("s", (34,), "float32"), b.local("v", 4)
    b.add(b.store(s, b.tx, 1.0), when(b.tx < 2, b.store(s, b.tx + 32, 1.0)), b.call(I.SYNCTHREADS))
    b.add(when(b.tx < 9, b.copy(ref(v, 0, count=4), ref(s, b.tx * 4, count=4), 4, loc=at(50))))
    found = simulate(b.program(), {}).findings
    assert [x.code for x in found] == ["TL2001"] and found[0].buffer == "s"


@pytest.mark.expects_findings
def test_races_that_no_barrier_of_the_program_prevents():
    b = Block(64)
    A, B, s = b.tensor("A", (64,)), b.tensor("B", (64,)), b.shared("s", (64,), "float32")
    b.add(
        b.copy(ref(s, b.tx), ref(A, b.tx), 1, loc=at(1)),
        b.copy(ref(B, b.tx), ref(s, 63 - b.tx), 1, loc=at(2)),
        b.store(B, b.tx, load(s, 63 - b.tx), loc=at(3)),
    )
    zero = np.zeros(64, np.float32)
    report = simulate(b.program(), {"A": np.arange(64, dtype=np.float32), "B": zero})
    hints = {x.loc.line: x.hint for x in report.findings}
    assert "a bug of tilelab" in hints[2] and hints[3] == "put a barrier between the two accesses"


@pytest.mark.expects_findings
def test_integer_division_by_zero():
    @T.macro
    def body(A, B, bx):
        tx = T.get_thread_binding()
        if A[tx] != 7:
            B[tx] = 100 // (A[tx] - 7)  # guarded: no finding
        B[tx] = 100 % (A[tx] - 33)

    report = report_of(body, ints(), zeros())
    assert report.codes() == ("TL2012",)
    found = report.findings[0]
    assert (found.warp, found.lane) == (1, 1) and "B[tx] = 100 %" in found.loc.excerpt()
