"""Persistent kernels: the ring runs on across tiles, whatever number of blocks is launched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T
from tests.kernels import HOPPER, build, gemm, inputs
from tilelab.sim import simulate

SIZES = (400, 328, 200)  # 4 x 3 tiles of 128 with tails on every axis, 4 steps of 64


ALWAYS = {"tl.persistent": True}


def run(kernel: Any, sizes: tuple[int, int, int], relu: bool = False, **options: Any) -> float:
    """The error of a simulated call; fails on any finding."""
    import torch

    a, b, reference = inputs(*sizes)
    reference = reference.clamp(min=0) if relu else reference
    c = torch.full(sizes[:2], float("nan"), dtype=torch.half)
    arrays = {"A": a.numpy(), "B": b.numpy(), "C": c.numpy()}
    report = simulate(kernel.program, arrays, **options)
    assert report.ok, str(report)
    return float((c.float() - reference).norm() / reference.norm())


@pytest.mark.parametrize("resident", [1, 5])
@pytest.mark.parametrize("schedule", ["late", "eager", "random"])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_any_number_of_blocks(stages: int, schedule: str, resident: int) -> None:
    kernel = build(*SIZES, stages=stages, configs=ALWAYS)
    assert kernel.program.kernels[0].launched is not None
    assert run(kernel, SIZES, resident_blocks=resident, schedule=schedule) < 1e-3


SWITCHES = ["persistent", "wgmma_in_flight", "fold_clear", "producer_warp", "tma_store"]


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_alone(switch: str) -> None:
    kernel = build(*SIZES, configs={**ALWAYS, f"tl.{switch}": False})
    assert run(kernel, SIZES, resident_blocks=2) < 1e-3
    default = build(*SIZES, configs=ALWAYS).get_kernel_source()
    assert kernel.get_kernel_source() != default


def test_blocks_wait_for_no_tile_that_is_not_there() -> None:
    kernel = build(*SIZES, configs=ALWAYS)
    text = kernel.get_kernel_source()
    assert "gridDim.x" in text and "blockIdx.y" not in text
    plain = build(*SIZES, configs={"tl.plain_pipeline": True}).get_kernel_source()
    assert "gridDim" not in plain and "blockIdx.y" in plain


def test_blocks_that_share_a_multiprocessor_stay_short() -> None:
    """Two blocks of the seed's tiles fit on one, a block of twice the tile does not."""
    assert "gridDim" not in build(*SIZES).get_kernel_source()
    assert "gridDim" in build(*SIZES, bn=256, threads=256, stages=4).get_kernel_source()


def test_tiles_of_different_lengths() -> None:
    """The ring's uses are counted in a register where tiles have different trip counts."""
    n, tile, step = 256, 64, 32

    @T.prim_func
    def lower_triangle(
        A: T.Tensor((n, n), "float16"),
        B: T.Tensor((n, n), "float16"),
        C: T.Tensor((n, n), "float32"),
    ):
        with T.Kernel(n // tile, n // tile, threads=128) as (bx, by):
            a = T.alloc_shared((tile, step), "float16")
            b = T.alloc_shared((step, tile), "float16")
            c = T.alloc_fragment((tile, tile), "float32")
            T.clear(c)
            for k in T.Pipelined((by + 1) * (tile // step), num_stages=3):
                T.copy(A[by * tile, k * step], a)
                T.copy(B[k * step, bx * tile], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * tile, bx * tile])

    kernel = tilelab.compile(lower_triangle, target=HOPPER, pass_configs=ALWAYS)
    assert "uses" in kernel.get_kernel_source()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float16) for _ in range(2))
    blocks = np.arange(n) // tile
    mask = blocks[:, None] >= blocks[None, :]
    want = (a * mask).astype(np.float32) @ b.astype(np.float32)
    for resident in (1, 3, 16):
        c = np.full((n, n), np.nan, np.float32)
        report = simulate(kernel.program, {"A": a, "B": b, "C": c}, resident_blocks=resident)
        assert report.ok, str(report)
        assert np.abs(c - want).max() < 1e-2


def test_dynamic_sizes() -> None:
    m, n, k = (T.dynamic(name) for name in "MNK")
    function = gemm(m, n, k, bm=64, bn=64, bk=32)
    kernel = tilelab.compile(function, target=HOPPER, pass_configs=ALWAYS)
    for sizes in [(200, 136, 72), (1, 8, 8), (330, 264, 0)]:
        assert run(kernel, sizes, resident_blocks=3) < 1e-3 or sizes[2] == 0


STAGED: dict[str, dict[str, Any]] = {
    "two consumers by rows": {"bn": 256, "threads": 256, "stages": 4},
    "two consumers by columns": {"bm": 64, "bn": 256, "threads": 256},
    "one part, one tile": {"bm": 64, "bn": 64, "bk": 256, "stages": 3},
    "two slabs": {"bm": 256, "bn": 128, "threads": 256, "stages": 2},
    "relu": {"relu": True},
}


@pytest.mark.parametrize("case", list(STAGED))
@pytest.mark.parametrize("schedule", ["late", "eager", "random"])
def test_accumulators_leave_by_tma(case: str, schedule: str) -> None:
    config = STAGED[case]
    kernel = build(*SIZES, **config, configs=ALWAYS)
    assert "tl::tma_store(" in kernel.get_kernel_source()
    error = run(kernel, SIZES, relu="relu" in config, resident_blocks=3, schedule=schedule)
    assert error < 1e-3


def test_staging_must_not_cost_a_block() -> None:
    """Small tiles keep their many blocks on a multiprocessor, and store from registers."""
    source = build(256, 256, 256, bm=64, bn=64, bk=32).get_kernel_source()
    assert "tl::tma_store(" not in source and "tl::quad_transpose(" in source


def test_a_tensor_that_is_used_again_is_written_at_once() -> None:
    """TMA stores arrive some time later: not where the kernel reads or rewrites the tensor."""

    def program(twice: bool) -> Any:
        @T.prim_func
        def main(
            A: T.Tensor((128, 256), "float16"),
            B: T.Tensor((256, 128), "float16"),
            C: T.Tensor((128, 128), "float16"),
        ):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((128, 256), "float16")
                b = T.alloc_shared((256, 128), "float16")
                c = T.alloc_fragment((128, 128), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, C)
                if twice:
                    for i, j in T.Parallel(128, 128):
                        C[i, j] = C[i, j] + 1

        return tilelab.compile(main, target=HOPPER).get_kernel_source()

    assert "tl::tma_store(" in program(False)
    assert "tl::tma_store(" not in program(True)
