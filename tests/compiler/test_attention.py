"""Attention: the structure that its plain source gets, and that it computes what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelab
from tests.attention import compiled, error, expected, mask_first, operands
from tilelab.passes.plan_pipeline import PRODUCER_REGISTERS, consumer_registers, drawing_budgets
from tilelab.sim.simulate import simulate

PLAIN = {"tl.plain_pipeline": True}


@pytest.mark.parametrize("configs", [None, PLAIN], ids=["fast", "plain"])
@pytest.mark.parametrize(
    "shape, how",
    [
        ((1, 256, 1, 64), {}),
        ((1, 256, 2, 64), {"causal": False}),
        ((1, 200, 1, 64), {}),
        ((1, 77, 1, 64), {"causal": False}),
        ((1, 300, 1, 128), {"block_M": 128, "block_N": 128, "threads": 256}),
        ((1, 400, 1, 64), {"block_M": 192, "block_N": 128, "threads": 384}),
    ],
)
def test_attention_on_the_simulator(shape: Any, how: dict[str, Any], configs: Any) -> None:
    q, k, v = operands(shape)
    got = compiled(shape, configs, **how)(q, k, v)
    assert error(got, expected(q, k, v, how.get("causal", True))) < 1e-3


def test_operands_of_two_gemms_have_two_rings() -> None:
    names = [b.name for b in compiled((1, 256, 1, 64)).trace.pipelines[0].barriers]
    assert names[:4] == ["full K_shared", "empty K_shared", "full V_shared", "empty V_shared"]
    plain = compiled((1, 256, 1, 64), PLAIN).trace.pipelines[0]
    assert [b.name for b in plain.barriers] == ["full", "empty"]
    assert plain.barriers[0].expected_bytes == 2 * 64 * 64 * 2


def _text(configs: Any = None, **how: Any) -> str:
    return compiled((1, 256, 1, 64), configs, **how).get_kernel_source()


@pytest.mark.parametrize(
    "key, off, sign",
    [
        ("tl.overlap_gemms", False, "warpgroup_wait<1>"),
        ("tl.split_loops", False, "ko_masked"),
        ("tl.precise_math", True, "exp2_approx"),
        ("tl.early_loads", False, "mbarrier_Q_shared"),
        ("tl.split_rings", False, "mbarrier_V_shared"),
    ],
)
def test_each_step_has_a_switch(key: str, off: bool, sign: str) -> None:
    assert sign in _text()
    assert sign not in _text({key: off})


def test_unmasked_iterations_compare_nothing() -> None:
    text = _text()
    plain, masked = text.split("for (int ko = ")[1:3]
    assert "wgmma_ss" in plain and ">= ko" not in plain
    assert ">= ko" in masked


def test_a_mask_that_holds_everywhere_needs_no_second_loop() -> None:
    assert "ko_masked" not in _text(causal=False)


@pytest.mark.parametrize("blocks, drawn", [(1, True), (3, True), (3, False)])
def test_uneven_tiles_on_few_blocks(blocks: int, drawn: bool) -> None:
    shape = (1, 192, 48, 64)  # more tiles than multiprocessors
    kernel = compiled(shape, {"tl.tile_counter": drawn})
    assert ("tile_counter" in kernel.get_kernel_source()) == drawn
    assert [v.name for v in kernel.program.kernels[0].block_vars] == ["block"]
    q, k, v = operands(shape)
    out = np.full(shape, np.nan, np.float16)
    arrays = {"Q": q, "K": k, "V": v, "Out": out}
    report = simulate(kernel.program, arrays, resident_blocks=blocks)
    assert not report.findings
    assert error(out, expected(q, k, v)) < 1e-3


def test_warpgroups_leave_out_what_the_mask_denies_to_their_rows() -> None:
    how = {"block_M": 192, "block_N": 64, "threads": 384}
    text = _text(**how)
    assert "ko_own = min(" in text and "warpgroup" in text.split("ko_own = ")[1].split(";")[0]
    assert "ko_own" not in _text({"tl.own_trips": False}, **how)
    assert "ko_own" not in _text({"tl.precise_math": True}, **how)  # 0 * inf would be NaN
    assert "ko_own" not in _text(causal=False, **how)


def test_another_way_to_write_it_gets_the_same_structure() -> None:
    shape = (1, 400, 1, 64)
    program = mask_first(shape, 192, 128, 384)
    kernel = tilelab.compile(program, out_idx=[3], target="sm_90a")
    notes = " ".join(n.text for _, n in kernel.trace.notes())
    for sign in ("runs together with", "leaves the loop", "keeps its part", "masks only where"):
        assert sign in notes
    q, k, v = operands(shape)
    assert error(kernel(q, k, v), expected(q, k, v)) < 1e-3


@pytest.mark.parametrize("schedule, seed", [("random", 0), ("random", 1)])
def test_warpgroups_that_leave_early_still_free_their_slots(schedule: Any, seed: int) -> None:
    shape = (1, 300, 1, 64)
    kernel = compiled(shape, block_M=256, block_N=32, threads=512)  # up to 6 iterations less
    q, k, v = operands(shape)
    out = np.full(shape, np.nan, np.float16)
    arrays = {"Q": q, "K": k, "V": v, "Out": out}
    report = simulate(kernel.program, arrays, schedule=schedule, seed=seed)
    assert not report.findings
    assert error(out, expected(q, k, v)) < 1e-3


def test_row_sums_are_joined_once() -> None:
    text, joined = _text(), _text({"tl.defer_sums": False})
    assert joined.count("shuffle_xor(per_row_1") == 6  # the first iteration and two loops
    assert text.count("shuffle_xor(per_row_1") == 2
    behind = text.split("warpgroup_wait<0>")[-1]
    assert behind.count("shuffle_xor(per_row_1") == 2


@pytest.mark.parametrize("threads", [128, 256, 384, 512])
def test_register_budgets_fit_the_pool(threads: int) -> None:
    groups = threads // 128
    pool = 65536 // (threads + 128) // 8 * 8 * (groups + 1)
    budgets = drawing_budgets(threads)
    assert groups * budgets["consumer"] + budgets["producer"] <= pool
    assert groups * consumer_registers(threads) + PRODUCER_REGISTERS <= pool


def test_a_multiprocessor_for_every_tile_needs_no_persistence() -> None:
    assert len(compiled((1, 256, 1, 64)).program.kernels[0].block_vars) == 3


def test_longest_tiles_come_first() -> None:
    notes = [n.text for _, n in compiled((1, 256, 4, 64)).trace.notes()]
    assert any("the longest first" in n for n in notes)
    even = [n.text for _, n in compiled((1, 256, 4, 64), causal=False).trace.notes()]
    assert not any("the longest first" in n for n in even)
