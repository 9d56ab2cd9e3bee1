"""Whole hand-written kernels: right results, no false alarm, schedules, speed and memory."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from tests.sim.programs import Block, ampere_gemm, hopper_gemm, load, loop, ref, when
from tilelab.ir import Var
from tilelab.sim import simulate
from tilelab.thread import intrinsics as I


def gemm_arrays(M: int, N: int, K: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(7)
    a = rng.standard_normal((M, K)).astype(np.float16)
    b = rng.standard_normal((K, N)).astype(np.float16)
    c = np.full((M, N), np.nan, np.float32)
    return {"A": a, "B": b, "C": c}, a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize("schedule", ["late", "eager", "random"])
@pytest.mark.parametrize(
    ("make", "sizes"), [(hopper_gemm, (256, 128, 320)), (ampere_gemm, (128, 192, 256))]
)
def test_gemm_is_right_and_finds_nothing(make, sizes, schedule):
    arrays, expected = gemm_arrays(*sizes)
    report = simulate(make(*sizes), arrays, schedule=schedule, seed=3)
    assert report.ok, str(report)
    np.testing.assert_allclose(arrays["C"], expected, rtol=1e-4, atol=1e-3)


def test_random_schedules_give_the_same_bits():
    program = hopper_gemm(128, 128, 256)
    results = []
    for seed in range(6):
        arrays, _ = gemm_arrays(128, 128, 256)
        assert simulate(program, arrays, schedule="random", seed=seed).ok
        results.append(arrays["C"].copy())
    assert all((r == results[0]).all() for r in results)


def test_counters_of_the_hopper_gemm():
    arrays, _ = gemm_arrays(128, 128, 256)
    report = simulate(hopper_gemm(128, 128, 256), arrays)
    amounts = report.total().amounts
    assert amounts["mma_flops"] == 2 * 128 * 128 * 256
    assert amounts["tma_bytes_read"] == 2 * 2 * 128 * 256
    assert amounts["global_bytes_written"] == 128 * 128 * 4
    assert report.modelled_ms > 0
    kinds = [e.kind for e in report.events]
    assert kinds.count("tma load") == 4 * 3 and kinds.count("wgmma") == 4 * 8
    assert json.loads(report.to_json())["ok"] is True
    assert "no findings" in str(report)


def test_swizzled_tiles_have_no_bank_conflict():
    arrays, _ = gemm_arrays(64, 64, 128)
    report = simulate(ampere_gemm(64, 64, 128), arrays)
    assert report.total().bank_conflict_degree == 1.0


def test_small_memory_splits_the_grid():
    sizes = (256, 256, 128)
    arrays, expected = gemm_arrays(*sizes)
    seen: list[tuple[int, int]] = []
    report = simulate(
        ampere_gemm(*sizes), arrays, max_memory=4 << 20, progress=lambda d, t: seen.append((d, t))
    )
    assert report.ok and len(seen) > 1 and seen[-1] == (16, 16)
    np.testing.assert_allclose(arrays["C"], expected, rtol=1e-4, atol=1e-3)


def test_big_gemm_is_fast():
    arrays, expected = gemm_arrays(1024, 1024, 1024)
    program = hopper_gemm(1024, 1024, 1024)
    started = time.process_time()
    report = simulate(program, arrays)
    assert report.ok and time.process_time() - started < 8
    np.testing.assert_allclose(arrays["C"], expected, rtol=1e-4, atol=1e-2)


def test_blocks_with_different_trip_counts_and_branches():
    b = Block(32, (6,))
    out = b.tensor("out", (6, 32))
    total, i = b.local("total", 1), Var("i")
    (bx,) = b.block
    b.add(
        b.store(total, 0, 0.0),
        loop(i, bx + 1, b.store(total, 0, load(total, 0) + (i * 32 + b.tx).astype("float32"))),
        when(
            bx % 2 == 0,
            b.store(out, (bx, b.tx), load(total, 0)),
            orelse=(b.store(out, (bx, b.tx), 0.0 - load(total, 0)),),
        ),
    )
    arrays = {"out": np.zeros((6, 32), np.float32)}
    assert simulate(b.program(), arrays).ok
    for block in range(6):
        expected = sum(i * 32 + np.arange(32) for i in range(block + 1))
        sign = 1 if block % 2 == 0 else -1
        np.testing.assert_array_equal(arrays["out"][block], sign * expected)


def test_lanes_with_different_trip_counts():
    b = Block(64)
    out, total, i = b.tensor("out", (64,)), b.local("total", 1), Var("i")
    b.add(
        b.store(total, 0, 0.0),
        loop(i, b.tx % 5, b.store(total, 0, load(total, 0) + 1.0)),
        b.store(out, b.tx, load(total, 0)),
    )
    arrays = {"out": np.zeros(64, np.float32)}
    assert simulate(b.program(), arrays).ok
    np.testing.assert_array_equal(arrays["out"], np.arange(64) % 5)


def test_warps_that_take_part_differ_between_blocks():
    """Warp w of block k shuffles only when w <= k: no rectangle of blocks and lanes."""
    b = Block(96, (3,))
    out, v = b.tensor("out", (3, 96)), b.local("v", 1)
    (bx,) = b.block
    b.add(
        b.store(v, 0, -1.0),
        when(b.tx // 32 <= bx, b.call(I.SHFL_XOR, ref(v, 0), b.tx.astype("float32"), 1)),
        b.store(out, (bx, b.tx), load(v, 0)),
    )
    arrays = {"out": np.zeros((3, 96), np.float32)}
    report = simulate(b.program(), arrays)
    assert report.ok, str(report)
    tx, block = np.arange(96), np.arange(3)[:, None]
    np.testing.assert_array_equal(arrays["out"], np.where(tx // 32 <= block, tx ^ 1, -1))


def test_barriers_inside_a_branch_on_the_block():
    """Both sides synchronise; blocks of one group take different sides."""
    b = Block(64, (4,))
    out, s = b.tensor("out", (4, 64)), b.shared("S", (64,), "float32")
    (bx,) = b.block

    def side(factor: float):
        return (
            b.store(s, b.tx, b.tx.astype("float32") * factor),
            b.call(I.SYNCTHREADS),
            b.store(out, (bx, b.tx), load(s, 63 - b.tx)),
        )

    b.add(when(bx % 2 == 0, *side(1.0), orelse=side(2.0)))
    arrays = {"out": np.zeros((4, 64), np.float32)}
    assert simulate(b.program(), arrays).ok
    for block in range(4):
        np.testing.assert_array_equal(arrays["out"][block], (63 - np.arange(64)) * (1 + block % 2))
