"""Tensors of sizes and strides that the call decides: two variants of a kernel serve them all, or
the call says what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


def copying(target: Any) -> Any:
    """A pipelined copy of a matrix whose rows lie any number of elements apart."""
    n, k, s = T.dynamic("n"), T.dynamic("k"), T.dynamic("s")

    @T.prim_func
    def main(A: T.StridedTensor((n, k), (s, 1), "float16"), B: T.Tensor((n, k), "float16")):
        with T.Kernel(T.ceildiv(k, 64), T.ceildiv(n, 32), threads=128) as (bx, by):
            tile = T.alloc_shared((32, 64), "float16")
            for _ in T.Pipelined(1, num_stages=2):
                T.copy(A[by * 32, bx * 64], tile)
                T.copy(tile, B[by * 32, bx * 64])

    return tilelab.compile(main, target=target)


@target
def test_any_rows_of_one_kernel(target: Any) -> None:
    """Odd strides, views that begin off an alignment boundary, empty and single axes, repeated
    rows."""
    kernel = copying(target)
    wide = torch.randn(70, 80).half()
    views = [
        wide[:64, :64], wide[:, 1:65], wide[:1, 3:40], wide[:, 7:8], wide[:0], wide[:, :0],
        torch.randn(40, 77).half()[:, :64], torch.randn(1, 32).half().expand(8, 32),
        torch.randn(33, 65).half(), torch.randn(1, 1).half(),
    ]  # fmt: skip
    for a in views:
        b = torch.full(a.shape, 7.0).half()
        kernel(a, b)
        assert torch.equal(a, b), (a.shape, a.stride())


@target
def test_strides_that_the_declaration_does_not_have(target: Any) -> None:
    kernel = copying(target)
    for a in (torch.randn(64, 32).half().t(), torch.randn(8, 64).half()[:, ::2]):
        with pytest.raises(TileError, match="has strides") as caught:
            kernel(a, torch.empty(a.shape).half())
        assert caught.value.code == "TL1617"
