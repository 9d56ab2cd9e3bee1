"""Each class of bug is found: code, line, buffer and index; correct twins are not reported."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.sim.programs import Block, ampere_gemm, at, hopper_gemm, lanes, load, loop, ref, when
from tests.sim.test_gemm import gemm_arrays
from tilelab.errors import TileTypeError, TileValueError
from tilelab.ir import Const, Var, as_expr, walk
from tilelab.ir.rewrite import rewrite
from tilelab.sim import findings as f
from tilelab.sim import simulate
from tilelab.thread import Comment, Invoke, Program
from tilelab.thread import intrinsics as I


def run(b: Block, /, **arrays: np.ndarray):
    return simulate(b.program(), arrays)


def only(report, code: str):
    """The single finding, which must have this code."""
    assert report.codes() == (code,), str(report)
    return report.findings[0]


# ---- bounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "index"), [(1, 32), (-1, -1), (5, 32)])
def test_global_write_out_of_bounds(shift, index):
    b = Block(32, (2,))
    out = b.tensor("out", (2, 32))
    b.add(b.store(out, (b.block[0], b.tx + shift), 1.0, loc=at(40)))
    array = np.zeros((2, 32), np.float32)
    found = only(run(b, out=array), f.OUT_OF_BOUNDS)
    assert found.loc.line == 40 and found.buffer == "out"
    assert found.index == (0, index) and found.block == (0,) and found.lane == index - shift
    assert found.hint and "axis 1" in found.message


def test_global_read_out_of_bounds_stops_only_its_block():
    b = Block(32, (3,))
    src, out = b.tensor("src", (64,)), b.tensor("out", (3, 32))
    v = b.local("v", 1)
    (bx,) = b.block
    b.add(b.store(v, 0, load(src, bx * 32 + b.tx), loc=at(7)), b.store(out, (bx, b.tx), load(v, 0)))
    arrays = {"src": np.arange(64, dtype=np.float32), "out": np.full((3, 32), -1, np.float32)}
    found = only(run(b, **arrays), f.OUT_OF_BOUNDS)
    assert found.block == (2,) and found.index == (64,) and found.loc.line == 7
    np.testing.assert_array_equal(arrays["out"][:2].ravel(), np.arange(64))
    assert (arrays["out"][2] == -1).all()


@pytest.mark.parametrize("scope", ["shared", "local"])
def test_on_chip_out_of_bounds(scope):
    b = Block(32)
    buffer = b.shared("S", (16,), "float32") if scope == "shared" else b.local("S", 16)
    b.add(b.store(buffer, b.tx, 1.0, loc=at(3)))
    found = only(run(b), f.OUT_OF_BOUNDS)
    assert found.index == (16,) and found.loc.line == 3 and found.lane == 16


def test_guarded_accesses_are_fine():
    b = Block(64, (2,))
    src, out = b.tensor("src", (100,)), b.tensor("out", (100,))
    i = b.block[0] * 64 + b.tx
    b.add(when(i < 100, b.store(out, i, load(src, i) + 1.0)))
    src_array, out_array = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    assert run(b, src=src_array, out=out_array).ok
    np.testing.assert_array_equal(out_array, src_array + 1)


# ---- uninitialised -----------------------------------------------------------------------------


def test_uninitialised_register_and_shared_read():
    b = Block(32)
    out, v, s = b.tensor("out", (32,)), b.local("v", 4), b.shared("S", (64,), "float32")
    b.add(
        b.store(v, 0, 1.0),
        b.store(s, b.tx, 1.0),
        b.store(out, b.tx, load(v, 0) + load(s, b.tx)),
        b.store(out, b.tx, load(v, 2), loc=at(50)),
        b.store(out, b.tx, load(s, b.tx + 32), loc=at(51)),
    )
    report = run(b, out=np.zeros(32, np.float32))
    assert [(x.code, x.loc.line, x.buffer) for x in report.findings] == [
        (f.UNINITIALISED, 50, "v"), (f.UNINITIALISED, 51, "S"),
    ]  # fmt: skip
    assert report.findings[0].index == (2,)
    assert report.findings[1].index == (32,) and report.findings[1].lane == 0


# ---- races -------------------------------------------------------------------------------------


def shift_through_shared(barrier: bool) -> Block:
    b = Block(64)
    out, s = b.tensor("out", (64,)), b.shared("S", (64,), "float32")
    b.add(b.store(s, b.tx, b.tx.astype("float32"), loc=at(1)))
    if barrier:
        b.add(b.call(I.SYNCTHREADS))
    b.add(b.store(out, b.tx, load(s, 63 - b.tx), loc=at(2)))
    return b


def test_read_write_race_and_its_correct_twin():
    out = np.zeros(64, np.float32)
    assert run(shift_through_shared(True), out=out).ok
    np.testing.assert_array_equal(out, 63 - np.arange(64))
    found = only(run(shift_through_shared(False), out=out), f.RACE)
    assert found.loc.line == 2 and found.other.line == 1 and found.buffer == "S"


def test_write_after_read_needs_a_barrier_too():
    b = shift_through_shared(True)
    s = b.slots[0].buffer
    b.add(b.store(s, b.tx, 0.0, loc=at(9)))
    found = only(run(b, out=np.zeros(64, np.float32)), f.RACE)
    assert found.loc.line == 9 and found.other.line == 2


@pytest.mark.parametrize(("value", "codes"), [(lambda tx: 5.0, ()), (lambda tx: tx, (f.RACE,))])
def test_several_writers_of_one_element(value, codes):
    b = Block(64)
    s = b.shared("S", (4,), "float32")
    b.add(b.store(s, 1, as_expr(value(b.tx)).astype("float32")))
    assert run(b).codes() == codes


def test_named_barriers_order_their_warps():
    for whole in (True, False):
        b = Block(128)
        out, s = b.tensor("out", (64,)), b.shared("S", (64,), "float32")
        sync = b.call(I.NAMED_BARRIER_SYNC, 1, 64)
        body = [b.store(s, b.tx, 1.0), *([sync] if whole else []),
                b.store(out, b.tx, load(s, 63 - b.tx))]  # fmt: skip
        b.add(when(b.tx < 64, *body))
        assert run(b, out=np.zeros(64, np.float32)).codes() == (() if whole else (f.RACE,))


# ---- barriers ----------------------------------------------------------------------------------


def test_divergent_barrier():
    b = Block(64)
    b.add(when(b.tx < 32, b.call(I.SYNCTHREADS, loc=at(5))))
    found = only(run(b), f.BARRIER_DIVERGENCE)
    assert found.loc.line == 5 and "32 of 64 threads" in found.message


def test_deadlock_says_who_waits_on_what():
    b = Block(64)
    bar = b.barriers("full", 2)
    b.add(
        when(b.tx == 0, b.call(I.MBARRIER_INIT, ref(bar, 1), 2)),
        b.call(I.SYNCTHREADS),
        when(b.tx == 0, b.call(I.MBARRIER_ARRIVE, ref(bar, 1))),
        b.call(I.MBARRIER_WAIT, ref(bar, 1), 0, loc=at(12)),
    )
    started = time.process_time()
    found = only(run(b), f.DEADLOCK)
    assert time.process_time() - started < 1
    assert found.loc.line == 12
    assert "waits for parity 0 of full[1]" in found.message
    assert "1 of 2 arrivals missing" in found.message


def test_partial_warp_collective():
    b = Block(32)
    v = b.local("v", 1)
    b.add(when(b.tx < 16, b.call(I.SHFL_XOR, ref(v, 0), 1.0, 1, loc=at(4))))
    assert only(run(b), f.PARTIAL_WARP).loc.line == 4


# ---- asynchronous work: delete one synchronisation at a time -----------------------------------


def without(program: Program, name: str, which: int = 0) -> tuple[Program, int]:
    """The program without one instruction, and that instruction's line."""
    hits = [n for n in walk(program) if isinstance(n, Invoke) and n.intrinsic.name == name]
    victim = hits[which]
    gone = rewrite(program, lambda n: Comment("") if n is victim else None)
    return gone, victim.loc.line


