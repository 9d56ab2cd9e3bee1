"""One table of element types: bits, numpy type, CUDA name.

Rank 0. Hides every spelling of a type ("float", "float32", torch.float32, np.float32).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tilelab.calls import did_you_mean
from tilelab.errors import TileTypeError, shown


@dataclass(frozen=True)
class DType:
    """An element type. `bits` is its width in memory, `kind` one of "float int uint bool".

    Elements of fewer than 8 bits lie packed in tensors and shared memory, the first one in the
    lowest bits of its byte; in registers each has a byte (ints with their sign, floats as codes).
    """

    name: str
    kind: str
    bits: int
    cuda: str
    header: str = ""

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type. Those that numpy lacks come from ml_dtypes, imported when asked for:
        compiling and launching do not need it."""
        return _numpy_type(self.name)

    @property
    def bytes(self) -> int:
        """Bytes of one element where it has bytes of its own: in registers, for sub-byte types."""
        return max(self.bits // 8, 1)

    @property
    def per_byte(self) -> int:
        """Elements in one byte of memory; 1 for types that are not packed."""
        return max(8 // self.bits, 1)

    @property
    def is_code(self) -> bool:
        """Whether CUDA text holds a value as its bits, a number with no type of its own."""
        return self.is_float and self.cuda == "unsigned char"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"dtype({self.name!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        if isinstance(other, str):
            return _ALIASES.get(other, other) == self.name
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)


@cache
def _numpy_type(name: str) -> np.dtype[Any]:
    if name == "bfloat16" or name.startswith(("float8", "float4")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    whole = {"bool": "bool", "int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8"}
    return np.dtype(whole.get(name, name))


_FP16, _BF16, _FP8 = "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"
_TABLE = [
    DType("bool", "bool", 8, "bool"),
    DType("int8", "int", 8, "signed char"),
    DType("int16", "int", 16, "short"),
    DType("int32", "int", 32, "int"),
    DType("int64", "int", 64, "long long"),
    DType("uint8", "uint", 8, "unsigned char"),
    DType("uint16", "uint", 16, "unsigned short"),
    DType("uint32", "uint", 32, "unsigned int"),
    DType("uint64", "uint", 64, "unsigned long long"),
    DType("float16", "float", 16, "half", _FP16),
    DType("bfloat16", "float", 16, "__nv_bfloat16", _BF16),
    DType("float32", "float", 32, "float"),
    DType("float64", "float", 64, "double"),
    DType("float8_e4m3fn", "float", 8, "__nv_fp8_e4m3", _FP8),
    DType("float8_e5m2", "float", 8, "__nv_fp8_e5m2", _FP8),
    DType("float8_e8m0fnu", "float", 8, "unsigned char"),
    DType("float4_e2m1fn", "float", 4, "unsigned char"),
    DType("int4", "int", 4, "signed char"),
    DType("uint4", "uint", 4, "unsigned char"),
    DType("int2", "int", 2, "signed char"),
    DType("uint2", "uint", 2, "unsigned char"),
]
DTYPES: dict[str, DType] = {d.name: d for d in _TABLE}

_ALIASES = {
    "float": "float32", "half": "float16", "double": "float64", "int": "int32",
    "uint": "uint32", "long": "int64", "short": "int16", "char": "int8", "bf16": "bfloat16",
    "fp16": "float16", "fp32": "float32", "e4m3": "float8_e4m3fn", "float8_e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "fp8_e4m3": "float8_e4m3fn",
    "tfloat32": "float32",
}  # fmt: skip

BOOL, INT32, INT64, UINT32 = (DTYPES[n] for n in ("bool", "int32", "int64", "uint32"))
UINT64, FLOAT16, BFLOAT16, FLOAT32, UINT8 = (
    DTYPES[n] for n in ("uint64", "float16", "bfloat16", "float32", "uint8")
)

LARGEST_FINITE = {"float8_e4m3fn": 448.0, "float4_e2m1fn": 6.0, "float8_e8m0fnu": 2.0**127}
"""Of the float types without an infinity."""
_COMPUTES_IN = {
    "int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8",
    "float4_e2m1fn": "float16", "float8_e8m0fnu": "float32",
}  # fmt: skip


def computing(dtype: DType) -> DType:
    """The type that operators convert an operand to first: itself, but for types that are only
    stored (of fewer than 8 bits, and powers of two)."""
    return DTYPES[_COMPUTES_IN.get(dtype.name, dtype.name)]


@lru_cache(maxsize=256)
def _by_name(name: str) -> DType | None:
    return DTYPES.get(_ALIASES.get(name, name))


def _name_of(value: Any) -> Any:
    """How a torch or numpy type calls itself."""
    return getattr(value, "name", getattr(value, "__name__", value))


def as_dtype(value: Any) -> DType:
    """The DType that `value` spells: a DType, a name, a torch or numpy type, or Python's float,
    int, bool. Raises TileTypeError (TL1101) with the allowed names otherwise."""
    if isinstance(value, DType):
        return value
    if value is float or value is int or value is bool:
        found = {float: FLOAT32, int: INT32, bool: BOOL}[value]
    else:
        name = value if isinstance(value, str) else str(_name_of(value))
        found = _by_name(name.rsplit(".", 1)[-1])
    if found is None:
        raise TileTypeError(
            f"{shown(value)} is no element type",
            code="TL1101",
            hint=f"{_near(value)}use one of " + ", ".join(DTYPES),
        )
    return found


def _near(value: Any) -> str:
    meant = did_you_mean(value, [*DTYPES, *_ALIASES], '"{}"') if isinstance(value, str) else ""
    return f"{meant} " if meant else ""


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    if dtype.kind == "uint":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


_FLOAT_FORMATS = {
    "float16": (11, -24, 65504.0), "bfloat16": (8, -133, 2.0**128 - 2.0**120),
    "float8_e4m3fn": (4, -9, 448.0), "float8_e5m2": (3, -16, 57344.0),
}  # fmt: skip
"""Of narrow floats: digits of the significand, exponent of the least number, largest number."""


def holds(dtype: DType, value: float) -> bool:
    """Whether a float type of 8 or 16 bits is known to have this very number."""
    if dtype.name not in _FLOAT_FORMATS or not math.isfinite(value):
        return dtype.bits == 16
    digits, least, most = _FLOAT_FORMATS[dtype.name]
    _, exponent = math.frexp(value)
    step = max(exponent - digits, least)
    return abs(value) <= most and math.ldexp(value, -step).is_integer()


def promote(a: DType, b: DType) -> DType:
    """The type of `a op b`: a float beats an integer, the wider one a narrower one; a signed and
    an unsigned integer meet in the signed one of the greater width (TVM's rule, not C's)."""
    if a == b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_bool or b.is_bool:
        return b if a.is_bool else a
    if a.kind != b.kind:
        return DTYPES[f"int{max(a.bits, b.bits)}"]
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return FLOAT32  # float16 with bfloat16: neither holds the other
