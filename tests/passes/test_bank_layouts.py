"""Layouts of shared tiles by counted bank conflicts: right, quiet, and only where they are free."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER, gemm
from tests.ops.transpose_programs import by_thread, column_sums, transpose
from tilelab.layout import padded, row_major
from tilelab.layout.user import make_swizzled_layout

OFF = {"tl.bank_layouts": False}


def _values(shape: tuple[int, ...], dtype: str) -> Any:
    count = torch.Size(shape).numel()
    return (torch.arange(count) % 101).reshape(shape).to(getattr(torch, dtype))


def _degree(program: Any, shape: tuple[int, int], dtype: str, **options: Any) -> float:
    """How often a shared access waits for its banks (1: never), the result checked."""
    kernel = tilelab.compile(program, out_idx=[-1], **options)
    x = _values(shape, dtype)
    report = kernel.simulate(x)
    assert report.ok, str(report)
    assert torch.equal(report.outputs[0], x.T)
    return report.total().bank_conflict_degree


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize(
    ("dtype", "size", "most", "before"),
    [
        ("float16", 32, 1.0, 3.0), ("float16", 64, 1.0, 5.0), ("float16", 128, 1.7, 10.0),
        ("float32", 32, 1.0, 4.0), ("float32", 64, 1.5, 8.0), ("int8", 64, 1.0, 3.0),
    ],
)  # fmt: skip
def test_transpose(dtype: str, size: int, most: float, before: float, target: Any) -> None:
    program = transpose(256, 128, size, size, dtype)
    assert _degree(program, (256, 128), dtype, target=target) <= most
    assert _degree(program, (256, 128), dtype, target=target, pass_configs=OFF) >= before


def test_rows_of_no_whole_swizzle_are_padded() -> None:
    """20 rows, of which no swizzle's period is a part."""
    program = transpose(40, 64, 20, 32, "float32")
    kernel = tilelab.compile(program, target=HOPPER)
    layout = kernel.trace.layout_of("tile").layout
    assert layout.swizzle is None and layout.row_pitch > 32
    degree = _degree(program, (40, 64), "float32", target=HOPPER)
    assert degree < _degree(program, (40, 64), "float32", target=HOPPER, pass_configs=OFF)


def test_reason() -> None:
    decision = tilelab.compile(transpose(64, 64, 64, 64), target=HOPPER).trace.layout_of("tile")
    assert "wavefronts instead of" in decision.reason


def test_layouts_of_the_program_are_kept() -> None:
    for mine in (padded((64, 64), 16, 2), row_major((64, 64), 16)):
        program = transpose(64, 64, 64, 64, layout=lambda tile, mine=mine: mine)
        assert tilelab.compile(program, target=HOPPER).trace.layout_of("tile").layout == mine
    program = transpose(64, 64, 64, 64, layout=make_swizzled_layout)
    found = tilelab.compile(program, target=HOPPER).trace.layout_of("tile").layout
    assert found.swizzle is not None and found.swizzle.shift == 3


def test_a_threads_own_accesses_keep_rows() -> None:
    """What a program writes thread by thread has the banks that it says."""
    kernel = tilelab.compile(by_thread(), out_idx=[-1], target=HOPPER)
    assert "tile" not in [d.buffer.root.name for d in kernel.trace.layouts]
    assert torch.equal(kernel(_values((32, 32), "float32")), _values((32, 32), "float32").T)


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
def test_operands_of_products_are_the_instructions(target: Any) -> None:
    kernel = tilelab.compile(gemm(128, 128, 128), target=target)
    for name in ("A_shared", "B_shared"):
        assert "wavefronts instead of" not in kernel.trace.layout_of(name).reason


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
def test_pipelined_tiles(target: Any) -> None:
    """TMA keeps the layout that it knows; slots of cp.async are laid out like one tile."""
    kernel = tilelab.compile(column_sums(), out_idx=[-1], target=target)
    x = _values((4, 64, 64), "float16")
    report = kernel.simulate(x)
    assert report.ok, str(report)
    assert torch.equal(report.outputs[0], x.float().sum(0).T)
    reasons = [d.reason for d in kernel.trace.layouts if d.buffer.root.name == "tile"]
    assert any("wavefronts" in r for r in reasons) == (target == AMPERE)


@settings(max_examples=25)
@given(
    rows=st.sampled_from([8, 16, 24, 32, 64, 96]),
    cols=st.sampled_from([8, 16, 36, 40, 64, 128]),
    dtype=st.sampled_from(["float32", "float16", "int8", "float64"]),
    threads=st.sampled_from([32, 96, 128, 256]),
)
def test_any_tile(rows: int, cols: int, dtype: str, threads: int) -> None:
    """Any tile is right, and waits no longer than its rows would."""
    assume(rows * cols >= threads)
    program = transpose(rows * 2, cols * 2, rows, cols, dtype, threads)
    shape = (rows * 2, cols * 2)
    mine = _degree(program, shape, dtype, target=HOPPER)
    assert mine <= _degree(program, shape, dtype, target=HOPPER, pass_configs=OFF) + 1e-9


@pytest.mark.parametrize("stages", [0, 4])
def test_tiles_of_one_element(stages: int) -> None:
    """Found by tests.fuzz flow, seed 2043: a copy of one element has no axis to be spread over."""

    @T.prim_func
    def main(A: T.Tensor((7, 7), "int64"), B: T.Tensor((3, 1), "float32")):
        with T.Kernel(3, threads=128) as bx:
            f = T.alloc_fragment((1, 1), "float64")
            s = T.alloc_shared((1, 1), "float32")
            r = T.alloc_shared((1, 1), "float32")
            T.fill(f, 1)
            for _k in T.Pipelined(5, num_stages=stages):
                T.copy(A[0:1, 0:1], s)
                for i, j in T.Parallel(1, 1):
                    r[i, j] = f[i, i] + s[i, j]
            T.copy(f, s)
            T.copy(r, B[bx : bx + 1, 0:1])

    kernel = tilelab.compile(main, target=AMPERE, out_idx=[-1])
    report = kernel.simulate(torch.full((7, 7), 4))
    assert report.ok, str(report)
    assert report.outputs[0].flatten().tolist() == [5.0, 5.0, 5.0]