@pytest.mark.parametrize(
    ("name", "which", "codes"),
    [
        ("mbarrier_wait", 0, {f.UNINITIALISED, f.MISSING_WAIT}),
        ("mbarrier_wait", 1, {f.BARRIER_MISUSE}),
        ("mbarrier_expect_tx", 0, {f.DEADLOCK}),
        ("mbarrier_arrive", 0, {f.DEADLOCK}),
        ("mbarrier_init", 0, {f.BARRIER_MISUSE}),
        ("mbarrier_init_fence", 0, {f.RACE}),
        ("syncthreads", 0, {f.RACE}),
        ("warpgroup_arrive", 0, {f.MISSING_WAIT}),
        ("warpgroup_commit", 0, {f.MISSING_WAIT}),
        ("warpgroup_wait_0", 0, {f.MISSING_WAIT}),
    ],
)
def test_hopper_gemm_without_one_synchronisation(name, which, codes):
    arrays, _ = gemm_arrays(128, 128, 384)
    program, _ = without(hopper_gemm(128, 128, 384), name, which)
    report = simulate(program, arrays)
    assert codes <= set(report.codes()) or (codes & set(report.codes())), str(report)
    assert bool(codes) is not report.ok


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("cp_async_wait_1", {f.MISSING_WAIT}),
        ("syncthreads", {f.RACE}),
        ("cp_async_commit", {f.MISSING_WAIT}),
    ],
)
def test_ampere_gemm_without_one_synchronisation(name, codes):
    arrays, _ = gemm_arrays(64, 64, 384)
    program, _ = without(ampere_gemm(64, 64, 384), name)
    report = simulate(program, arrays)
    assert codes <= set(report.codes()), str(report)
    buffers = {x.buffer for x in report.findings}
    assert buffers <= {"A_shared", "B_shared"}


