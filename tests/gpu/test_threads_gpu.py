"""Programs for single threads on a GPU: those of tests/ops/thread_programs.py."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops import thread_programs as p

pytestmark = pytest.mark.gpu
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
def test_warp_and_block(target: Any) -> None:
    p.check_warp_values(target, "cuda")
    p.check_block_barriers(target, "cuda")
    p.check_bits(target, "cuda")


@target
@pytest.mark.parametrize("style", p.STYLES[:3])
def test_roles(target: Any, style: str) -> None:
    p.check_roles(target, "cuda", style)


def test_tma() -> None:
    p.check_roles(HOPPER, "cuda", "tma")
    p.check_tma(HOPPER, "cuda")


@target
def test_async_copy(target: Any) -> None:
    p.check_async_copy(target, "cuda")


@target
@pytest.mark.parametrize(("threads", "rows"), [(32, 4), (8, 4), (8, 3), (48, 2), (1, 32)])
def test_thread_reduction(target: Any, threads: int, rows: int) -> None:
    p.check_thread_reduction(target, "cuda", threads, rows)


@target
def test_workspace(target: Any) -> None:
    p.check_workspace(target, "cuda")


@pytest.mark.parametrize("count", [1, 16, 32, 64])
def test_divergent_barriers(count: int) -> None:
    p.check_divergent(HOPPER, "cuda", count)
