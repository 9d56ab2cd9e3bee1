"""Arithmetic with a chosen rounding: the scalar functions ieee_* of `thread.mathfn`.

Hides how a directed rounding is made from round-to-nearest: the sign of what is left over says
whether the nearest number lies on the wrong side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tilelab.thread.intrinsic import Array

MODES = ("rn", "rz", "ru", "rd")
"""To nearest even, toward zero, up, down."""

Residual = Callable[..., Array]
"""(the float32 result as float64, operands as float64) -> a number with the sign of exact value
minus result."""


def _sum_rest(total: Array, a: Array, b: Array) -> Array:
    """a + b - total: the sum as two float64 (Knuth's two-sum), whose parts are taken in turn."""
    high = a + b
    part = high - a
    low = (a - (high - part)) + (b - part)
    return (high - total) + low


def _minus_rest(total: Array, a: Array, b: Array) -> Array:
    return _sum_rest(total, a, -b)


def _product_rest(total: Array, a: Array, b: Array) -> Array:
    return a * b - total  # a product of two float32 is exact in float64


def _quotient_rest(total: Array, a: Array, b: Array) -> Array:
    return (a - total * b) * np.sign(b)


def _inverse_rest(total: Array, a: Array) -> Array:
    return (1 - total * a) * np.sign(a)


def _root_rest(total: Array, a: Array) -> Array:
    return a - total * total


def _fused_rest(total: Array, a: Array, b: Array, c: Array) -> Array:
    return _sum_rest(total, a * b, c)


def _fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in one rounding: the float64 sum, put right where it lies halfway."""
    product = a * b
    wide = product + c
    near = wide.astype(np.float32).astype(np.float64)
    rest = _sum_rest(wide, product, c)
    # A tie of the float64 sum is none when something is left over: nudge it to that side.
    return np.where((rest != 0) & (near != wide), np.nextafter(wide, np.sign(rest) * np.inf), wide)


def _inverse(a: Array) -> Array:
    return 1 / a


def _fused_float64(a: float, b: float, c: float) -> float:
    plain = a * b + c
    try:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
    except (OverflowError, ValueError):  # an infinity or NaN takes part
        return plain
    try:
        return float(exact) if exact else plain  # a sum of 0 keeps the sign that it has
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _round_float64(
    compute: Callable[..., Array], rest: Residual, mode: str, arrays: list[Array]
) -> Array:
    """float64 operands: what is left over is told by fractions, element by element."""
    fused = np.frompyfunc(_fused_float64, 3, 1)
    near = np.asarray(fused(*arrays) if compute is _fused else compute(*arrays)).astype(np.float64)
    if mode == "rn":
        return near
    arrays = list(np.broadcast_arrays(*arrays))
    known = np.logical_and.reduce([np.isfinite(a) for a in arrays])
    known = known & ((arrays[-1] != 0) | (compute not in (np.divide, _inverse)))
    largest = np.copysign(np.finfo(np.float64).max, near)
    near = np.where(np.isinf(near) & known, largest, near)

    def side(known: bool, *numbers: float) -> float:
        return float(np.sign(rest(*map(Fraction, numbers)))) if known else math.nan

    left = np.frompyfunc(side, len(arrays) + 2, 1)(known & np.isfinite(near), near, *arrays)
    return _moved(near, np.asarray(left).astype(np.float64), mode)


def _rounded(compute: Callable[..., Array], rest: Residual, mode: str) -> Callable[..., Array]:
    """The function of float32 and of float64 arrays."""

    def run(*args: Any) -> Array:
        arrays = [np.asarray(a) for a in args]
        with np.errstate(all="ignore"):
            if arrays[0].dtype == np.float64:
                return _round_float64(compute, rest, mode, arrays)
            wide = [a.astype(np.float64) for a in arrays]
            exact = np.asarray(compute(*wide))
            near = exact.astype(np.float32)
            if mode == "rn":
                return near
            over = np.isinf(near) & np.isfinite(exact)
            near = np.where(over, np.copysign(np.finfo(np.float32).max, near), near)
            return _moved(near, rest(near.astype(np.float64), *wide), mode)

    return run


def _moved(near: Array, left: Array, mode: str) -> Array:
    """The neighbour of `near` on the wanted side, where `near` is on the other: `left` has the
    sign of what is missing to the exact value."""
    up, down = (np.nextafter(near, near.dtype.type(end)) for end in (np.inf, -np.inf))
    if mode == "ru":
        moved = np.where(left > 0, up, near)
    elif mode == "rd":
        moved = np.where(left < 0, down, near)
    else:
        moved = np.where((near > 0) & (left < 0), down, np.where((near < 0) & (left > 0), up, near))
    return np.where(np.isnan(left), near, moved).astype(near.dtype)


OPERATIONS: dict[str, tuple[str, int, Callable[..., Array], Residual]] = {
    "ieee_add": ("add", 2, np.add, _sum_rest),
    "ieee_sub": ("sub", 2, np.subtract, _minus_rest),
    "ieee_mul": ("mul", 2, np.multiply, _product_rest),
    "ieee_fdiv": ("div", 2, np.divide, _quotient_rest),
    "ieee_frcp": ("rcp", 1, _inverse, _inverse_rest),
    "ieee_fsqrt": ("sqrt", 1, np.sqrt, _root_rest),
    "ieee_fmaf": ("fma", 3, _fused, _fused_rest),
}
"""Function -> CUDA's name of it, operands, float64 meaning, what is left over."""


def numpy_meaning(name: str, mode: str) -> Callable[..., Array]:
    """What `name` computes with a rounding mode."""
    _, _, compute, rest = OPERATIONS[name]
    return _rounded(compute, rest, mode)
