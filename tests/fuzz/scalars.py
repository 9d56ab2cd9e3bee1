"""Scalar expressions of drawn programs: their Python text and, beside it, what they mean in numpy.

Written from TileLang's rules (promotion, floor division, wrapping), never from tilelab's IR. Hides
how values are kept exact: each expression knows bounds of what it can be, and one that would round
or overflow is refused (`Inexact`), so that results are compared bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Env = dict[str, Any]
"""Names of a running program -> numpy arrays (tiles, tensors) and numbers (loop variables)."""

INTS = ("int32", "int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64")
FLOATS = ("float32", "float16", "bfloat16", "float64")
STORED = {  # the largest whole number that a tile of this type holds in a drawn program
    "bool": 1, "int8": 100, "uint8": 200, "int16": 1000, "uint16": 1000, "int32": 1 << 20,
    "uint32": 1 << 20, "int64": 1 << 30, "uint64": 1 << 30, "float16": 256, "bfloat16": 64,
    "float32": 1 << 20, "float64": 1 << 30, "float8_e4m3fn": 8, "float8_e5m2": 4,
}  # fmt: skip
_DIGITS = {
    "float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "float8_e4m3fn": 4, "float8_e5m2": 3
}  # fmt: skip


class Inexact(Exception):
    """An operation whose result might round or overflow: the generator takes another."""


def numpy_type(dtype: str) -> np.dtype[Any]:
    """The numpy type of an element type's name."""
    return np.dtype(getattr(ml_dtypes, dtype) if dtype in ml_dtypes.__dict__ else dtype)


def is_float(dtype: str) -> bool:
    """Whether the type is a floating-point one."""
    return dtype in _DIGITS


def bits_of(dtype: str) -> int:
    """The width of an element."""
    return numpy_type(dtype).itemsize * 8


def range_of(dtype: str) -> tuple[int, int]:
    """The least and the largest whole number up to which every whole number can be stored."""
    if dtype == "bool":
        return 0, 1
    if is_float(dtype):
        return -(1 << _DIGITS[dtype]), 1 << _DIGITS[dtype]
    info = np.iinfo(numpy_type(dtype))
    return int(info.min), int(info.max)


@dataclass(frozen=True)
class Value:
    """An expression: text, meaning, type, and bounds. A multiple of 2**-frac."""

    text: str
    at: Callable[[Env], Any]
    dtype: str
    lo: float
    hi: float
    frac: int = 0
    literal: bool = False

    def checked(self) -> Value:
        """Itself, when its type holds every value that it can take."""
        low, high = range_of(self.dtype)
        if is_float(self.dtype):
            low, high = low / 2**self.frac, high / 2**self.frac
        if self.lo < low or self.hi > high:
            raise Inexact(self.text)
        return self


def literal(value: float) -> Value:
    """A number of the Python text; it takes the type of what it meets."""
    whole = float(value) == int(value)
    frac = 0 if whole else 3
    kind = "float32" if isinstance(value, float) else "int32"
    return Value(repr(value), lambda env: value, kind, value, value, frac, True)


def name(text: str, dtype: str, lo: float, hi: float) -> Value:
    """A variable of the running program."""
    return Value(text, lambda env: np.asarray(env[text]).astype(numpy_type(dtype)), dtype, lo, hi)


def promoted(a: str, b: str) -> str:
    """The type in which two operands meet (TVM's BinaryOpMatchTypes)."""
    if a == b:
        return a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if "bool" in (a, b):
        return b if a == "bool" else a
    if is_float(a):
        return "float32" if bits_of(a) == bits_of(b) else max(a, b, key=bits_of)
    if a.startswith("u") == b.startswith("u"):
        return max(a, b, key=bits_of)
    return f"int{max(bits_of(a), bits_of(b))}"


