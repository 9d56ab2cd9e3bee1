"""T.gemm of every element type, and T.im2col, on a GPU: the programs of tests/ops."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.conv_programs import CONVOLUTIONS, check_convolution
from tests.ops.gemm_programs import (
    OTHERS,
    TYPES,
    Case,
    check,
    check_async,
    check_condition,
    check_matrices,
    check_parts,
)

pytestmark = pytest.mark.gpu
TARGETS = {"hopper": HOPPER, "ampere": AMPERE}
target = pytest.mark.parametrize("name", list(TARGETS))


def _loose(types: tuple[str, ...]) -> float:
    """8-bit floats: the chip keeps about 14 fraction bits while it adds."""
    return 2.0**9 if types[0].startswith("float8") and types[2] == "float32" else 2.0


def _id(types: tuple[str, ...]) -> str:
    return "-".join(types)


@target
@pytest.mark.parametrize("types", TYPES, ids=_id)
def test_types(name: str, types: Any) -> None:
    loose = _loose(types)
    for ta, tb in itertools.product([False, True], repeat=2):
        check(Case(128, 96, 64, types, ta, tb), TARGETS[name], "cuda", loose)
    for where in ("rs", "sr", "rr"):
        check(Case(64, 48, 64, types, tb=True, where=where, clear=True), TARGETS[name], "cuda",
              loose)  # fmt: skip


@target
@pytest.mark.parametrize("types", OTHERS, ids=_id)
def test_other_types(name: str, types: Any) -> None:
    check(Case(24, 40, 12, types, True, False), TARGETS[name], "cuda", 2.0)
    check(Case(24, 40, 12, types, False, True, "rr", clear=True), TARGETS[name], "cuda", 2.0)


@target
def test_random_tiles(name: str) -> None:
    draw = random.Random(7)
    for _ in range(12):
        types = draw.choice(TYPES)
        case = Case(
            draw.choice([16, 48, 64, 128, 176, 192]), draw.choice([8, 24, 48, 96, 176, 192]),
            draw.choice([8, 32, 48, 64]), types, draw.random() < 0.5, draw.random() < 0.5,
            draw.choice(["ss", "rs", "sr", "rr"]), draw.choice([64, 128, 256]),
        )  # fmt: skip
        check(case, TARGETS[name], "cuda", _loose(types))


@target
def test_regions_and_waiting(name: str) -> None:
    where = TARGETS[name]
    for number in (0, 3, 7):
        check_matrices(where, "cuda", TYPES[number])
    check_parts(where, "cuda")
    check_condition(where, "cuda", wait=0)
    check_condition(where, "cuda", wait=-1)
    check_async(where, "cuda", only_wgmma=name == "hopper")


@target
@pytest.mark.parametrize("sizes", CONVOLUTIONS, ids=str)
def test_convolutions(name: str, sizes: Any) -> None:
    check_convolution(TARGETS[name], "cuda", sizes)
