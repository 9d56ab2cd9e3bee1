"""carver's suggestions, the analyzer's counts, pictures of layouts."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.host.test_surface import code_of
from tests.kernels import build
from tilelab import layout
from tilelab.carver import MatmulTemplate, template
from tilelab.carver.arch import CDNA, CUDA, driver
from tilelab.carver.roller.rasterization import NoRasterization
from tilelab.errors import TileValueError
from tilelab.layout import swizzled
from tilelab.target import DEFAULT_TARGET, TARGETS
from tilelab.tools import Analyzer, plot_layout
from tilelab.tools.cuda import iket


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (128, 256, 64), (64, 8192, 1024)])
def test_suggestions_fit_the_chip(target: str, shape: tuple[int, int, int]) -> None:
    chip = CUDA(target)
    hints = MatmulTemplate(*shape).with_arch(chip).recommend_hints(topk=12)
    assert 0 < len(hints) <= 12
    assert [h.modelled_ms for h in hints] == sorted(h.modelled_ms for h in hints)
    for hint in hints:
        rows, cols = (b // w for b, w in zip(hint.block, hint.warp, strict=True))
        assert rows * cols * chip.warp_size == hint.threads
        assert hint.shared_bytes <= chip.smem_cap and hint.blocks_per_sm >= 1
        assert hint.registers <= chip.target.limits.registers_per_thread
        stage = (hint.block[0] + hint.block[1]) * hint.rstep[0] * 2
        assert hint.shared_bytes == stage * hint.pipeline_stage


def test_suggestions_follow_the_problem() -> None:
    chip = CUDA("sm_90a")
    large = MatmulTemplate(8192, 8192, 8192).with_arch(chip).recommend_hints(1)[0]
    small = MatmulTemplate(256, 256, 4096).with_arch(chip).recommend_hints(1)[0]
    assert np.prod(large.block) > np.prod(small.block)
    assert large.rasterization_plan is not NoRasterization
    assert small.rasterization_plan is NoRasterization
    a, b = torch.randn(8, 4), torch.randn(6, 4)
    assert torch.allclose(MatmulTemplate(8, 6, 4).equivalent_function()(a, b), a @ b.T)


def test_suggested_configs_are_those_of_the_hand_written_kernels() -> None:
    """The tile sizes that measured best on an H200, in the order of the model."""
    for size in (2048, 4096, 8192):
        best = tilelab.suggest_config(size, size, size, target="sm_90a")[0]
        sizes = (best.block_M, best.block_N, best.block_K, best.num_stages, best.threads)
        assert sizes == (128, 256, 64, 4, 256)
        assert (len(best.why) == 4 and "512 tiles" in str(best)) or size != 4096
    skinny = tilelab.suggest_config(64, 8192, 8192, target="sm_90a")[0]
    assert (skinny.block_M, skinny.block_K) == (64, 128)


def test_suggestions_compile_without_spills() -> None:
    for target in TARGETS:
        for config in tilelab.suggest_config(512, 512, 512, target=target, count=2):
            tiles = {"bm": config.block_M, "bn": config.block_N, "bk": config.block_K}
            kernel = build(
                512, 512, 512, **tiles, stages=config.num_stages, threads=config.threads,
                target={"kind": "cuda", "arch": target},
            )  # fmt: skip
            assert not kernel.cubin.warnings


def test_suggestions_refuse_what_is_no_problem() -> None:
    with pytest.raises(TileValueError, match="K is 0"):
        tilelab.suggest_config(64, 64, 0)
    with pytest.raises(TileValueError, match="no tile of float16 fits"):
        tilelab.suggest_config(64, 64, 8, target="sm_90a")


def test_questions_to_the_device() -> None:
    if not torch.cuda.is_available():
        assert driver.get_num_sms() == DEFAULT_TARGET.limits.sms
        assert driver.get_device_name() == DEFAULT_TARGET.name
    assert driver.get_max_dynamic_shared_size_bytes() >= 48 << 10
    assert driver.get_registers_per_block() == 65_536
    assert driver.get_shared_memory_per_block(format="kb") >= 48


def test_what_is_not_suggested_says_so() -> None:
    for absent in (CDNA, template.ConvTemplate, template.GEMVTemplate, iket.mark):
        assert code_of(absent) == "TL1654"


def test_layouts_by_name() -> None:
    assert layout.make_full_bank_swizzled_layout(8, 64, 16) == swizzled((8, 64), 16, 128)
    assert layout.make_quarter_bank_swizzled_layout(8, 16, 16) == swizzled((8, 16), 16, 32)
    held = layout.make_gemm_fragment_8x8()
    flipped = layout.make_gemm_fragment_8x8_transposed()
    for i, j in np.ndindex(8, 8):
        assert held.thread_of((i, j)) == flipped.thread_of((j, i)) == i * 4 + j // 2
        assert held.register_of((i, j)) == flipped.register_of((j, i)) == j % 2
    assert code_of(layout.make_volta_swizzled_layout) == "TL1654"


# ---- analyzer -----------------------------------------------------------------------------------


def product(m: int, n: int, k: int, block: int = 64) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):  # fmt: skip
        with T.Kernel(n // block, m // block, threads=128) as (bx, by):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((32, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for ko in T.Pipelined(k // 32, num_stages=2):
                T.copy(A[by * block, ko * 32], a)
                T.copy(B[ko * 32, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return main


def test_work_is_counted() -> None:
    found = Analyzer.analysis(product(256, 128, 96), CUDA("sm_90a"))
    assert found.total_flops == 2 * 256 * 128 * 96
    loads = (256 // 64) * (128 // 64) * (96 // 32) * 2 * 64 * 32 * 2
    assert found.total_global_bytes == loads + 256 * 128 * 2
    assert found.estimated_time > 0 and found.expected_tflops > 0


def test_elements_and_branches_are_counted() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), n: T.int32):
        with T.Kernel(4, threads=128) as bx:
            if bx < 2:
                for i in T.Parallel(128):
                    A[i] = A[i] + 1.0

    assert Analyzer.analysis(main, CUDA("sm_80")).total_global_bytes == 4 * 128 * 8


def test_what_cannot_be_counted_says_so() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            for i in T.Parallel(128):
                A[bx * 128 + i] = 0.0

    assert code_of(lambda: Analyzer.analysis(main, CUDA("sm_80"))) == "TL1656"
    assert code_of(lambda: Analyzer.analysis(3, CUDA("sm_80"))) == "TL1656"


# ---- pictures -----------------------------------------------------------------------------------


def test_a_map_is_drawn(tmp_path: Path) -> None:
    swapped = T.Layout([4, 8], lambda i, j: (j, i))
    grid = plot_layout(swapped, tmp_path, "transposed", formats="all")
    assert grid.labels[1] == "4" and (grid.rows, grid.cols) == (4, 8)
    for suffix in ("svg", "png", "pdf"):
        assert (tmp_path / f"transposed.{suffix}").stat().st_size > 500
    ElementTree.parse(tmp_path / "transposed.svg")
    places = plot_layout(swapped, tmp_path, "out", formats="svg", view="output")
    assert places.labels[:3] == ("0,0", "1,0", "2,0")


def test_fragments_and_swizzles_are_drawn(tmp_path: Path) -> None:
    fragment = T.Fragment([16, 8], lambda i, j: (i % 8 * 4 + j // 2, i // 8 * 2 + j % 2))
    grid = plot_layout(fragment, tmp_path, "f", formats=["svg"])
    assert grid.labels[0] == "T0:0" and grid.labels[8 * 8] == "T0:2"
    held = plot_layout(fragment, tmp_path, "f", formats="svg", view="output", colormap="viridis")
    assert held.labels[0] == "0,0" and held.labels[2] == "8,0"
    tile = plot_layout(swizzled((8, 64), 16, 128), tmp_path, "s", formats="svg")
    assert tile.labels[64] == "72"


def test_what_cannot_be_drawn_says_so(tmp_path: Path) -> None:
    rows = T.Layout([4, 8], lambda i, j: i * 8 + j)
    assert code_of(lambda: plot_layout([1, 2], tmp_path, formats="svg")) == "TL1657"
    assert code_of(lambda: plot_layout(rows, tmp_path, formats="bmp")) == "TL1657"
    assert code_of(lambda: plot_layout(rows, tmp_path, formats="svg", view="side")) == "TL1657"
    small = lambda: plot_layout(  # noqa: E731
        rows, tmp_path, formats="svg", view="output", grid_shape=(2, 2)
    )
    assert code_of(small) == "TL1657"
