"""T.reshape and T.view in the simulator, for both feature sets; and layouts of views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.view_programs import PROGRAMS
from tilelab.errors import TileError
from tilelab.layout import Fragment, ViewLayout, padded, reshaped, swizzled, tables


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs(program: Any, target: dict[str, str]) -> None:
    torch.manual_seed(0)
    program("cpu", target)


@pytest.mark.parametrize(
    ("shape", "bits"), [((2048,), 16), ((64, 32), 16), ((4096,), 8), ((1024,), 32)]
)
@pytest.mark.parametrize("base", [swizzled((32, 64), 16), swizzled((32, 64), 16, 32)], ids=str)
def test_views_name_the_same_bytes(shape: tuple[int, ...], bits: int, base: Any) -> None:
    view = ViewLayout(base, shape, bits)
    size = bits // 8
    mine = view.offsets.reshape(-1)[:, None] * size + np.arange(size)
    its = base.offsets.reshape(-1)[:, None] * 2 + np.arange(2)
    assert np.array_equal(mine.ravel(), its.ravel())
    last = tuple(e - 1 for e in shape)
    assert view.element_at(int(view.offset_of(last))) == last


def test_a_view_must_not_tear_elements() -> None:
    with pytest.raises(ValueError, match="torn apart"):
        ViewLayout(padded((8, 6), 8, 1), (12,), 32)
    with pytest.raises(ValueError, match="is no view"):
        ViewLayout(swizzled((32, 64), 16), (100,), 16)


@pytest.mark.parametrize("shape", [(64,), (4, 16), (1, 64, 1), (2, 2, 16)])
def test_fragments_keep_their_places(shape: tuple[int, ...]) -> None:
    layout = Fragment.blocked((8, 8), 16, 2)
    seen = reshaped(layout, shape)
    assert seen is not None
    for mine, its in zip(tables(seen), tables(layout), strict=True):
        assert np.array_equal(mine.ravel(), its.ravel())


def test_digits_that_cannot_be_cut() -> None:
    assert reshaped(Fragment.blocked((8, 6), 16), (12, 4)) is None
    assert reshaped(Fragment.blocked((7,), 4), (7, 1)) is not None


def _error(what: str) -> TileError:
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 16), "float32"), S: T.StridedTensor((8, 16), (32, 1), "float32")):
            with T.Kernel(1, threads=32) as _:
                s = T.alloc_shared((8, 16), "float32")
                f = T.alloc_fragment((8, 16), "float32")
                if what == "size":
                    T.reshape(s, (8, 15))
                elif what == "slice":
                    T.reshape(s[0:4, :], (64,))
                elif what == "strided":
                    T.reshape(S, (128,))
                elif what == "split":
                    T.view(f, (8, 32), "float16")

        tilelab.compile(main, target=HOPPER)
    return caught.value


def test_errors() -> None:
    found = _error("size")
    assert found.code == "TL1532"
    assert "a view of s (8x16 float32 (512 bytes)) as 8x15 float32 (480 bytes)" in found.message
    assert _error("slice").code == "TL1531"
    assert _error("strided").code == "TL1533"
    assert "split between registers" in _error("split").message