def _met(a: Value, b: Value) -> str:
    if a.literal and b.literal:
        raise Inexact("two literals are Python's own")
    if a.literal or b.literal:
        number, other = (a, b) if a.literal else (b, a)
        if is_float(number.dtype) and not is_float(other.dtype):
            return "float32"
        low, high = range_of(other.dtype)
        if not low <= number.lo <= high or (number.frac and bits_of(other.dtype) < 16):
            raise Inexact("a literal that its type does not hold")
        return "int32" if other.dtype == "bool" else other.dtype
    return promoted(a.dtype, b.dtype)


def cast(a: Value, dtype: str, text: str | None = None) -> Value:
    """`a` converted, by T.cast unless another text is given."""
    lo, hi, frac = a.lo, a.hi, a.frac
    if dtype == "bool":
        lo, hi, frac = 0, 1, 0
    elif not is_float(dtype) and a.frac:
        lo, hi, frac = float(int(lo)), float(int(hi)), 0  # toward zero
    low, high = range_of(dtype)
    if lo < low or hi > high:
        if is_float(dtype) or is_float(a.dtype):
            raise Inexact(a.text)
        lo, hi = low, high  # integers wrap
    kind = numpy_type(dtype)

    def at(env: Env) -> Any:
        got = np.asarray(a.at(env))
        if dtype == "bool":
            return got != 0
        return got.astype(kind) if kind.kind in "iub" else _to_float(got, kind)

    made = Value(text or f'T.cast({a.text}, "{dtype}")', at, dtype, lo, hi, frac)
    return made.checked()


def _to_float(got: Any, kind: np.dtype[Any]) -> Any:
    return got.astype(np.float64).astype(kind)  # exact: bounds say so


