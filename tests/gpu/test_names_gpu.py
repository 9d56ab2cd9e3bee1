"""The less used names on a GPU: the programs of tests/ops/name_programs.py and ieee_programs.py,
and drawn sizes of tests/ops/draw_programs.py."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops import draw_programs as programs
from tests.ops.cast_programs import PAIRS, check_cast
from tests.ops.ieee_programs import CHECKS as IEEE
from tests.ops.leaving_programs import CHECKS as LEAVING
from tests.ops.name_programs import CHECKS
from tests.ops.vector_programs import CHECKS as VECTORS
from tilelab.errors import SharedMemoryOverflow

pytestmark = pytest.mark.gpu
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
EVERY = (*CHECKS, *LEAVING, *VECTORS, *IEEE)


@target
@pytest.mark.parametrize("check", EVERY, ids=lambda c: c.__name__)
def test_right_results(target: Any, check: Callable[[Any, str], None]) -> None:
    check(target, "cuda")


@target
@pytest.mark.parametrize(("source", "to"), PAIRS)
def test_every_encoding(target: Any, source: str, to: str) -> None:
    check_cast(target, "cuda", source, to)


def _drawn(rng: random.Random, dtypes: list[str], sizes: list[int]) -> programs.Draw:
    pick = rng.choice
    return programs.Draw(
        shape=(rng.randint(1, 150), rng.randint(1, 150)), tile=(pick(sizes), pick(sizes)),
        threads=pick([32, 64, 128, 256]), stages=rng.randint(0, 4), dtype=pick(dtypes),
        out=pick(["float32", "float16"]), gap=rng.randint(0, 9),
        where=(pick(list(programs.MAKE)), pick(list(programs.MAKE))),
    )  # fmt: skip


@target
@pytest.mark.parametrize("seed", range(12))
def test_drawn_sizes(target: Any, seed: int) -> None:
    rng = random.Random(seed)
    tiles = [8, 16, 32, 48, 64, 100, rng.randint(1, 100)]
    floats = ["float16", "bfloat16", "float32"]
    try:
        programs.check_copy(target, "cuda", _drawn(rng, [*floats, "int8"], tiles))
        programs.check_elementwise(target, "cuda", _drawn(rng, floats, tiles))
        kind, dim = rng.choice(["sum", "max", "absmax"]), rng.randint(0, 1)
        programs.check_row_reduce(target, "cuda", _drawn(rng, floats, tiles), kind, dim)
        draw = _drawn(rng, floats, [16, 32, 48, 64, 96, 128])
        k, bk = rng.randint(1, 200), rng.choice([16, 32, 64])
        flags = rng.random() < 0.5, rng.random() < 0.5
        programs.check_gemm(target, "cuda", draw, k, bk, *flags)
    except SharedMemoryOverflow:  # said with what would fit
        pytest.skip("the drawn tiles do not fit")
