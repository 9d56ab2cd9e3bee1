"""Scalar functions: exp, max, cast, if_then_else, and their kin.

Given Python numbers they compute at once (so they serve for tile sizes); given kernel values they
build expressions. `thread.mathfn` says what each does on the chip and in the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes

from tilelab.dtypes import BOOL, FLOAT32, INT32, LARGEST_FINITE, UINT32, integer_range
from tilelab.errors import TileTypeError
from tilelab.frontend import is_traced, plain_dtype, truth
from tilelab.ir import Const, Expr, as_expr, binary, call, const_int, select, unary
from tilelab.ir import cast as _cast
from tilelab.ir import ceildiv as _ceildiv


def _rsqrt(x: float) -> float:
    return 1 / math.sqrt(x)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


_EXACT: dict[str, Callable[..., Any]] = {
    "exp": math.exp, "exp2": math.exp2, "log": math.log, "log2": math.log2, "log10": math.log10,
    "log1p": math.log1p, "sqrt": math.sqrt, "rsqrt": _rsqrt, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "nextafter": math.nextafter,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "erf": math.erf, "floor": math.floor,
    "ceil": math.ceil, "trunc": math.trunc, "rint": round, "nearbyint": round, "abs": abs,
    "sigmoid": _sigmoid, "pow": math.pow, "fmod": math.fmod,
    "atan2": math.atan2, "copysign": math.copysign, "hypot": math.hypot, "max": max, "min": min,
    "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite,
}  # fmt: skip
_TAKES_INTEGERS = frozenset({"abs", "max", "min"})


def _symbolic(*values: Any) -> bool:
    return any(isinstance(v, Expr) or is_traced(v) for v in values)


def _apply(fn: str, *args: Any) -> Any:
    """`fn(*args)`: now for Python numbers, else as an expression; integers become float32 for
    functions of real numbers."""
    if not _symbolic(*args) and fn in _EXACT:
        return _EXACT[fn](*args)
    if fn not in _TAKES_INTEGERS:
        args = tuple(_as_float(a) for a in args)
    dtype = BOOL if fn.startswith("is") else None
    return call(fn, *args, dtype=dtype)


def _as_float(value: Any) -> Any:
    if isinstance(value, int | float):
        return float(value)
    expr = as_expr(value)
    return expr if expr.dtype.is_float else _cast(expr, FLOAT32)


def _function(name: str, fn: str, names: str, doc: str) -> Callable[..., Any]:
    def one(x: Any) -> Any:
        return _apply(fn, x)

    def two(x: Any, y: Any) -> Any:
        return _apply(fn, x, y)

    def pair(x1: Any, x2: Any) -> Any:
        return _apply(fn, x1, x2)

    def larger(a: Any, b: Any) -> Any:
        return _apply(fn, a, b)

    made = {"x": one, "x, y": two, "x1, x2": pair, "a, b": larger}[names]
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    return made


_ONE = {
    "exp": "e to the power x.", "exp2": "2 to the power x.", "log": "Natural logarithm.",
    "log2": "Logarithm to base 2.", "log10": "Logarithm to base 10.", "log1p": "log(1 + x).",
    "sqrt": "Square root.", "rsqrt": "1 / sqrt(x).", "sin": "Sine.", "cos": "Cosine.",
    "tan": "Tangent.", "asin": "Arc sine.", "acos": "Arc cosine.", "atan": "Arc tangent.",
    "sinh": "Hyperbolic sine.", "cosh": "Hyperbolic cosine.", "tanh": "Hyperbolic tangent.",
    "erf": "Error function.",
    "asinh": "Inverse hyperbolic sine.", "acosh": "Inverse hyperbolic cosine.",
    "atanh": "Inverse hyperbolic tangent.", "floor": "Largest integer not above x.",
    "ceil": "Smallest integer not below x.", "trunc": "x without its fraction.",
    "nearbyint": "Nearest integer, ties to even.", "abs": "Absolute value.",
    "sigmoid": "1 / (1 + exp(-x)).", "isnan": "Whether x is not a number.",
    "isinf": "Whether x is infinite.", "isfinite": "Whether x is neither infinite nor NaN.",
}  # fmt: skip
_FAST = {
    "__exp": "__expf", "__exp10": "__exp10f", "__log": "__logf", "__log2": "__log2f",
    "__log10": "__log10f", "__sin": "__sinf", "__cos": "__cosf", "__tan": "__tanf",
}  # fmt: skip
_TWO = {  # the names of the arguments, and what the function is
    "pow": ("x, y", "x to the power y."),
    "fmod": ("x, y", "Remainder of x / y with the sign of x."),
    "atan2": ("x1, x2", "Angle of the point (x2, x1)."),
    "copysign": ("x1, x2", "x1 with the sign of x2."),
    "hypot": ("x1, x2", "sqrt(x1*x1 + x2*x2)."),
    "nextafter": ("x1, x2", "The next number after x1 on the way to x2."),
    "max": ("a, b", "The larger of two values."),
    "min": ("a, b", "The smaller of two values."),
}  # fmt: skip


def _fast_function(name: str, fn: str) -> Callable[..., Any]:
    def one(x: Any) -> Any:
        kind = as_expr(x).dtype
        if _symbolic(x) and not (kind.is_float and kind.bits >= 16):
            raise TileTypeError(
                f"T.{name} only supports floating-point inputs, but got {kind}", code="TL1782",
                hint=f"convert first: T.{name}(T.cast(x, 'float32'))",
            )  # fmt: skip
        return _apply(fn, x)

    one.__name__ = one.__qualname__ = name
    one.__doc__ = f"Fast approximation of {name.strip('_')}, of floats (TL1782)."
    return one


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _function(name, name, "x", doc) for name, doc in _ONE.items()},
    **{name: _function(name, name, names, doc) for name, (names, doc) in _TWO.items()},
    **{name: _fast_function(name, fn) for name, fn in _FAST.items()},
    "fabs": _function("fabs", "abs", "x", "Absolute value."),
}


def round(x: Any, rounding_mode: str = "ties-to-even") -> Any:
    """Nearest integer; ties go to the even one, or away from zero."""
    modes = {"ties-to-even": "rint", "ties-away-from-zero": "round"}
    if rounding_mode not in modes:
        raise TileTypeError(
            f"rounding_mode={rounding_mode!r} is not known", code="TL1491",
            hint='use "ties-to-even" or "ties-away-from-zero"',
        )  # fmt: skip
    return _apply(modes[rounding_mode], x)


def exp10(x: Any) -> Any:
    """10 to the power x."""
    return _apply("pow", 10.0, x)


def if_then_else(cond: Any, t: Any, f: Any) -> Any:
    """`t` where the condition holds, else `f`; only the side taken is evaluated."""
    if not is_traced(cond):
        return t if truth(cond) else f
    return select(cond, t, f)


def Select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """T.if_then_else: an element past the end of a tensor is read on neither side."""
    return if_then_else(condition, true_value, false_value)


def cast(value: Any, dtype: Any, round: str = "", sat: bool = True, rbits: Any = None) -> Expr:
    """`value` converted to `dtype`, rounding to nearest even."""
    if round not in ("", "rn") or rbits is not None:
        raise TileTypeError(
            f"T.cast(round={round!r}, rbits={rbits!r}) is not supported", code="TL1491",
            hint="leave round and rbits out: conversion rounds to nearest even",
        )  # fmt: skip
    return _cast(value, plain_dtype(dtype))


def Cast(dtype: Any, value: Any, annotations: Any = None) -> Expr:
    """T.cast with the type first; `annotations` change no result."""
    del annotations
    return cast(value, dtype)


def infinity(dtype: Any = "float32") -> Expr:
    """Plus infinity of a floating-point type; -T.infinity(dtype) is the other one."""
    kind = plain_dtype(dtype)
    if not kind.is_float or kind.name in LARGEST_FINITE:
        raise TileTypeError(f"{kind} has no infinity", code="TL1492", hint="use T.max_value(dtype)")
    return Const(math.inf, kind)


_finfo: Any = ml_dtypes.finfo


def _limits(dtype: Any) -> tuple[float | int, float | int]:
    kind = plain_dtype(dtype)
    if kind.is_float:
        info = _finfo(kind.numpy)
        return float(info.min), float(info.max)
    return (0, 1) if kind.is_bool else integer_range(kind)


def max_value(dtype: Any) -> Expr:
    """The largest finite value of a type."""
    return Const(_limits(dtype)[1], plain_dtype(dtype))


def min_value(dtype: Any) -> Expr:
    """The lowest finite value of a type."""
    return Const(_limits(dtype)[0], plain_dtype(dtype))


def clamp(dst: Any, min_val: Any, max_val: Any) -> Any:
    """`dst` kept between `min_val` and `max_val`; what is not a number stays so."""
    kept = _apply("min", _apply("max", dst, min_val), max_val)
    if not _symbolic(dst) or not as_expr(dst).dtype.is_float:
        return kept
    return select(binary("!=", dst, dst), dst, kept)


def ceildiv(lhs: Any, rhs: Any) -> Any:
    """The smallest integer not below lhs / rhs."""
    return _ceildiv(lhs, rhs)


cdiv = ceildiv


def floordiv(a: Any, b: Any) -> Any:
    """a // b, rounded down."""
    return a // b


