"""Rows of a fragment that a serial loop picks, in the simulator, for both feature sets."""

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

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("parts", [1, 7, 16])
def test_rows_are_registers(target: Any, parts: int) -> None:
    """No shared memory and no barrier: a thread has all rows of its columns."""
    text = check_splits(target, "cpu", parts).get_kernel_source()
    assert "__syncthreads" not in text
    assert "__shared__" not in text


def test_rows_of_a_block_with_threads_left_over() -> None:
    check_splits(HOPPER, "cpu", 4, dim=100, threads=64)
    check_splits(HOPPER, "cpu", 4, dim=24, threads=128)


def test_many_rows_go_through_shared_memory() -> None:
    assert "lse_moved" in check_splits(HOPPER, "cpu", 40).get_kernel_source()


@target
def test_single_rows(target: Any) -> None:
    assert "__syncthreads" not in check_single_rows(target, "cpu").get_kernel_source()


@target
def test_rows_of_a_product(target: Any) -> None:
    assert "c_moved" in check_rows_of_a_product(target, "cpu").get_kernel_source()


@target
def test_mixed_rows(target: Any) -> None:
    """Whole columns of the tile in each thread, in pieces of 8 bytes."""
    text = check_mixed_rows(target, "cpu").get_kernel_source()
    assert "moved" not in text
    assert "const uint2*>(b_shared" in text
