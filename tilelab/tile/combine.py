"""How two values become one, for reductions, scans and reducers: one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelab.dtypes import LARGEST_FINITE, DType, integer_range
from tilelab.ir import Expr, binary, call, select


@dataclass(frozen=True)
class Combine:
    """How two values become one: `first` takes in an element, `join` two partial results."""

    name: str
    first: Callable[[Expr, Expr], Expr]
    join: Callable[[Expr, Expr], Expr]
    identity: Callable[[DType], float | int]
    numpy: str  # name of the ufunc; fmax and fmin pass over NaN, as the hardware's do


def _lowest(dtype: DType) -> float | int:
    if dtype.is_float:
        return -LARGEST_FINITE.get(dtype.name, math.inf)
    return 0 if dtype.is_bool else integer_range(dtype)[0]


def _highest(dtype: DType) -> float | int:
    if dtype.is_float:
        return LARGEST_FINITE.get(dtype.name, math.inf)
    return 1 if dtype.is_bool else integer_range(dtype)[1]


def _sum(a: Expr, b: Expr) -> Expr:
    return a + b


def _maximum(a: Expr, b: Expr) -> Expr:
    return call("max", a, b)


def _minimum(a: Expr, b: Expr) -> Expr:
    return call("min", a, b)


def _keeping_nan(choose: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """A maximum or minimum that is NaN when an operand is."""

    def join(a: Expr, b: Expr) -> Expr:
        if not a.dtype.is_float:
            return choose(a, b)
        a_is_nan, b_is_nan = binary("!=", a, a), binary("!=", b, b)
        return select(a_is_nan, a, select(b_is_nan, b, choose(a, b)))

    return join


def _magnitude(value: Expr) -> Expr:
    return call("abs", value)


def _of_magnitudes(join: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: join(a, _magnitude(b))


_MAX_NAN, _MIN_NAN = _keeping_nan(_maximum), _keeping_nan(_minimum)


def _plain(
    name: str, join: Callable[[Expr, Expr], Expr], identity: Callable[[DType], Any], numpy: str
) -> Combine:
    return Combine(name, join, join, identity, numpy)


COMBINES: dict[str, Combine] = {
    c.name: c
    for c in (
        _plain("sum", _sum, lambda d: 0, "add"),
        _plain("max", _maximum, _lowest, "fmax"),
        _plain("min", _minimum, _highest, "fmin"),
        Combine("abssum", _of_magnitudes(_sum), _sum, lambda d: 0, "add"),
        Combine("absmax", _of_magnitudes(_maximum), _maximum, lambda d: 0, "fmax"),
        _plain("max_nan", _MAX_NAN, _lowest, "maximum"),
        _plain("min_nan", _MIN_NAN, _highest, "minimum"),
        Combine("absmax_nan", _of_magnitudes(_MAX_NAN), _MAX_NAN, lambda d: 0, "maximum"),
        _plain("bitand", lambda a, b: a & b, lambda d: 1 if d.is_bool else -1, "bitwise_and"),
        _plain("bitor", lambda a, b: a | b, lambda d: 0, "bitwise_or"),
        _plain("bitxor", lambda a, b: a ^ b, lambda d: 0, "bitwise_xor"),
    )
}
"""Every combination by name."""