_NUMPY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift,
    ">>": np.right_shift, "T.min": np.minimum, "T.max": np.maximum, "<": np.less,
    "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
    "!=": np.not_equal,
}  # fmt: skip
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def _corners(op: str, a: Value, b: Value) -> tuple[float, float]:
    """Bounds of `a op b` from those of both sides."""
    if op in ("T.min", "T.max"):
        pick = min if op == "T.min" else max
        return pick(a.lo, b.lo), pick(a.hi, b.hi)
    functions: Mapping[str, Callable[[float, float], float]] = {
        "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
        "//": lambda x, y: x // y, "<<": lambda x, y: int(x) << int(y),
        ">>": lambda x, y: int(x) >> int(y),
    }  # fmt: skip
    if op in functions:
        every = [functions[op](x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return min(every), max(every)
    if op == "%":
        return (0, b.hi - 1) if b.lo > 0 else (b.lo + 1, 0)
    reach = 1 << max(int(abs(v)).bit_length() for v in (a.lo, a.hi, b.lo, b.hi))
    return (0 if min(a.lo, b.lo) >= 0 else -reach), reach - 1  # & | ^


def binary(op: str, a: Value, b: Value) -> Value:
    """`a op b`, or `op(a, b)` for T.min and T.max."""
    dtype = _met(a, b)
    if op in ("+", "-", "*", "//", "%", "<<", ">>") and dtype == "bool":
        dtype = "int32"
    if op in ("//", "%", "<<", ">>", "&", "|", "^"):
        _of_integers(op, a, b, dtype)
    text = f"{op}({a.text}, {b.text})" if op.startswith("T.") else f"({a.text} {op} {b.text})"
    x, y, function = as_type(a, dtype), as_type(b, dtype), _NUMPY[op]

    def at(env: Env) -> Any:
        with np.errstate(all="ignore"):
            return function(x.at(env), y.at(env))

    if op in COMPARISONS:
        return Value(text, at, "bool", 0, 1)
    lo, hi = _corners(op, x, y)
    frac = a.frac + b.frac if op == "*" else max(a.frac, b.frac)
    made = Value(text, at, dtype, lo, hi, frac)
    if not is_float(dtype) and (dtype.startswith("u") or bits_of(dtype) < 32):
        low, high = range_of(dtype)
        if lo < low or hi > high:  # these wrap
            return Value(text, at, dtype, low, high)
    return made.checked()


def _of_integers(op: str, a: Value, b: Value, dtype: str) -> None:
    if is_float(dtype):
        raise Inexact("drawn for integers only")
    if op in ("//", "%") and b.lo <= 0 <= b.hi:
        raise Inexact("a divisor that may be zero")
    if op == "%" and not (b.lo > 0 or b.hi < 0):
        raise Inexact("a divisor of unknown sign")
    if op in ("<<", ">>") and not (b.lo >= 0 and b.hi < min(bits_of(dtype), 12)):
        raise Inexact("a shift that may be too far")


def as_type(a: Value, dtype: str) -> Value:
    """`a` converted without a word in the text, as operands and stored values are."""
    if a.dtype == dtype and not a.literal:
        return a
    if a.literal:
        kind = numpy_type(dtype)
        return Value(a.text, lambda env: kind.type(a.at(env)), dtype, a.lo, a.hi, a.frac)
    return cast(a, dtype, a.text)


def unary(op: str, a: Value) -> Value:
    """`-a`, `~a`, `not a`, T.abs(a), and T.floor, T.ceil, T.trunc of floats."""
    functions: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
        "-": ("(-{})", np.negative), "~": ("(~{})", np.invert), "not": ("(not {})", np.logical_not),
        "abs": ("T.abs({})", np.abs), "floor": ("T.floor({})", np.floor),
        "ceil": ("T.ceil({})", np.ceil), "trunc": ("T.trunc({})", np.trunc),
    }  # fmt: skip
    form, function = functions[op]
    ends = {
        "-": (-a.hi, -a.lo), "~": (-a.hi - 1, -a.lo - 1), "not": (0, 1),
        "abs": (0, max(abs(a.lo), abs(a.hi))),
    }  # fmt: skip
    lo, hi = ends.get(op, (a.lo - 1, a.hi + 1))
    fits = {"~": not is_float(a.dtype), "not": a.dtype == "bool"}
    floats = op in ("floor", "ceil", "trunc")
    if a.literal or not fits.get(op, is_float(a.dtype) if floats else a.dtype != "bool"):
        raise Inexact(op)

    def at(env: Env) -> Any:
        with np.errstate(all="ignore"):
            return function(a.at(env))

    made = Value(form.format(a.text), at, a.dtype, lo, hi, 0 if floats else a.frac)
    if a.dtype.startswith("u") and op in "-~":
        low, high = range_of(a.dtype)
        return Value(made.text, at, a.dtype, low, high)
    return made.checked()


def select(cond: Value, a: Value, b: Value, ternary: bool) -> Value:
    """T.if_then_else, or Python's `a if cond else b`: the other side is not evaluated."""
    dtype = _met(a, b)
    x, y = as_type(a, dtype), as_type(b, dtype)
    form = "({1} if {0} else {2})" if ternary else "T.if_then_else({0}, {1}, {2})"

    def at(env: Env) -> Any:
        return np.where(cond.at(env), x.at(env), y.at(env))

    text = form.format(cond.text, a.text, b.text)
    lo, hi = min(x.lo, y.lo), max(x.hi, y.hi)
    return Value(text, at, dtype, lo, hi, max(a.frac, b.frac)).checked()


def halved(a: Value, power: int) -> Value:
    """A float divided by a power of two."""
    if a.literal or not is_float(a.dtype):
        raise Inexact("drawn for floats only")
    by = numpy_type(a.dtype).type(1 << power)
    text, scale = f"({a.text} / {1 << power})", float(1 << power)
    made = Value(text, lambda env: a.at(env) / by, a.dtype, a.lo / scale, a.hi / scale,
                 a.frac + power)  # fmt: skip
    return made.checked()


def both(op: str, a: Value, b: Value) -> Value:
    """`a and b`, `a or b` of conditions."""
    function = np.logical_and if op == "and" else np.logical_or
    return Value(f"({a.text} {op} {b.text})", lambda env: function(a.at(env), b.at(env)), "bool",
                 0, 1)  # fmt: skip
