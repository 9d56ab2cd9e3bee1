"""Conversions of small integers to floats by two cheap instructions instead of I2F.

I2F runs at a quarter of the rate of additions. Where n lies in a range shorter than the mantissa,
the bits of 2**p + (n - lo) are those of 2**p with n - lo added, and subtracting 2**p - lo as a
float leaves n exactly. Hides the bit patterns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelab.codegen.context import Context
from tilelab.dtypes import DType
from tilelab.ir import Expr
from tilelab.ir.bounds import Bounds
from tilelab.thread.intrinsics.helpers import (
    SMALL_INT_TO_BFLOAT16,
    SMALL_INT_TO_FLOAT,
    SMALL_INT_TO_HALF,
)


@dataclass(frozen=True)
class _Format:
    """A float format: its helper, its mantissa bits, and those of float32 that it lacks."""

    helper: str
    mantissa: int
    dropped: int = 0


_FORMATS = {
    "float16": _Format(SMALL_INT_TO_HALF, 10),
    "bfloat16": _Format(SMALL_INT_TO_BFLOAT16, 7, 16),
    "float32": _Format(SMALL_INT_TO_FLOAT, 23),
}


def small_int(e: Expr, text: str, to: DType, ctx: Context) -> str | None:
    """`text`, the integer expression `e`, as a value of type `to`; None where the range of `e` is
    not known to be short enough, or I2F is no loss (indices as float32 are folded anyway)."""
    form = _FORMATS.get(to.name)
    if form is None or not e.dtype.is_int or e.dtype.bits > 32:
        return None
    if to.bits == 32 and e.dtype.bits > 8:
        return None
    low, high = _range(e)
    if low is None or high is None:
        return None
    power = 1 << form.mantissa
    if high - low >= power or not -power <= low <= high <= power:
        return None
    ctx.preamble.use_helper(form.helper)
    ctx.preamble.use_type(to)
    first, zero = _bits(power, form, to), _bits(power - low, form, to)
    return f"tl::{form.helper}<{first - low}, {zero}>({text})"


def _range(e: Expr) -> Bounds:
    """Bounds of a value, those of its type when it is of 8 bits."""
    low, high = e.bounds
    if e.dtype.bits > 8:
        return low, high
    least, most = (0, 255) if e.dtype.kind == "uint" else (-128, 127)
    return (least if low is None else low), (most if high is None else high)


def _bits(value: int, form: _Format, to: DType) -> int:
    """The bit pattern of an integer that the format holds exactly."""
    if to.name == "float16":
        return int(np.float16(value).view(np.uint16))
    return int(np.float32(value).view(np.uint32)) >> form.dropped
