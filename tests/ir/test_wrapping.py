"""Unsigned and narrow integers wrap around, and no rule of the simplifier changes that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilelab.dtypes import as_dtype, promote
from tilelab.ir import Var, as_expr
from tilelab.sim.evaluate import evaluate


def value_of(e: Any, number: int) -> int:
    """The expression where its only variable is `number`."""
    env = SimpleNamespace(get=lambda v: np.asarray([number], v.dtype.numpy))
    frame: Any = SimpleNamespace(env=env, mask=None)
    memory: Any = None
    return int(np.asarray(evaluate(as_expr(e), frame, memory)).reshape(-1)[0])


@pytest.mark.parametrize(
    ("dtype", "make", "want"),
    [
        ("uint32", lambda x: (x - 64) // 64, lambda x: (x - 64) % 2**32 // 64),
        ("uint32", lambda x: x * 6 // 3, lambda x: x * 6 % 2**32 // 3),
        ("uint32", lambda x: x * 6 % 3, lambda x: x * 6 % 2**32 % 3),
        ("uint32", lambda x: (x * 8 + 5) % 4, lambda x: 1),
        ("uint32", lambda x: x // 4 // 8, lambda x: x // 32),
        ("uint8", lambda x: (x + 200) // 16, lambda x: (x + 200) % 256 // 16),
        ("int8", lambda x: (x + x) // 3, lambda x: ((2 * x + 128) % 256 - 128) // 3),
        ("int32", lambda x: (x * 8 + 5) // 8, lambda x: x),
    ],
)  # fmt: skip
@pytest.mark.parametrize("number", [0, 1, 7, 63, 100])
def test_quotients(dtype: str, make: Any, want: Any, number: int) -> None:
    assert value_of(make(Var("x", as_dtype(dtype))), number) == want(number)


def test_bounds_of_what_may_wrap_are_not_known() -> None:
    u = Var("u", as_dtype("uint32"), lo=0, hi=10)
    assert (u - 20).bounds == (None, None)
    assert (u + 20).bounds == (20, 30)
    assert value_of(u - 20 < 100, 5) == 0
    i = Var("i", as_dtype("int32"), lo=-1, hi=10)
    assert as_expr(i).astype("uint32").bounds == (None, None)
    assert as_expr(i).astype("int64").bounds == (-1, 10)


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ("uint32", "int32", "int32"), ("uint8", "int32", "int32"), ("uint64", "int32", "int64"),
        ("uint32", "int64", "int64"), ("uint16", "int8", "int16"), ("uint8", "uint32", "uint32"),
        ("bool", "int8", "int8"), ("int64", "float16", "float16"),
        ("float16", "bfloat16", "float32"),
    ],
)  # fmt: skip
def test_promotion(a: str, b: str, want: str) -> None:
    assert promote(as_dtype(a), as_dtype(b)) == want
    assert promote(as_dtype(b), as_dtype(a)) == want
