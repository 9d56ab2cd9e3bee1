"""Tiles that are never live together share bytes, and only then; barriers keep their order."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tilelab.errors import SharedMemoryOverflow
from tilelab.ir import Node, Seq, map_children
from tilelab.sim import simulate
from tilelab.target import parse_target
from tilelab.thread.nodes import Invoke, Program
from tilelab.views.memory import memory_view

MERGE = {"tl.enable_aggressive_shared_memory_merge": True}
TARGETS = ("sm_80", "sm_90a")
ROWS, WIDTH, STEPS = 64, 128, 4


def attention_like(stages: int, width: int = WIDTH, threads: int = 128) -> Any:
    """Two products in a loop; `first` is dead when `last` is made."""

    @T.prim_func
    def two_products(
        A: T.Tensor((ROWS, width), "float16"),
        B: T.Tensor((STEPS * ROWS, width), "float16"),
        C: T.Tensor((ROWS, width), "float16"),
    ):
        with T.Kernel(1, threads=threads) as _:
            first = T.alloc_shared((ROWS, width), "float16")
            tile = T.alloc_shared((ROWS, width), "float16")
            last = T.alloc_shared((ROWS, width), "float16")
            scores = T.alloc_fragment((ROWS, ROWS), "float32")
            narrow = T.alloc_fragment((ROWS, ROWS), "float16")
            total = T.alloc_fragment((ROWS, width), "float32")
            T.copy(A, first)
            T.clear(total)
            for k in T.Pipelined(STEPS, num_stages=stages):
                T.copy(B[k * ROWS : (k + 1) * ROWS, :], tile)
                T.clear(scores)
                T.gemm(first, tile, scores, transpose_B=True)
                T.copy(scores, narrow)
                T.gemm(narrow, tile, total)
            T.copy(total, last)
            T.copy(last, C)

    return two_products


def half_written() -> Any:
    """`late` is read whole though only half of it was written."""

    @T.prim_func
    def reads_too_much(A: T.Tensor((32, 32), "float32"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32) as _:
            early = T.alloc_shared((32, 32), "float32")
            late = T.alloc_shared((32, 32), "float32")
            kept = T.alloc_fragment((32, 32), "float32")
            T.copy(A, early)
            T.copy(early, kept)
            T.copy(kept[0:16, :], late[0:16, :])
            T.copy(late, C)

    return reads_too_much


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(ROWS, WIDTH).half() * 0.1, torch.randn(STEPS * ROWS, WIDTH).half() * 0.1


def offsets(kernel: Any) -> dict[str, tuple[int, int]]:
    """First and last byte of each tile."""
    slots = kernel.program.kernels[0].shared
    return {s.buffer.root.name: (s.offset, s.offset + s.num_bytes) for s in slots if s.dynamic}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [0, 2])
def test_a_dead_tile_gives_its_bytes_to_a_later_one(target: str, stages: int) -> None:
    kernel = tilelab.compile(attention_like(stages), out_idx=-1, target=target, pass_configs=MERGE)
    a, b = inputs()
    product = (a.float() @ b.float().T).half().float() @ b.float()
    torch.testing.assert_close(kernel(a, b).float(), product, atol=2e-3, rtol=2e-3)
    places = offsets(kernel)
    assert places["first"] == places["last"]
    assert places["tile"][0] >= places["first"][1] or places["tile"][1] <= places["first"][0]
    reasons = [note.text for name, note in kernel.trace.notes() if name == "insert-sync"]
    assert any("takes over the bytes of first" in text for text in reasons)


def test_tiles_lie_apart_where_they_fit() -> None:
    kernel = tilelab.compile(attention_like(2), out_idx=-1, target="sm_90a")
    spans = sorted(offsets(kernel).values())
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(spans))


def test_sharing_makes_a_kernel_fit_and_can_be_switched_off() -> None:
    wide = attention_like(2, width=512, threads=256)
    kernel = tilelab.compile(wide, out_idx=-1, target="sm_90a")
    view = memory_view(kernel.program.kernels[0], parse_target("sm_90a"))
    assert view.total_bytes <= view.shared_per_block
    rows = {row.name: row for row in view.rows}
    assert rows["last"].shares_with == ("first",)
    with pytest.raises(SharedMemoryOverflow):
        tilelab.compile(
            wide, target="sm_90a", pass_configs={"tl.disable_shared_memory_reuse": True}
        )


@pytest.mark.expects_findings
@pytest.mark.parametrize("target", TARGETS)
def test_without_the_barrier_the_simulator_sees_the_race(target: str) -> None:
    two_groups = attention_like(2, threads=256)
    kernel = tilelab.compile(two_groups, out_idx=-1, target=target, pass_configs=MERGE)
    program = without(kernel.program, "takes over the bytes")
    a, b = inputs()
    arrays = {"A": a.numpy(), "B": b.numpy(), "C": np.zeros((ROWS, WIDTH), np.float16)}
    found = simulate(program, arrays, {}).findings
    assert any("not ordered after" in f.message and f.buffer == "last" for f in found)


@pytest.mark.expects_findings
@pytest.mark.parametrize("configs", [{}, MERGE])
def test_what_the_earlier_owner_wrote_is_no_value_of_the_later(configs: Any) -> None:
    kernel = tilelab.compile(half_written(), out_idx=-1, target="sm_90a", pass_configs=configs)
    if configs:
        assert len(set(offsets(kernel).values())) == 1
    found = kernel.simulate(torch.ones(32, 32)).findings
    assert any("late is read before it is written" in f.message for f in found)


def without(program: Program, reason: str) -> Program:
    """A program less the barriers that stand for a reason."""

    def visit(node: Node) -> Node:
        if isinstance(node, Seq):
            kept = [s for s in node.body if not (isinstance(s, Invoke) and reason in s.reason)]
            node = replace(node, body=tuple(kept))
        return map_children(node, visit)

    kernels = [replace(k, body=visit(k.body)) for k in program.kernels]
    return replace(program, kernels=tuple(kernels))  # type: ignore[arg-type]


def two_sums(threads: int) -> Any:
    """Rows summed and their largest found in a loop, each through the scratch of its own op."""

    @T.prim_func
    def loop_of_reductions(A: T.Tensor((4, 8, 512), "float32"), C: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, threads=threads) as _:
            tile = T.alloc_fragment((8, 512), "float32")
            total = T.alloc_fragment((8,), "float32")
            largest = T.alloc_fragment((8,), "float32")
            for k in T.serial(4):
                T.copy(A[k, :, :], tile)
                T.reduce_sum(tile, total, dim=1)
                T.reduce_max(tile, largest, dim=1)
                for i in T.Parallel(8):
                    C[k, i] = total[i] + largest[i]

    return loop_of_reductions


@pytest.mark.parametrize("target", TARGETS)
def test_scratch_of_one_op_is_reused_within_a_loop(target: str) -> None:
    x = torch.randn(4, 8, 512)
    right = x.sum(2) + x.amax(2)
    sizes: list[int] = []
    for configs in ({}, MERGE):
        kernel = tilelab.compile(two_sums(256), out_idx=-1, target=target, pass_configs=configs)
        torch.testing.assert_close(kernel(x), right, atol=1e-4, rtol=1e-4)
        sizes.append(kernel.program.kernels[0].dynamic_bytes)
    assert sizes[1] * 2 == sizes[0]


def test_early_loads_stay_in_place_where_tiles_must_share() -> None:
    kernel = tilelab.compile(attention_like(2, width=512, threads=256), out_idx=-1, target="sm_90a")
    early = [n.text for name, n in kernel.trace.notes() if name == "warp-specialize"]
    assert any(t.startswith("A -> first: not loaded by the producer") for t in early)
    roomy = tilelab.compile(attention_like(2), out_idx=-1, target="sm_90a")
    early = [n.text for name, n in roomy.trace.notes() if name == "warp-specialize"]
    assert any(t.startswith("A -> first: loaded by the producer") for t in early)
