"""Conversions of numbers between element types as the chip does them, on numpy arrays.

Hides where numpy and ml_dtypes round twice or overflow otherwise (PTX ISA, cvt).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

from tilelab.dtypes import DType
from tilelab.thread.intrinsic import Array


def converted(values: Array, to: DType) -> Array:
    """`values` as elements of `to`, each rounded once, to nearest even.

    e4m3 and 4-bit floats saturate; e5m2 has infinities, as float16 has. Floats become integers
    toward zero and saturate at 32 or 64 bits; NaN gives 0, or the most negative pattern where 64
    bits take part. Integers wrap to fewer bits; narrow ones are made of 32-bit ones.
    """
    if to.is_int and to.bits < 8:
        return _low_bits(values, to)
    kind = to.numpy
    if values.dtype == kind:
        return values
    if to.is_float:
        special = _SPECIAL.get(to.name)
        if special is not None:
            return special(values, to)
        with np.errstate(over="ignore"):  # too large a number becomes infinite
            return values.astype(kind)
    if not to.is_int or values.dtype.kind in "iub":
        return values.astype(kind)
    word = kind if to.bits >= 32 else np.dtype(np.int32)
    return _truncated(values, word).astype(kind)


def _low_bits(values: Array, to: DType) -> Array:
    """The lowest bits of an integer, with the sign that they have in `to`."""
    whole = values if values.dtype.kind in "iub" else _truncated(values, np.dtype(np.int32))
    low = whole.astype(np.int64) & ((1 << to.bits) - 1)
    if to.kind == "int":
        half = 1 << (to.bits - 1)
        low = (low ^ half) - half
    return low.astype(to.numpy)


def _truncated(values: Array, word: np.dtype[Any]) -> Array:
    """Floats as 32- or 64-bit integers."""
    low, high = np.iinfo(word).min, np.iinfo(word).max
    wide_bits = word.itemsize == 8 or values.dtype == np.float64
    nan = np.array(1 << (word.itemsize * 8 - 1), np.uint64).astype(f"u{word.itemsize}").view(word)
    wide = values.astype(np.float64)
    # The bounds as floats: the largest integer of 64 bits rounds up to a power of two.
    inside = (wide > float(low)) & (wide < float(high))
    whole = np.where(inside, wide, 0).astype(word)
    ends = cast(Array, np.where(wide > 0, word.type(high), word.type(low)))
    out = np.where(inside, whole, ends)
    return np.where(np.isnan(wide), nan if wide_bits else word.type(0), out)


def _to_odd(values: Array) -> Array:
    """Numbers as float32, rounded so that a second rounding to fewer bits gives what one would
    give: toward zero, with the last bit set where something is lost."""
    if values.dtype.itemsize < 4 or values.dtype == np.float32:
        return values.astype(np.float32)
    exact = values.astype(np.longdouble)
    with np.errstate(over="ignore", invalid="ignore"):
        near = values.astype(np.float32)
        lost = (near.astype(np.longdouble) != exact) & ~np.isnan(near)
        away = lost & (np.abs(near.astype(np.longdouble)) > np.abs(exact))
    bits = cast(Array, near.view(np.uint32) - away)
    odd = cast(Array, np.where(lost, bits | 1, bits))
    return odd.astype(np.uint32).view(np.float32)


def _float16(values: Array, to: DType) -> Array:
    """As numpy rounds, but without the flag that it sets (at 20 times the cost) for each number
    that loses bits below 2**-14: there, multiples of 2**-24 are made first."""
    if values.dtype == np.float32:
        size = np.abs(values)
        small = size < np.float32(2**-14)
        if small.any():
            # The last bit of a float32 from 0.5 to 1 counts 2**-24.
            near = np.copysign((size + np.float32(0.5)) - np.float32(0.5), values)
            values = np.where(small, near, values)
    with np.errstate(over="ignore"):  # too large a number becomes infinite
        return values.astype(to.numpy)


def _bfloat16(values: Array, to: DType) -> Array:
    return _to_odd(values).astype(to.numpy)


def _float8_e5m2(values: Array, to: DType) -> Array:
    with np.errstate(over="ignore"):  # too large a number becomes infinite
        return _to_odd(values).astype(to.numpy)


def _saturated(values: Array, to: DType) -> Array:
    most = _largest(to)
    return np.clip(_to_odd(values), -most, most).astype(to.numpy)


@cache
def _largest(dtype: DType) -> np.float32:
    """The largest number of an 8-bit float type."""
    every = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
    return np.float32(np.max(every[np.isfinite(every)]))


def _fp4(values: Array, to: DType) -> Array:
    """NaN becomes the largest number (PTX ISA, cvt to e2m1)."""
    single = _to_odd(values)
    return np.clip(np.where(np.isnan(single), np.float32(6), single), -6, 6).astype(to.numpy)


def _e8m0(values: Array, to: DType) -> Array:
    """The power of two at or above the magnitude (PTX ISA, cvt.rp.satfinite.ue8m0x2)."""
    bits = _to_odd(values).view(np.uint32) & 0x7FFFFFFF
    exponent, rest = bits >> 23, bits & 0x7FFFFF
    up = np.where(exponent > 0, rest > 0, rest > 0x400000)  # 2**-127 is a subnormal float32
    code = cast(Array, np.minimum(exponent + up, 0xFE))
    return np.where(bits > 0x7F800000, 0xFF, code).astype(np.uint8).view(to.numpy)


_SPECIAL: dict[str, Callable[[Array, DType], Array]] = {
    "float16": _float16, "bfloat16": _bfloat16, "float8_e4m3fn": _saturated,
    "float8_e5m2": _float8_e5m2, "float4_e2m1fn": _fp4, "float8_e8m0fnu": _e8m0,
}  # fmt: skip


def code_of(values: Array, dtype: DType) -> Array:
    """The bits of values of at most 8 bits, as int32."""
    raw = cast(Array, np.ascontiguousarray(values, dtype.numpy)).view(np.uint8)
    return raw.astype(np.int32) & ((1 << dtype.bits) - 1)


def of_code(codes: Array, dtype: DType) -> Array:
    """Values of a type of at most 8 bits from integers, of which the lowest bits count."""
    if dtype.is_int:
        return _low_bits(codes, dtype)
    raw = (codes.astype(np.int64) & ((1 << dtype.bits) - 1)).astype(np.uint8)
    return raw.view(dtype.numpy)
