"""Conversions round once, saturate and wrap as the chip does."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tilelab.dtypes import as_dtype
from tilelab.thread.conversions import converted

SMALL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
LARGEST = {"float8_e4m3fn": 448.0}
"""Of types that saturate."""


def numbers(dtype: str) -> list[float]:
    """Every finite number of a small type that is not negative, in order."""
    kind = as_dtype(dtype)
    codes = np.arange(1 << kind.bits, dtype=f"u{kind.bytes}").view(kind.numpy).astype(np.float64)
    return sorted({float(c) for c in codes if np.isfinite(c) and not np.signbit(c)})


def nearest(value: Any, dtype: str, known: list[float]) -> float:
    """The nearest number, of two equally near ones that with an even code; too large: as the type
    does it."""
    exact = Fraction(value)
    sign, exact = (-1 if exact < 0 else 1), abs(exact)
    step = Fraction(known[-1]) - Fraction(known[-2])
    if exact >= Fraction(known[-1]) + step / 2 and dtype not in LARGEST:
        return sign * float("inf")
    at = int(np.searchsorted(known, float(exact)))
    near = range(max(at - 2, 0), min(at + 2, len(known)))
    return sign * known[min(near, key=lambda i: (abs(Fraction(known[i]) - exact), i % 2))]


def hard_cases(dtype: str) -> list[float]:
    """Halfway points, and what lies so little beside them that float32 does not see it."""
    known = numbers(dtype)
    picked = [*range(0, len(known) - 1, max(len(known) // 200, 1)), len(known) - 2]
    out: list[float] = []
    for i in picked:
        middle = (known[i] + known[i + 1]) / 2
        out += [middle, middle * (1 + 2**-40), middle * (1 - 2**-40), known[i]]
    return [*out, *(-v for v in out), known[-1] * 1.01, known[-1] * 3]


@pytest.mark.parametrize("dtype", SMALL)
def test_float64_is_rounded_once(dtype: str) -> None:
    known, cases = numbers(dtype), hard_cases(dtype)
    with np.errstate(over="ignore"):
        got = converted(np.asarray(cases, np.float64), as_dtype(dtype)).astype(np.float64)
    want = [nearest(c, dtype, known) for c in cases]
    assert got.tolist() == want


def test_float32_becomes_float16_as_numpy_has_it() -> None:
    """Small numbers take a way of their own: halfway points, zeros of both signs, any bits."""
    few = np.arange(0x0C80, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = (few[:-1] + few[1:]) / np.float32(2)
    beside = [np.nextafter(ties, np.float32(side)) for side in (0, 1)]
    bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 16, np.uint32)
    given = np.concatenate([few, ties, *beside, bits.view(np.float32)])
    given = np.concatenate([given, -given])
    with np.errstate(all="ignore"):
        want, got = given.astype(np.float16), converted(given, as_dtype("float16"))
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
def test_integers_are_rounded_once(dtype: str, source: str) -> None:
    known, bits = numbers(dtype), as_dtype(source).bits
    cases = [(1 << p) + (1 << (p - 8)) + d for p in range(9, bits - 1) for d in (-1, 0, 1)]
    got = converted(np.asarray(cases, source), as_dtype(dtype)).astype(np.float64)
    assert got.tolist() == [nearest(c, dtype, known) for c in cases]


@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("to", ["int32", "uint32", "int64", "uint64"])
def test_floats_to_integers_saturate(source: str, to: str) -> None:
    kind = as_dtype(to).numpy
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    given = np.asarray([np.inf, -np.inf, -1.75, 2.5, np.nan], as_dtype(source).numpy)
    strange = source == "float64" or as_dtype(to).bits == 64
    nan = 0 if not strange else low if to.startswith("int") else 1 << (as_dtype(to).bits - 1)
    want = [high, low, -1 if to.startswith("int") else 0, 2, nan]
    assert converted(given, as_dtype(to)).tolist() == want


def test_floats_to_narrow_integers_wrap_from_32_bits() -> None:
    given = np.asarray([300.5, -1.0, 1e20, np.nan], np.float32)
    assert converted(given, as_dtype("int8")).tolist() == [44, -1, -1, 0]
    assert converted(given, as_dtype("uint8")).tolist() == [44, 255, 255, 0]
    assert converted(given.astype(np.float64), as_dtype("uint16")).tolist() == [
        300,
        65535,
        65535,
        0,
    ]
