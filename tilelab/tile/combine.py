"""How two values become one, for reductions, scans and reducers: one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelab.dtypes import DType
from tilelab.ir import Expr, call


@dataclass(frozen=True)
class Combine:
    """How two values become one: `first` takes in an element, `join` two partial results."""

    name: str
    first: Callable[[Expr, Expr], Expr]
    join: Callable[[Expr, Expr], Expr]
    identity: Callable[[DType], float | int]
    numpy: str


def _lowest(dtype: DType) -> float | int:
    if dtype.is_float:
        return -math.inf
    return 0 if dtype.kind == "uint" else -(1 << (dtype.bits - 1))


def _highest(dtype: DType) -> float | int:
    if dtype.is_float:
        return math.inf
    return (1 << (dtype.bits if dtype.kind == "uint" else dtype.bits - 1)) - 1


def _maximum(a: Expr, b: Expr) -> Expr:
    return call("max", a, b)


def _minimum(a: Expr, b: Expr) -> Expr:
    return call("min", a, b)


def _plain(
    name: str, join: Callable[[Expr, Expr], Expr], identity: Callable[[DType], Any], numpy: str
) -> Combine:
    return Combine(name, join, join, identity, numpy)


COMBINES: dict[str, Combine] = {
    c.name: c
    for c in (
        _plain("sum", lambda a, b: a + b, lambda d: 0, "add"),
        _plain("max", _maximum, _lowest, "maximum"),
        _plain("min", _minimum, _highest, "minimum"),
        Combine("abssum", lambda a, b: a + call("abs", b), lambda a, b: a + b, lambda d: 0, "add"),
        Combine(
            "absmax", lambda a, b: _maximum(a, call("abs", b)), _maximum, lambda d: 0, "maximum"
        ),
        _plain("bitand", lambda a, b: a & b, lambda d: 1 if d.is_bool else -1, "bitwise_and"),
        _plain("bitor", lambda a, b: a | b, lambda d: 0, "bitwise_or"),
        _plain("bitxor", lambda a, b: a ^ b, lambda d: 0, "bitwise_xor"),
    )
}
"""Every combination by name."""
