"""Scalar functions of `ir.Call`: CUDA text per type, numpy meaning, cost class.

Hides that floats of 8 and 16 bits are computed in float32 and rounded once, on the chip as in the
simulator. Names with a leading "__" are the fast hardware approximations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.dtypes import DTYPES, INT32, DType
from tilelab.errors import TileNameError, TileTypeError
from tilelab.thread.conversions import code_of, converted, of_code
from tilelab.thread.directed import MODES, OPERATIONS, numpy_meaning
from tilelab.thread.intrinsic import Array, Cost
from tilelab.thread.intrinsics.codes import TYPE_HELPERS, low_bits
from tilelab.thread.intrinsics.helpers import EXP2_APPROX

_WIDEN = {
    "float16": "__half2float({})", "bfloat16": "__bfloat162float({})",
    "float8_e4m3fn": "float({})", "float8_e5m2": "float({})",
}  # fmt: skip
_NARROW = {
    "float16": "__float2half_rn({})", "bfloat16": "__float2bfloat16_rn({})",
    "float8_e4m3fn": "__nv_fp8_e4m3({})", "float8_e5m2": "tl::float_to_e5m2({})",
}  # fmt: skip


@dataclass(frozen=True)
class MathFn:
    """A pure function. `f32`, `f64`, `integer` are CUDA format strings over {0}, {1}, ...; an
    empty one says the function has no such form. `boolean`: the result is a truth value."""

    name: str
    arity: int
    f32: str
    f64: str
    integer: str
    numpy: Callable[..., Any]
    cost: Cost = "special"
    boolean: bool = False
    wide: str = ""  # the form of 64-bit integers, where it is another one
    leaves: bool = False  # C's int result of a narrower integer may be none of its type
    helpers: tuple[str, ...] = ()  # that the text calls
    half: str = ""  # the form of 16-bit floats, where one by float32 would round twice

    def text(self, dtype: DType, args: Sequence[str]) -> str:
        """The CUDA expression, operands and (unless boolean) result of type `dtype`."""
        self._check(dtype, len(args))
        if self.half and dtype.bits == 16:
            return self.half.format(*args)
        if dtype.name in _WIDEN:
            wide = [_WIDEN[dtype.name].format(a) for a in args]
            inner = self.f32.format(*wide)
            return inner if self.boolean else _NARROW[dtype.name].format(inner)
        form = self.f32 if dtype.name == "float32" else self.f64
        integer = self.wide if self.wide and dtype.bits == 64 else self.integer
        return (form if dtype.is_float else integer).format(*args)

    def value(self, dtype: DType, args: Sequence[Array]) -> Array:
        """The numpy meaning, rounded to `dtype` (or bool)."""
        self._check(dtype, len(args))
        if dtype.is_float and dtype.bits < 32:
            computed = np.float64 if self.half else np.float32
            args = [np.asarray(a).astype(computed) for a in args]
        with np.errstate(all="ignore"):
            result = np.asarray(self.numpy(*args))
        return result.astype(np.bool_) if self.boolean else converted(result, dtype)

    def _check(self, dtype: DType, count: int) -> None:
        if count != self.arity:
            raise TileTypeError(
                f"{self.name} takes {self.arity} operand(s), {count} were given", code="TL1108"
            )
        small = dtype.is_float and dtype.bits < 32 and dtype.name not in _WIDEN
        form = self.f64 if dtype.name == "float64" else self.f32
        if small or not (form if dtype.is_float else self.integer):
            raise TileTypeError(
                f"{self.name} has no form for {dtype}",
                code="TL1108",
                hint="convert the operand first, for instance with .astype('float32')",
            )


@dataclass(frozen=True)
class _Code(MathFn):
    """Between a stored type and its bits: `from_code_T(integer)` is the T whose code the lowest
    bits are, `to_code_T(value)` its code as int32. They take elements out of bytes and put them
    back."""

    stored: DType = INT32
    decodes: bool = True

    def text(self, dtype: DType, args: Sequence[str]) -> str:
        if not self.decodes:
            return f"(int({args[0]}) & {(1 << self.stored.bits) - 1})"
        return low_bits(args[0], self.stored)

    def value(self, dtype: DType, args: Sequence[Array]) -> Array:
        stored = np.asarray(args[0])
        return (of_code if self.decodes else code_of)(stored, self.stored)


def _codes() -> list[MathFn]:
    stored = [d for d in DTYPES.values() if d.per_byte > 1 or d.is_code]
    made: list[MathFn] = []
    for d in stored:
        decode = TYPE_HELPERS.get(d.name, ())
        for name, decodes in (("from_code", True), ("to_code", False)):
            made.append(
                _Code(f"{name}_{d.name}", 1, "", "", "", code_of, "alu", helpers=decode, stored=d,
                      decodes=decodes)
            )  # fmt: skip
    return made


def _float(name: str, numpy: Callable[..., Any], arity: int = 1) -> MathFn:
    """A function of floats whose CUDA names are `name` and, for float, `namef`."""
    args = ", ".join(f"{{{i}}}" for i in range(arity))
    return MathFn(name, arity, f"{name}f({args})", f"{name}({args})", "", numpy)


def _fast(name: str, numpy: Callable[..., Any], arity: int = 1) -> MathFn:
    args = ", ".join(f"{{{i}}}" for i in range(arity))
    return MathFn(name, arity, f"{name}({args})", "", "", numpy)


def _test(name: str, numpy: Callable[..., Any]) -> MathFn:
    return MathFn(name, 1, f"{name}({{0}})", f"{name}({{0}})", "", numpy, "alu", boolean=True)


def _same_width(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the operand's float type through a computation with Python constants."""

    def run(*args: Array) -> Array:
        return np.asarray(compute(*args)).astype(args[0].dtype, copy=False)

    return run


