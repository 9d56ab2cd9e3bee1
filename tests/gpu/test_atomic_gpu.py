"""Atomics on a GPU: the programs of tests/ops/atomic_programs.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.atomic_programs import (
    DTYPES,
    ORDERS,
    SHAPES,
    UPDATES,
    check_elements,
    check_histogram,
    check_scatter,
    check_tile,
    check_wraps,
)

pytestmark = pytest.mark.gpu
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("source", ["global", "shared", "fragment"])
def test_tiles(target: Any, source: str) -> None:
    for shape in SHAPES:
        check_tile(target, "cuda", shape, source=source)


@pytest.mark.parametrize("op", UPDATES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_types(op: str, dtype: str) -> None:
    check_tile(HOPPER, "cuda", (24, 60), op=op, dtype=dtype)


@pytest.mark.parametrize("order", ORDERS)
def test_memory_orders(order: str | None) -> None:
    check_tile(HOPPER, "cuda", (5, 7), order=order)


@target
def test_elements(target: Any) -> None:
    check_elements(target, "cuda")
    check_histogram(target, "cuda")
    check_wraps(target, "cuda")


@target
@pytest.mark.parametrize("source", ["shared", "fragment"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter(target: Any, dtype: str, source: str) -> None:
    check_scatter(target, "cuda", dtype=dtype, source=source)
    check_scatter(target, "cuda", dtype=dtype, source=source, columns=50)