def floormod(a: Any, b: Any) -> Any:
    """a % b, with the sign of b."""
    return a % b


def truncdiv(a: Any, b: Any) -> Any:
    """a / b without its fraction, as in C."""
    if not _symbolic(a, b):
        return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))
    quotient, rest = a // b, a % b
    inexact = binary("!=", rest, 0)
    opposite = binary("!=", binary("<", a, 0), binary("<", b, 0))
    return select(binary("and", inexact, opposite), quotient + 1, quotient)


def truncmod(a: Any, b: Any) -> Any:
    """The remainder of truncdiv, with the sign of a."""
    return a - truncdiv(a, b) * b


def align_up(x: Any, y: Any) -> Any:
    """x rounded up to a multiple of y."""
    return ceildiv(x, y) * y


def shift_left(x: Any, y: Any) -> Any:
    """x << y."""
    return x << y


def shift_right(x: Any, y: Any) -> Any:
    """x >> y."""
    return x >> y


def And(a: Any, b: Any) -> Any:
    """`a and b`."""
    return binary("and", a, b) if is_traced(a) or is_traced(b) else truth(a) and truth(b)


def Or(a: Any, b: Any) -> Any:
    """`a or b`."""
    return binary("or", a, b) if is_traced(a) or is_traced(b) else truth(a) or truth(b)


