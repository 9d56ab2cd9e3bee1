"""Rows of a fragment that a serial loop picks, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.row_programs import (
    check_mixed_rows,
    check_rows_of_a_product,
    check_single_rows,
    check_splits,
)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
def test_rows(target: Any) -> None:
    for parts in (1, 7, 16, 40):
        check_splits(target, "cuda", parts)
    check_splits(target, "cuda", 4, dim=100, threads=64)
    check_splits(target, "cuda", 4, dim=24, threads=128)
    check_single_rows(target, "cuda")
    check_mixed_rows(target, "cuda")
    check_rows_of_a_product(target, "cuda")
