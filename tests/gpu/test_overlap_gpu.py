"""On the GPU: products beside the writing of the next operand, fragments ahead, folded clears."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
from tests.kernels import AMPERE, gemm
from tests.passes import test_double_buffer as turns
from tests.passes import test_fold_clear as clears

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("form", ["copy", "loop"])
@pytest.mark.parametrize("steps", [1, 2, 7, 64])
@pytest.mark.parametrize("persistent", [False, True])
def test_double_buffer(form: str, steps: int, persistent: bool) -> None:
    """Many tiles of one block's columns, again and again: a race would show as a changing sum."""
    columns = 300
    kernel = turns._kernel(steps, columns, form=form, persistent=persistent)  # pyright: ignore[reportPrivateUsage]
    depth = turns.STEP * steps
    torch.manual_seed(0)
    a = torch.randint(-4, 5, (128, depth), device="cuda").half()
    b = torch.randint(-8, 8, (turns.TILE * columns, depth), device="cuda").to(torch.int8)
    want = a.float() @ b.float().T
    for _ in range(5):
        assert torch.equal(kernel(a, b), want)


@pytest.mark.parametrize(
    "how", [{"bk": 32, "stages": 4}, {"bk": 64, "stages": 2}, {"bk": 32, "ta": True, "tb": True}]
)
@pytest.mark.parametrize("sizes", [(1000, 1096, 1000), (128, 128, 32), (2048, 2048, 2048)])
def test_fragments_ahead(how: dict[str, Any], sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    kernel = tilelab.compile(gemm(m, n, k, **how), target=AMPERE, out_idx=[2])
    torch.manual_seed(0)
    a, b = (torch.randint(-2, 3, s, device="cuda").half() for s in ((m, k), (k, n)))
    left = a.T.contiguous() if how.get("ta") else a
    right = b.T.contiguous() if how.get("tb") else b
    for _ in range(5):
        assert torch.equal(kernel(left, right), (a.float() @ b.float()).half())


@pytest.mark.parametrize("form", ["at the start", "at the end", "before the loop", "ones"])
def test_fold_clear(form: str) -> None:
    kernel = clears._kernel(form)  # pyright: ignore[reportPrivateUsage]
    torch.manual_seed(0)
    shape = (clears.M, clears.K), (clears.K, clears.N)
    a, b = (torch.randint(-4, 5, s, device="cuda").half() for s in shape)
    want = a.float() @ b.float() + (2 if form == "ones" else 0)
    assert torch.equal(kernel(a, b), want)
