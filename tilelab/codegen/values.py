"""Element types in CUDA: their names, literals and conversions."""

from __future__ import annotations

import math

import numpy as np

from tilelab.dtypes import DTYPES, FLOAT32, INT32, DType
from tilelab.ir import Const
from tilelab.thread.conversions import code_of, converted
from tilelab.thread.intrinsics.codes import FROM_FLOAT, TO_FLOAT, low_bits

_BYTES = {"int2": "i8", "int4": "i8"}
_BYTES.update((d.name, "u8") for d in DTYPES.values() if d.cuda == "unsigned char")
_SHORT = {
    "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "int64": "i64", "uint64": "u64",
}  # fmt: skip
TYPEDEFS = {short: DTYPES[name].cuda for name, short in _SHORT.items()}
_SHORT.update(_BYTES)
"""Short names of the integer types, each declared where the text uses it."""

FP8 = frozenset(d.name for d in DTYPES.values() if d.is_float and d.header == "cuda_fp8.h")
SMALL_FLOATS = FP8 | {"float16", "bfloat16"}

_INFINITY = "__int_as_float(0x7f800000)"  # NVRTC has no INFINITY
_MINUS_INFINITY = "__int_as_float(0xff800000)"
_NAN = "__int_as_float(0x7fffffff)"
_WIDE = {
    _INFINITY: "__longlong_as_double(0x7ff0000000000000LL)",
    _MINUS_INFINITY: "__longlong_as_double(0xfff0000000000000LL)",
    _NAN: "__longlong_as_double(0x7fffffffffffffffLL)",
}
_SUFFIX = {"int32": "", "int64": "LL", "uint32": "u", "uint64": "ULL"}


def type_name(dtype: DType) -> str:
    """The type as the CUDA text spells it."""
    return _SHORT.get(dtype.name, dtype.cuda)


def held(e: Const) -> int | float | bool:
    """The number that a constant is: its literal as its type rounds it."""
    if not e.dtype.is_float:
        return e.value
    return float(converted(np.asarray(float(e.value), np.float64), e.dtype))


def literal(value: int | float | bool, dtype: DType) -> str:
    """A constant of `dtype`, rounded as the hardware would round it."""
    if dtype.is_bool:
        return "true" if value else "false"
    return _float_literal(float(value), dtype) if dtype.is_float else _int_literal(value, dtype)


def _int_literal(value: int | float, dtype: DType) -> str:
    wrapped = int(value) & ((1 << dtype.bits) - 1)
    if dtype.kind == "int" and wrapped >> (dtype.bits - 1):
        wrapped -= 1 << dtype.bits
        if wrapped == -(1 << (dtype.bits - 1)) and dtype.bits >= 32:
            return f"{type_name(dtype)}({hex(-wrapped)})"  # C has no literal for the least value
    suffix = _SUFFIX.get(dtype.name)
    return f"{type_name(dtype)}({wrapped})" if suffix is None else f"{wrapped}{suffix}"


def _float_literal(value: float, dtype: DType) -> str:
    if dtype.is_code:
        code = int(code_of(converted(np.asarray([value], np.float64), dtype), dtype)[0])
        return f"{type_name(dtype)}({code})"
    if dtype.name in SMALL_FLOATS:
        rounded = float(converted(np.asarray(value, np.float64), dtype))
        text = _float_literal(rounded, FLOAT32)
        return (
            f"{type_name(dtype)}({text})"
            if math.isfinite(rounded)
            else convert(text, FLOAT32, dtype)
        )
    special = _special(value, dtype)
    if special is not None:
        return special
    text = repr(value) if dtype.bits == 64 else str(np.float32(value))
    return text if dtype.bits == 64 else f"{text}f"


def _special(value: float, dtype: DType) -> str | None:
    narrow = dtype.bits < 64
    if narrow and math.isfinite(value) and abs(value) >= 2.0**128:
        value = math.copysign(math.inf, value)
    if math.isfinite(value):
        return None
    text = _NAN if math.isnan(value) else _INFINITY if value > 0 else _MINUS_INFINITY
    return text if narrow else _WIDE[text]


# ---- conversions: (operand text, from, to) -> text of a primary expression --------------------


def convert(text: str, source: DType, to: DType) -> str:
    """`text` (any expression) of type `source` as a value of type `to`, which is not bool."""
    if source == to:
        return text
    if source.is_code:
        return convert(f"tl::{TO_FLOAT[source.name]}({text})", FLOAT32, to)
    if to.name in FROM_FLOAT:
        wide = source if source.bits == 64 and source.is_float else FLOAT32
        return f"tl::{FROM_FLOAT[to.name]}({convert(text, source, wide)})"
    if to.bits < 8:
        return low_bits(convert(text, source, INT32) if source.is_float else text, to)
    via = _via(source, to)
    if via is not None:
        return convert(convert(text, source, via), via, to)
    return f"{type_name(to)}({text})"


def _via(source: DType, to: DType) -> DType | None:
    """The type that a conversion passes through, where CUDA has no direct one.

    Every such step is exact or saturates alike, so the value is rounded once.
    """
    small_source, small_to = source.name in SMALL_FLOATS, to.name in SMALL_FLOATS
    if small_source and small_to:
        return FLOAT32
    if small_source and to.bits == 64 and to.is_float:
        return FLOAT32
    if source.name in FP8 and to != FLOAT32:
        return FLOAT32
    if to.name in FP8 and source.is_int:
        return FLOAT32
    if to.name in SMALL_FLOATS and source.bits < 32 and not source.is_float:
        return INT32
    if source.is_float and to.is_int and to.bits < 32:
        return INT32  # C leaves it open what a float beyond the narrow type becomes
    return None
