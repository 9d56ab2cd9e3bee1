"""Host-side expressions mean what they mean in kernels."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelab import dtypes
from tilelab.errors import TileInternalError
from tilelab.ir import Var, binary, call, cast, ceildiv, select, unary
from tilelab.runtime.evaluate import free_variables, function_of
from tilelab.runtime.sizes import SizeSolver

A, B = Var("a"), Var("b")

CASES = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "<": lambda a, b: a < b,
    "==": lambda a, b: a == b, "and": lambda a, b: bool(a) and bool(b),
    "^": lambda a, b: a ^ b, "&": lambda a, b: a & b,
}  # fmt: skip


@pytest.mark.parametrize("op", CASES)
@given(a=st.integers(-50, 50), b=st.integers(1, 20))
def test_binary(op: str, a: int, b: int) -> None:
    evaluate = function_of((binary(op, A, B),), (A, B))
    assert evaluate(a, b) == (CASES[op](a, b),)


@given(a=st.integers(0, 500), b=st.integers(1, 50))
def test_grids(a: int, b: int) -> None:
    grid = function_of((ceildiv(A, 128), ceildiv(A, B), call("min", A, B), 7), (A, B))
    assert grid(a, b) == (-(-a // 128), -(-a // b), min(a, b), 7)


@given(a=st.integers(-9, 9))
def test_others(a: int) -> None:
    exprs = (select(A > 3, A, 0 - A), unary("not", A < 0), cast(A, dtypes.FLOAT32) / 2)
    assert function_of(exprs, (A,))(a) == (a if a > 3 else -a, a >= 0, a / 2)


def test_constants_need_no_variables() -> None:
    assert function_of((1, 2, 3), ())(9, 9) == (1, 2, 3)
    assert function_of((), ())() == ()


def test_device_variables_are_refused() -> None:
    with pytest.raises(TileInternalError, match="depends on b"):
        function_of((A + B,), (A,))


def test_free_variables() -> None:
    found: list[Any] = free_variables(select(A > 3, call("min", B, 2), A * B))
    assert sorted(v.name for v in found) == ["a", "b"]
    assert free_variables(5) == []


def test_extents_as_text() -> None:
    assert SizeSolver.text(A) == "a"
    assert SizeSolver.text(2 * A + 1) == "(a * 2) + 1"
    assert SizeSolver.text(8) == "8"