_erf_table = np.frompyfunc(math.erf, 1, 1)
_erfc_table = np.frompyfunc(math.erfc, 1, 1)


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _inverse_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _exact_inverse_root(x: Array) -> Array:
    return (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


def _exp10(x: Array) -> Array:
    return np.power(x.dtype.type(10), x)


def _round_away(x: Array) -> Array:
    """C's round: halves go away from zero."""
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """One rounding: float32 products are exact in float64."""
    wide = np.float64 if a.dtype != np.float64 else np.longdouble
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def _shift_or(name: str, op: Callable[..., Any], symbol: str) -> MathFn:
    return MathFn(name, 2, "", "", f"({{0}} {symbol} {{1}})", op, "alu")


def _clz(x: Array) -> Array:
    """Leading zero bits of a 32- or 64-bit integer."""
    bits = x.dtype.itemsize * 8
    rest, zeros = x.view(f"u{x.dtype.itemsize}").copy(), np.full(x.shape, bits, x.dtype)
    for _ in range(bits):
        zeros = np.where(rest != 0, zeros - 1, zeros)
        rest >>= 1
    return zeros


def _popc(x: Array) -> Array:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}") if x.dtype.kind == "i" else x)


def _ffs(x: Array) -> Array:
    """Position of the lowest set bit, counted from 1; 0 where there is none."""
    lowest = (x & -x.astype(f"i{x.dtype.itemsize}").astype(x.dtype)).view(f"u{x.dtype.itemsize}")
    return np.where(x == 0, 0, np.bitwise_count((lowest - 1).astype(lowest.dtype)) + 1)