def Not(a: Any) -> Any:
    """`not a`."""
    return unary("not", a) if is_traced(a) else not truth(a)


def bitwise_and(x: Any, y: Any) -> Any:
    """x & y."""
    return x & y


def bitwise_or(x: Any, y: Any) -> Any:
    """x | y."""
    return x | y


def bitwise_xor(x: Any, y: Any) -> Any:
    """x ^ y."""
    return x ^ y


def bitwise_not(x: Any) -> Any:
    """~x."""
    return unary("~", x) if _symbolic(x) else ~x


def popcount(x: Any) -> Any:
    """The number of set bits."""
    known = const_int(x)
    return call("popcount", x) if known is None else known.bit_count()


def clz(x: Any) -> Any:
    """The number of leading zero bits of an integer, of 32 bits or of 64 (an int32)."""
    number = as_expr(x)
    kind = number.dtype
    wide = kind if kind.bits >= 32 else (INT32 if kind.kind == "int" else UINT32)
    return _cast(call("clz", _cast(number, wide)), INT32)


def likely(cond: Any) -> Any:
    """The condition itself: a hint for branch prediction."""
    return cond


def index_to_coordinates(index: Any, shape: Any) -> list[Any]:
    """The coordinates of a row-major position."""
    coordinates: list[Any] = []
    for extent in reversed(tuple(shape)):
        coordinates.insert(0, index % extent)
        index = index // extent
    return coordinates
