"""T.cumsum and T.cummax on a GPU: the programs of tests/ops/scan_programs.py."""

from __future__ import annotations

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.scan_programs import DTYPES, SHAPES, WHERE, check_region, check_scan

pytestmark = pytest.mark.gpu
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("src", WHERE)
@pytest.mark.parametrize("dst", [None, *WHERE])
def test_shapes(target: dict[str, str], src: str, dst: str | None) -> None:
    for shape, dim in SHAPES:
        check_scan(target, "cuda", shape, dim, src=src, dst=dst)
        check_scan(target, "cuda", shape, dim, src=src, dst=dst, reverse=True, kind="max")


@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype: str) -> None:
    check_scan(HOPPER, "cuda", (6, 50), 1, dtype=dtype)
    check_scan(HOPPER, "cuda", (50, 40), 0, dtype=dtype, kind="max")


@pytest.mark.parametrize("threads", [32, 48, 96, 256])
def test_thread_counts(threads: int) -> None:
    check_scan(HOPPER, "cuda", (5, 77), 1, threads=threads)


@target
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("overlapping", [False, True])
def test_regions(target: dict[str, str], where: str, overlapping: bool) -> None:
    check_region(target, "cuda", where, overlapping)
