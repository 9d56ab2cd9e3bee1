"""Exponentials that run beside the second of two products: how many, and that nothing is lost."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.attention import compiled, error, expected, mask_first, operands
from tilelab import compile as compile_program
from tilelab.ir import ParallelFor, Seq, Var, walk
from tilelab.passes.parted_loops import in_two, part_of, points_of, rejoined
from tilelab.sim.simulate import simulate

WIDE = {"block_M": 128, "block_N": 128, "threads": 256}
OFF = {"tl.beside_product": False}


def _beside(kernel: Any) -> list[str]:
    return [n.text for _, n in kernel.trace.notes() if "run beside" in n.text]


def _points(kernel: Any) -> int:
    """Exponentials of a thread in front of the wait for the second product, in its inner loop."""
    text = kernel.get_kernel_source()
    body = text.split("for (int ko = ")[1]
    ahead = body.split("warpgroup_wait<1>")[1].split("warpgroup_wait<0>")[0]
    loops = re.findall(r"for \(int i = (\d+); i < (\d+); \+\+i\) \{\s*\w+\[i\] = tl::exp2_", ahead)
    return sum(int(end) - int(start) for start, end in loops)


@pytest.mark.parametrize(
    "shape, how, points",
    [
        ((1, 512, 1, 128), WIDE, 16),  # 512 cycles, less 256 for the maxima of two warpgroups
        ((1, 512, 1, 128), {**WIDE, "causal": False}, 16),
        ((1, 512, 1, 96), WIDE, 8),
        ((1, 512, 1, 64), WIDE, 0),  # the maxima take all of it
        ((1, 576, 1, 64), {"block_M": 192, "block_N": 128, "threads": 384}, 0),
        ((1, 256, 1, 64), {}, 0),  # one warpgroup: shuffles take what maxima leave
        ((1, 256, 1, 256), {"block_M": 128, "block_N": 64, "threads": 256}, 24),
    ],
)
def test_as_many_as_the_product_covers(shape: Any, how: dict[str, Any], points: int) -> None:
    kernel = compiled(shape, **how)
    assert _points(kernel) == points
    assert len(_beside(kernel)) == (1 if points else 0)
    if points:
        assert _beside(kernel)[0].startswith(f"{points} of a thread's ")


def test_the_switch_puts_all_behind_the_wait() -> None:
    kernel = compiled((1, 512, 1, 128), OFF, **WIDE)
    assert _points(kernel) == 0 and not _beside(kernel)


def test_values_that_the_product_reads_are_not_written_beside_it() -> None:
    exact = compiled((1, 512, 1, 128), {"tl.precise_math": True}, **WIDE)
    assert not _beside(exact)  # probabilities are rounded at once into the product's operand


@pytest.mark.parametrize("seed", range(2))
def test_parts_compute_what_the_whole_does(seed: int) -> None:
    shape = (1, 400, 1, 128)
    q, k, v = operands(shape, seed)
    outs: list[np.ndarray] = []
    for configs in (None, OFF):
        kernel = compiled(shape, configs, **WIDE)
        out = np.full(shape, np.nan, np.float16)
        report = simulate(kernel.program, {"Q": q, "K": k, "V": v, "Out": out},
                          schedule="random", seed=seed)  # fmt: skip
        assert not report.findings
        outs.append(out)
    assert np.array_equal(*outs)
    assert error(outs[0], expected(q, k, v)) < 1e-3


def test_values_computed_in_place() -> None:
    shape = (1, 400, 1, 128)
    program = mask_first(shape, 128, 128, 256)
    kernel = compile_program(program, out_idx=[3], target="sm_90a")
    assert _beside(kernel)
    q, k, v = operands(shape)
    assert error(kernel(q, k, v), expected(q, k, v)) < 1e-3


def _loops(node: Any) -> list[ParallelFor]:
    return [n for n in walk(node) if isinstance(n, ParallelFor)]


def test_parts_can_be_joined_again() -> None:
    kernel = compiled((1, 512, 1, 128), **WIDE)
    (parted,) = kernel.trace.step("overlap-gemms").after.kernels
    parts = [loop for loop in _loops(parted) if part_of(loop) is not None]
    whole = rejoined(parted)
    assert len(parts) == 2 and len(_loops(whole)) == len(_loops(parted)) - 1
    assert all(part_of(loop) is None for loop in _loops(whole))


@pytest.mark.parametrize("count", [1, 3, 8, 64])
def test_parts_are_all_of_a_loop(count: int) -> None:
    whole = ParallelFor((Var("i", lo=0, hi=511),), (512,), Seq(()))
    first, rest = in_two(whole, 16, 64)
    (start, size), (next_start, others) = points_of(first, count), points_of(rest, count)
    assert start == 0 and next_start == size == count // 4 and size + others == count
    assert points_of(whole, count) == (0, count) and in_two(whole, 64, 64) == (whole,)


def test_slots_are_added_to_descriptors_that_stay() -> None:
    text = compiled((1, 512, 1, 128), **WIDE).get_kernel_source()
    _, inner, *_ = text.split("for (int ko = ")
    found = re.findall(r"wgmma_descriptor<128>\((\w+)(.*?), \d+, 1024\) \+\s+u64\(u32\(", inner)
    assert {name for name, _ in found} >= {"K_shared", "V_shared"}
    assert not any("%" in place for _, place in found)
