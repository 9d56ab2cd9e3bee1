"""Element types on a GPU: packed elements, conversions over edge values, large tensors, and the
table of operations and types."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.kernels import AMPERE, HOPPER
from tests.ops import large_programs, number_programs, packed_programs
from tests.ops.dtype_maths import CHECKS
from tests.ops.dtype_programs import DTYPES
from tests.ops.dtype_table import cell, written

pytestmark = pytest.mark.gpu
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize(("dtype", "to"), packed_programs.DECODED)
def test_every_code(target: Any, dtype: str, to: str) -> None:
    packed_programs.check_decode(target, "cuda", dtype, to)


@target
@pytest.mark.parametrize(("source", "dtype"), packed_programs.ENCODED)
def test_stored_numbers(target: Any, source: str, dtype: str) -> None:
    packed_programs.check_encode(target, "cuda", source, dtype)


@target
@pytest.mark.parametrize("dtype", packed_programs.TYPES)
def test_packed_tiles(target: Any, dtype: str) -> None:
    packed_programs.check_tiles(target, "cuda", dtype)
    packed_programs.check_fill_and_reduce(target, "cuda", dtype)


@target
@pytest.mark.parametrize(("a", "b", "out"), packed_programs.PRODUCTS)
def test_packed_gemm(target: Any, a: str, b: str, out: str) -> None:
    packed_programs.check_gemm(target, "cuda", a, b, out)


@target
@pytest.mark.parametrize("check", packed_programs.OTHERS)
def test_other_packed_programs(target: Any, check: Any) -> None:
    check(target, "cuda")


@target
@pytest.mark.parametrize("check", large_programs.CHECKS)
def test_large_tensors(target: Any, check: Any) -> None:
    check(target, "cuda")
    torch.cuda.empty_cache()


@pytest.mark.parametrize("source", number_programs.SOURCES)
def test_chip_and_simulator_agree(source: str) -> None:
    number_programs.check_conversions(source)


@pytest.mark.parametrize("dtype", number_programs.INTEGERS)
def test_integer_arithmetic_agrees(dtype: str) -> None:
    number_programs.check_arithmetic(dtype)


@pytest.mark.parametrize("operation", CHECKS)
def test_table(operation: str) -> None:
    found = [cell(operation, dtype, HOPPER, "cuda") for dtype in DTYPES]
    assert found == written()[operation]