@pytest.mark.parametrize("extra", [-16, 16])
def test_wrong_expected_byte_count(extra):
    program = hopper_gemm(128, 128, 256)
    right = 2 * 64 * 256
    wrong = rewrite(
        program,
        lambda n: (
            Const(right + extra, n.dtype) if isinstance(n, Const) and n.value == right else None
        ),
    )
    arrays, _ = gemm_arrays(128, 128, 256)
    report = simulate(wrong, arrays)
    assert f.EXPECTED_BYTES in report.codes(), str(report)
    found = next(x for x in report.findings if x.code == f.EXPECTED_BYTES)
    assert "16 bytes" in found.message


def tma_store_kernel(
    fence: bool = True, wait: bool = True, offset: int = 0, x: int = 0, y: int = 0
) -> Block:
    b = Block(64)
    out = b.tensor("out", (8, 64), "float16")
    s = b.shared("S", (16, 64), "float16")
    box = b.tensor_map(out, (64, 8), 0)
    i = Var("i", lo=0, hi=7)
    b.add(loop(i, 8, b.store(s, (i, b.tx), (i * 64 + b.tx).astype("float16"))))
    if fence:
        b.add(b.call(I.FENCE_PROXY_ASYNC))
    store = [b.call(I.tma_store(2), box, ref(s, 0, offset), x, y, loc=at(70)),
             b.call(I.TMA_STORE_COMMIT)]  # fmt: skip
    if wait:
        store.append(b.call(I.tma_store_wait_read(0)))
    b.add(b.call(I.SYNCTHREADS), when(b.tx == 0, *store))
    return b


def test_tma_store_and_what_it_needs():
    out = np.zeros((8, 64), np.float16)
    assert run(tma_store_kernel(), out=out).ok
    np.testing.assert_array_equal(out.ravel(), np.arange(512))
    found = only(run(tma_store_kernel(fence=False), out=out), f.RACE)
    assert "fence.proxy.async" in found.message and found.loc.line == 70
    assert only(run(tma_store_kernel(wait=False), out=out), f.MISSING_WAIT).loc.line == 70
    assert only(run(tma_store_kernel(offset=8), out=out), f.MISALIGNED).loc.line == 70
    assert only(run(tma_store_kernel(x=4), out=out), f.MISALIGNED).loc.line == 70
    assert only(run(tma_store_kernel(y=-1), out=out), f.MISALIGNED).loc.line == 70


def test_misaligned_vector_access():
    b = Block(32)
    src, v = b.tensor("src", (512,), "float16"), b.local("v", 8, "float16")
    b.add(b.copy(ref(v, 0, count=8), ref(src, b.tx * 8 + 4, count=8), 8, loc=at(8)))
    guarded = when(b.tx < 31, *b.body)
    b.body = [guarded]
    found = only(run(b, src=np.zeros(512, np.float16)), f.MISALIGNED)
    assert found.loc.line == 8 and found.buffer == "src" and "16 bytes" in found.message


# ---- counters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("stride", "degree"), [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1), (0, 1)])
def test_bank_conflict_degree(stride, degree):
    b = Block(32)
    s = b.shared("S", (33 * 32,), "float32")
    b.add(b.store(s, b.tx * stride, 1.0))
    assert run(b).total().bank_conflict_degree == degree


@pytest.mark.parametrize(("stride", "ratio"), [(1, 1), (2, 2), (8, 8)])
def test_sector_ratio(stride, ratio):
    b = Block(32)
    src, v = b.tensor("src", (256,)), b.local("v", 1)
    b.add(b.store(v, 0, load(src, b.tx * stride)))
    assert run(b, src=np.zeros(256, np.float32)).total().sector_ratio == ratio


# ---- the call itself ---------------------------------------------------------------------------


def test_checks_can_be_switched_off():
    b = shift_through_shared(False)
    arrays = {"out": np.zeros(64, np.float32)}
    assert simulate(b.program(), arrays, checks=False).ok
    assert simulate(b.program(), arrays, checks={"bounds"}).ok
    assert not simulate(b.program(), arrays, checks={"races"}).ok


def test_wrong_arguments_name_the_parameter():
    b = Block(32)
    b.tensor("src", (32,))
    with pytest.raises(TileValueError, match="'src'"):
        simulate(b.program(), {})
    with pytest.raises(TileTypeError, match="src is float64"):
        simulate(b.program(), {"src": np.zeros(32)})
    with pytest.raises(TileValueError, match="schedule"):
        simulate(b.program(), {"src": np.zeros(32, np.float32)}, schedule="odd")  # type: ignore
    with pytest.raises(TileValueError, match="check"):
        simulate(b.program(), {"src": np.zeros(32, np.float32)}, checks={"odd"})


def test_equal_findings_are_counted_once():
    b = Block(32)
    out, i = b.tensor("out", (32,)), Var("i")
    v = b.local("v", 8)
    b.add(loop(i, 8, b.store(out, b.tx, load(v, i), loc=at(6))), lanes(i, 8, b.store(v, i, 0.0)))
    found = only(run(b, out=np.zeros(32, np.float32)), f.UNINITIALISED)
    assert found.times == 8 and "(8 times)" in str(found)