def _nth_set_bit(mask: int, base: int, offset: int) -> int:
    """CUDA's __fns: the |offset|-th set bit of a word from bit `base` upward (downward for a
    negative offset); bit `base` itself for 0; all ones where there is none."""
    offset = offset - 2**32 if offset >= 2**31 else offset
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [p for p in places if mask >> p & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else 0xFFFFFFFF


_fns = np.frompyfunc(_nth_set_bit, 3, 1)


def _load_exponent(x: Array, power: Array) -> Array:
    return np.ldexp(x, power.astype(np.int32))


def _ieee() -> list[MathFn]:
    """Arithmetic with a rounding mode."""
    made: list[MathFn] = []
    for name, (cuda, arity, _, _) in OPERATIONS.items():
        args = ", ".join(f"{{{i}}}" for i in range(arity))
        single, double = ("fmaf", "fma") if cuda == "fma" else (f"f{cuda}", f"d{cuda}")
        for mode in MODES:
            f64, f32 = f"__{double}_{mode}({args})", f"__{single}_{mode}({args})"
            meaning = numpy_meaning(name, mode)
            half = f"__hfma({args})" if cuda == "fma" else ""
            made.append(MathFn(f"{name}_{mode}", arity, f32, f64, "", meaning, "alu", half=half))
    return made


_MIN = MathFn("min", 2, "fminf({0}, {1})", "fmin({0}, {1})", "min({0}, {1})", np.fmin, "alu")
_MAX = MathFn("max", 2, "fmaxf({0}, {1})", "fmax({0}, {1})", "max({0}, {1})", np.fmax, "alu")
_ABS = MathFn("abs", 1, "fabsf({0})", "fabs({0})", "abs({0})", np.abs, "alu", leaves=True)
_SIGMOID = MathFn(
    "sigmoid", 1, "(1.0f / (1.0f + expf(-({0}))))", "(1.0 / (1.0 + exp(-({0}))))", "",
    _same_width(_logistic),
)  # fmt: skip
_FMA = MathFn("fma", 3, "fmaf({0}, {1}, {2})", "fma({0}, {1}, {2})", "", _fma, "alu")
_EXP2_APPROX = MathFn("__exp2f", 1, "tl::exp2_approx({0})", "", "", np.exp2, helpers=(EXP2_APPROX,))
_UNIFORM = MathFn(
    "warp_uniform", 1, "", "", "__shfl_sync(0xffffffffu, {0}, 0)", np.asarray, "shared"
)  # fmt: skip
"""A value that is the same in all lanes of a warp, so that the assembler knows it is (PTX ISA,
shfl.sync): it then stays in a uniform register, with what is computed from it."""

_ENTRIES = [
    _MIN, _MAX, _ABS, _SIGMOID, _FMA, _UNIFORM,
    _float("exp", np.exp), _float("exp2", np.exp2), _float("log", np.log),
    _float("log2", np.log2), _float("log10", np.log10), _float("log1p", np.log1p),
    _float("expm1", np.expm1), _float("sqrt", np.sqrt),
    _float("rsqrt", _same_width(_inverse_root)),
    _float("pow", np.power, 2), _float("sin", np.sin), _float("cos", np.cos),
    _float("tan", np.tan), _float("asin", np.arcsin), _float("acos", np.arccos),
    _float("atan", np.arctan), _float("atan2", np.arctan2, 2), _float("sinh", np.sinh),
    _float("cosh", np.cosh), _float("tanh", np.tanh),
    _float("erf", _same_width(_erf_table)), _float("erfc", _same_width(_erfc_table)),
    _float("floor", np.floor), _float("ceil", np.ceil), _float("trunc", np.trunc),
    _float("round", _round_away), _float("nearbyint", np.rint), _float("rint", np.rint),
    _float("fmod", np.fmod, 2), _float("copysign", np.copysign, 2), _float("hypot", np.hypot, 2),
    _test("isnan", np.isnan), _test("isinf", np.isinf), _test("isfinite", np.isfinite),
    _EXP2_APPROX, _fast("__expf", np.exp), _fast("__exp10f", _exp10),
    _fast("__logf", np.log), _fast("__log2f", np.log2), _fast("__log10f", np.log10),
    _fast("__sinf", np.sin), _fast("__cosf", np.cos), _fast("__tanf", np.tan),
    _fast("__powf", np.power, 2), _fast("__fdividef", np.divide, 2),
    _shift_or("bitwise_and", np.bitwise_and, "&"), _shift_or("bitwise_or", np.bitwise_or, "|"),
    _shift_or("bitwise_xor", np.bitwise_xor, "^"), _shift_or("shift_left", np.left_shift, "<<"),
    _shift_or("shift_right", np.right_shift, ">>"),
    MathFn("popcount", 1, "", "", "__popc({0})", _popc, "alu", wide="__popcll({0})"),
    _float("acosh", np.arccosh), _float("asinh", np.arcsinh), _float("atanh", np.arctanh),
    _float("nextafter", np.nextafter, 2),
    MathFn("ldexp", 2, "ldexpf({0}, int({1}))", "ldexp({0}, int({1}))", "", _load_exponent),
    MathFn("ffs", 1, "", "", "__ffs({0})", _ffs, "alu", wide="__ffsll({0})"),
    MathFn("fns", 3, "", "", "__fns({0}, {1}, int({2}))", _fns),
    MathFn("ieee_frsqrt", 1, "__frsqrt_rn({0})", "", "", _exact_inverse_root, "special"),
    *_ieee(),
    *_codes(),
    MathFn("clz", 1, "", "", "__clz({0})", _clz, "alu", wide="__clzll({0})"),
]  # fmt: skip
MATH: dict[str, MathFn] = {entry.name: entry for entry in _ENTRIES}
"""Every function by name."""


def math_fn(name: str) -> MathFn:
    """The function `name`; TileNameError (TL1109) with the near names otherwise."""
    found = MATH.get(name)
    if found is None:
        near = [n for n in MATH if name.strip("_") in n or n.strip("_") in name]
        raise TileNameError(
            f"there is no scalar function {name!r}",
            code="TL1109",
            hint="use " + ", ".join(near or sorted(MATH)),
        )
    return found
