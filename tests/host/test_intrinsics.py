"""tilelang.intrinsics under its several names: swizzles of shared tiles, emitters that refuse."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tilelab import intrinsics, shim
from tilelab.errors import TileError
from tilelab.layout import swizzled


@pytest.fixture
def answered() -> Iterator[None]:
    shim.install()
    yield
    shim.uninstall()


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize(
    "name",
    [
        "tilelang.intrinsics", "tilelang.intrinsics.mma_layout", "tilelang.cuda.intrinsics",
        "tilelang.cuda.intrinsics.layout.mma_layout",
        "tilelang.cuda.intrinsics.macro.mma_macro_generator",
    ],
)  # fmt: skip
def test_names_of_several_versions(name: str) -> None:
    found = importlib.import_module(name)
    assert found.make_mma_swizzle_layout is intrinsics.make_mma_swizzle_layout
    with pytest.raises(ModuleNotFoundError, match=r"tilelang\.cuda\.other"):
        importlib.import_module("tilelang.cuda.other")


@pytest.mark.parametrize(
    ("dtype", "columns", "width"),
    [("float16", 64, 128), ("float16", 32, 64), ("int8", 32, 32), ("float32", 32, 128)],
)
def test_places_are_the_swizzle_of_the_chip(dtype: str, columns: int, width: int) -> None:
    row, column = np.indices((16, columns))
    to_row, to_column = intrinsics.get_swizzle_layout(row, column, columns, dtype)
    bits = T.dtype(dtype).bits
    assert np.array_equal(
        to_row * columns + to_column, swizzled((16, columns), bits, width).offsets
    )


def test_rows_that_no_swizzle_fits() -> None:
    with pytest.raises(TileError, match="TL1301: rows of 12 elements"):
        intrinsics.get_swizzle_layout(0, 0, 12, "float16")
    with pytest.raises(TileError, match=r"TL1301: .* of 96 bytes"):
        intrinsics.get_swizzle_layout(0, 0, 96, "float16", 96)


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("columns", [64, 96, 24])
def test_a_tile_with_the_layout(target: object, columns: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((32, columns), "float16"), B: T.Tensor((32, columns), "float16")):
        with T.Kernel(1, threads=64) as _:
            tile = T.alloc_shared((32, columns), "float16")
            T.annotate_layout({tile: intrinsics.make_mma_swizzle_layout(tile)})
            T.copy(A, tile)
            for i, j in T.Parallel(32, columns):
                B[i, j] = tile[31 - i, j]

    a = torch.randn(32, columns).half()
    b = tilelab.compile(main, out_idx=[1], target=target)(a)
    assert torch.equal(b, a.flip(0))


def test_emitters_refuse() -> None:
    with pytest.raises(TileError, match="TL1654") as caught:
        intrinsics.TensorCoreIntrinEmitter(a_dtype="float16")
    assert "use T.gemm" in str(caught.value)
    assert intrinsics.get_mma_micro_size("int8") == (16, 16, 32)
