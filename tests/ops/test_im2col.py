"""T.im2col in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest

import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.conv_programs import CONVOLUTIONS, check_convolution
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("sizes", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("stages", [0, 2])
def test_convolutions(target: Any, sizes: Any, stages: int) -> None:
    check_convolution(target, "cpu", sizes, stages=stages)


def test_types_and_tiles() -> None:
    check_convolution(HOPPER, "cpu", CONVOLUTIONS[0], dtype="float32", bm=32, bk=48)
    check_convolution(AMPERE, "cpu", CONVOLUTIONS[1], dtype="bfloat16", bm=128, bn=64, bk=16)


@pytest.mark.parametrize(("kernel", "shape"), [(3, (8, 8, 64)), (0, (1, 8, 8, 64))])
def test_errors(kernel: int, shape: tuple[int, ...]) -> None:
    with pytest.raises(TileError, match=r"T\.im2col") as caught:

        @T.prim_func
        def main(A: T.Tensor(shape, "float16")):
            with T.Kernel(1, threads=128) as _:
                s = T.alloc_shared((64, 32), "float16")
                T.c2d_im2col(A, s, 0, 0, kernel, 1, 1, 1)

    assert caught.value.code == "TL1518"
