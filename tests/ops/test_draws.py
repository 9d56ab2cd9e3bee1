"""Copies, products, reductions and elementwise tiles over drawn sizes, both feature sets.

`make check` draws 2,000 programs; TILELAB_SEED=n draws those of a run before, whose seed stands
in the failure.
"""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels import AMPERE, HOPPER
from tests.ops.draw_programs import (
    MAKE,
    Draw,
    check_copy,
    check_elementwise,
    check_gemm,
    check_row_reduce,
)
from tilelab.errors import SharedMemoryOverflow

FULL = bool(os.environ.get("TILELAB_FULL"))
DRAWS = 500 if FULL else 12
SEED = int(os.environ.get("TILELAB_SEED") or (random.randrange(2**32) if FULL else 0))

targets = st.sampled_from([HOPPER, AMPERE])
extents = st.integers(1, 150)
any_tile = st.one_of(st.sampled_from([8, 16, 32, 48, 64, 96, 128]), st.integers(1, 100))
numbers = ["float16", "bfloat16", "float32", "int8", "int32", "float8_e4m3fn"]


def draws(tile: Any, dtypes: list[str], outs: list[str]) -> Any:
    """A strategy for what all four kinds of program have."""
    return st.builds(
        Draw,
        shape=st.tuples(extents, extents), tile=st.tuples(tile, tile),
        threads=st.sampled_from([32, 64, 96, 128, 256]), stages=st.integers(0, 4),
        dtype=st.sampled_from(dtypes), out=st.sampled_from(outs), gap=st.integers(0, 9),
        where=st.tuples(st.sampled_from(list(MAKE)), st.sampled_from(list(MAKE))),
    )  # fmt: skip


def drawn(*strategies: Any) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """`given`, with as many draws as the run wants and the seed in a failure."""

    def wrap(check: Callable[..., None]) -> Callable[[], None]:
        @functools.wraps(check)
        def seeded(*args: Any, **named: Any) -> None:
            hypothesis.note(f"drawn with TILELAB_SEED={SEED}")
            try:
                check(*args, **named)
            except SharedMemoryOverflow:  # said with what would fit: a right answer
                hypothesis.reject()

        limits = settings(max_examples=DRAWS, deadline=None, database=None, derandomize=False)
        return hypothesis.seed(SEED)(limits(given(*strategies)(seeded)))

    return wrap


@drawn(targets, draws(any_tile, numbers, ["float16", "float32", "int32"]))
def test_copy(target: Any, draw: Draw) -> None:
    check_copy(target, "cpu", draw)


@drawn(targets, draws(any_tile, ["float16", "bfloat16", "float32", "int32"], ["float32", "int32"]))
def test_elementwise(target: Any, draw: Draw) -> None:
    check_elementwise(target, "cpu", draw)


@drawn(
    targets, draws(any_tile, ["float16", "float32", "int8", "int32"], ["float32", "int32"]),
    st.sampled_from(["sum", "max", "min", "absmax"]), st.integers(0, 1),
)  # fmt: skip
def test_reduce(target: Any, draw: Draw, kind: str, dim: int) -> None:
    check_row_reduce(target, "cpu", draw, kind, dim)


@drawn(
    targets,
    draws(st.sampled_from([16, 32, 48, 64, 80, 96, 128]),
          ["float16", "bfloat16", "float32"], ["float32", "float16"]),
    st.integers(1, 200), st.sampled_from([16, 32, 48, 64]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_gemm(target: Any, draw: Draw, k: int, bk: int, ta: bool, tb: bool) -> None:
    check_gemm(target, "cpu", draw, k, bk, ta, tb)


@pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
def test_slots_of_an_odd_size_are_no_tma_boxes(target: Any) -> None:
    """Slots of 1,600 bytes do not begin at the 128-byte boundaries that TMA asks for."""
    draw = Draw(
        shape=(73, 36), tile=(50, 8), threads=128, stages=4, dtype="float32", out="float32",
        gap=4, where=("shared", "shared"),
    )  # fmt: skip
    check_elementwise(target, "cpu", draw)
