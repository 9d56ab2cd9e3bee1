"""Integer simplifier and bounds, applied while expressions are built.

Sums are kept in linear form (terms with coefficients), so `(i*64 + j) // 64` with 0 <= j < 64 is
`i`. Only rules that hold for every value within the known bounds are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any

import numpy as np

from tilelab.dtypes import BOOL, FLOAT32, INT32, INT64, DType, holds, integer_range
from tilelab.ir.bounds import UNKNOWN, Bounds
from tilelab.ir.expr import COMPARISONS, Binary, Call, Cast, Const, Expr

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
}  # fmt: skip


def fold_binary(op: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    """`a op b` in its simplest form; operands already share a type.

    A result of 32 bits whose bounds do not fit is computed in 64: elements of large tensors are
    counted with more than 32 bits.
    """
    made = _folded(op, a, b, dtype)
    if dtype != INT32 or op not in _GROWING or not _too_large(made.bounds):
        return made
    return _folded(op, _widened(a), _widened(b), INT64)


_GROWING = frozenset({"+", "-", "*"})  # a shift is of bits: those past the type are lost


def _too_large(bounds: Bounds) -> bool:
    lo, hi = bounds
    return (hi is not None and hi >= 1 << 31) or (lo is not None and lo < -(1 << 31))


def _widened(e: Expr) -> Expr:
    return Const(e.value, INT64) if isinstance(e, Const) else Cast(INT64, e)


def _folded(op: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    if isinstance(a, Const) and isinstance(b, Const):
        folded = _fold_constants(op, a, b, dtype)
        if folded is not None:
            return folded
    if op in ("and", "or"):
        return _fold_logic(op, a, b)
    if op in COMPARISONS:
        return _fold_comparison(op, a, b)
    if dtype.is_int:
        rule = _INTEGER_RULES.get(op)
        if rule is not None:
            return rule(a, b, dtype)
    return _fold_float(op, a, b, dtype)


def _fold_constants(op: str, a: Const, b: Const, dtype: DType) -> Const | None:
    if op in ("//", "%", "/") and b.value == 0:
        return None  # division by zero stays visible to the checker and to the hardware
    if op in ("<<", ">>") and not 0 <= b.value < dtype.bits:
        return None  # the hardware's
    if a.dtype.is_float and a.dtype.bits < 32:
        return None  # rounding of small floats is the hardware's
    left, right = held(a), held(b)
    value = _FOLD[op](left, right)
    if op in COMPARISONS or dtype.is_bool:
        return Const(bool(value), dtype)
    if not dtype.is_int:
        return Const(_single(value) if dtype.bits == 32 else value, dtype)
    if dtype.kind == "uint" or dtype.bits < 32 or op == "<<":
        value = wrapped(value, dtype)
    return Const(value, dtype) if -(1 << 63) <= value < 1 << 64 else None


def wrapped(value: int, dtype: DType) -> int:
    """An integer as its type keeps it: the lowest bits."""
    least, most = integer_range(dtype)
    return (value - least) % (most - least + 1) + least


def held(e: Const) -> int | float | None:
    """The number that a constant is in its type. None for a float of fewer than 32 bits that
    does not hold the literal: rounding is the hardware's."""
    if e.dtype == FLOAT32:
        return _single(float(e.value))
    if e.dtype.is_float and e.dtype.bits < 32:
        return e.value if holds(e.dtype, float(e.value)) else None
    return e.value


def _single(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _fold_float(op: str, a: Expr, b: Expr, dtype: DType) -> Expr:
    if op == "*" and isinstance(b, Const) and b.value == 1:
        return a
    if op == "*" and isinstance(a, Const) and a.value == 1:
        return b
    return Binary(op, a, b, dtype)


def _fold_logic(op: str, a: Expr, b: Expr) -> Expr:
    absorbing = op == "or"  # the value that decides the result
    for this, other in ((a, b), (b, a)):
        if isinstance(this, Const):
            return Const(absorbing, BOOL) if bool(this.value) == absorbing else other
    return a if a.key == b.key else Binary(op, a, b, BOOL)


def _fold_comparison(op: str, a: Expr, b: Expr) -> Expr:
    if a.dtype.is_int:
        (al, ah), (bl, bh) = a.bounds, b.bounds
        if op in (">", ">="):
            (al, ah), (bl, bh) = (bl, bh), (al, ah)
        verdict = _compare(op, (al, ah), (bl, bh))
        if verdict is not None:
            return Const(verdict, BOOL)
    return Binary(op, a, b, BOOL)


def _compare(op: str, a: Bounds, b: Bounds) -> bool | None:
    """The answer when bounds decide it; for > and >= the caller has swapped the sides."""
    (al, ah), (bl, bh) = a, b
    strict = op in ("<", ">")
    if op in ("<", "<=", ">", ">="):
        if ah is not None and bl is not None and (ah < bl if strict else ah <= bl):
            return True
        if al is not None and bh is not None and (al >= bh if strict else al > bh):
            return False
        return None
    apart = (ah is not None and bl is not None and ah < bl) or (
        al is not None and bh is not None and al > bh
    )
    return (op == "!=") if apart else None


# ---- linear forms ----------------------------------------------------------------------------

Linear = tuple[dict[tuple[Any, ...], tuple[Expr, int]], int]


def linear(e: Expr) -> Linear:
    """`e` as a sum: structural key -> (term, coefficient), and a constant."""
    terms: dict[tuple[Any, ...], tuple[Expr, int]] = {}
    constant = _collect(e, 1, terms)
    return terms, constant


def _collect(e: Expr, scale: int, terms: dict[tuple[Any, ...], tuple[Expr, int]]) -> int:
    if isinstance(e, Const):
        return int(e.value) * scale
    if isinstance(e, Binary):
        if e.op in ("+", "-"):
            left = _collect(e.a, scale, terms)
            return left + _collect(e.b, scale if e.op == "+" else -scale, terms)
        if e.op == "*" and isinstance(e.b, Const):
            return _collect(e.a, scale * int(e.b.value), terms)
    _, old = terms.get(e.key, (e, 0))
    if old + scale:
        terms[e.key] = (e, old + scale)
    else:
        terms.pop(e.key, None)
    return 0


def rebuild(form: Linear, dtype: DType) -> Expr:
    """The expression of a linear form, terms in the order they were met, constant last."""
    terms, constant = form
    total: Expr | None = None
    ordered = sorted(terms.values(), key=lambda tc: tc[1] < 0)
    if constant > 0 and ordered and ordered[0][1] < 0:
        total, constant = Const(constant, dtype), 0  # 8 - i instead of i * -1 + 8
    for term, coefficient in ordered:
        if total is not None and coefficient < 0:
            total = Binary("-", total, _scaled(term, -coefficient, dtype), dtype)
            continue
        piece = _scaled(term, coefficient, dtype)
        total = piece if total is None else Binary("+", total, piece, dtype)
    if total is None:
        return Const(constant, dtype)
    if constant and total.bounds == UNKNOWN and dtype.is_int:
        constant = _signed(constant, dtype)
    if constant:
        op = "+" if constant > 0 else "-"
        return Binary(op, total, Const(abs(constant), dtype), dtype)
    return total


def _signed(constant: int, dtype: DType) -> int:
    """What is added to a value of `dtype`, as a number of its size."""
    half = 1 << (dtype.bits - 1)
    return constant if abs(constant) < half else (constant + half) % (2 * half) - half


def _scaled(term: Expr, coefficient: int, dtype: DType) -> Expr:
    return term if coefficient == 1 else Binary("*", term, Const(coefficient, dtype), dtype)


def _sum_rule(sign: int) -> Callable[[Expr, Expr, DType], Expr]:
    def rule(a: Expr, b: Expr, dtype: DType) -> Expr:
        terms, constant = linear(a)
        constant += _collect(b, sign, terms)
        return rebuild((terms, constant), dtype)

    return rule


def _mul_rule(a: Expr, b: Expr, dtype: DType) -> Expr:
    if isinstance(a, Const):
        a, b = b, a
    if isinstance(b, Const):
        factor = int(b.value)
        terms, constant = linear(a)
        scaled = {k: (t, c * factor) for k, (t, c) in terms.items()} if factor else {}
        return rebuild((scaled, constant * factor), dtype)
    return Binary("*", a, b, dtype)


def _split(a: Expr, divisor: int, dtype: DType) -> tuple[Expr, Expr]:
    """`a` as quotient*divisor + rest, where the rest has no multiple of the divisor left."""
    terms, constant = linear(a)
    whole = {k: (t, c // divisor) for k, (t, c) in terms.items() if c % divisor == 0}
    rest = {k: tc for k, tc in terms.items() if tc[1] % divisor}
    quotient = rebuild((whole, constant // divisor), dtype)
    return quotient, rebuild((rest, constant % divisor), dtype)


def _within(e: Expr, divisor: int) -> bool:
    lo, hi = e.bounds
    return lo is not None and hi is not None and lo >= 0 and hi < divisor


def _may_wrap(e: Expr) -> bool:
    """Whether a sum may leave its type and come back at the other end, which is no mistake for
    unsigned and narrow integers: its parts then say nothing about its quotient."""
    wraps = e.dtype.kind == "uint" or e.dtype.bits < 32
    return wraps and isinstance(e, Binary) and None in e.bounds


def _div_rule(a: Expr, b: Expr, dtype: DType) -> Expr:
    if not isinstance(b, Const) or int(b.value) <= 0:
        return Binary("//", a, b, dtype)
    divisor = int(b.value)
    if divisor == 1:
        return a
    if isinstance(a, Binary) and a.op == "//" and isinstance(a.b, Const) and a.b.value > 0:
        both = int(a.b.value) * divisor
        if both <= integer_range(dtype)[1]:
            return _div_rule(a.a, Const(both, dtype), dtype)
    if _may_wrap(a):
        return Binary("//", a, b, dtype)
    quotient, rest = _split(a, divisor, dtype)
    if _within(rest, divisor):
        return quotient
    common, small, _ = _common_factor(rest, divisor)
    shrunk = int(small.value) < divisor
    inner = _div_rule(common, small, dtype) if shrunk else Binary("//", rest, b, dtype)
    return _sum_rule(1)(quotient, inner, dtype)


def _common_factor(rest: Expr, divisor: int) -> tuple[Expr, Const, Expr]:
    """The part of `rest` that has a factor in common with the divisor, without that factor, the
    divisor without it, and what is left, which is less than the factor: (8*x)//64 is x//8, and
    (8*x + y)//64 is too where 0 <= y < 8."""
    terms, constant = linear(rest)
    zero = Const(0, rest.dtype)
    for factor in sorted({gcd(divisor, c) for _, c in terms.values()} - {1}, reverse=True):
        high = {k: (t, c // factor) for k, (t, c) in terms.items() if c % factor == 0}
        low = {k: tc for k, tc in terms.items() if tc[1] % factor}
        left = rebuild((low, constant % factor), rest.dtype)
        if _within(left, factor):
            shrunk = rebuild((high, constant // factor), rest.dtype)
            return shrunk, Const(divisor // factor, rest.dtype), left
    return rest, Const(divisor, rest.dtype), zero


def _mod_rule(a: Expr, b: Expr, dtype: DType) -> Expr:
    if not isinstance(b, Const) or int(b.value) <= 0:
        return Binary("%", a, b, dtype)
    divisor = int(b.value)
    if divisor == 1:
        return Const(0, dtype)
    if divisor & (divisor - 1) and _may_wrap(a):  # what wraps keeps its rest by a power of two
        return Binary("%", a, b, dtype)
    _, rest = _split(a, divisor, dtype)
    if _within(rest, divisor):
        return rest
    if isinstance(rest, Binary) and rest.op == "%" and isinstance(rest.b, Const):
        inner = int(rest.b.value)
        if inner % divisor == 0:
            return _mod_rule(rest.a, b, dtype)
    common, small, low = _common_factor(rest, divisor)  # rest = factor * common + low
    factor = divisor // int(small.value)
    if factor == 1:
        return Binary("%", rest, b, dtype)
    if small.value == 1:
        return low
    high = _mul_rule(_mod_rule(common, small, dtype), Const(factor, dtype), dtype)
    return _sum_rule(1)(high, low, dtype)


def _xor_rule(a: Expr, b: Expr, dtype: DType) -> Expr:
    for this, other in ((a, b), (b, a)):
        if isinstance(this, Const) and this.value == 0:
            return other
    return Binary("^", a, b, dtype)


def _and_rule(a: Expr, b: Expr, dtype: DType) -> Expr:
    for this, other in ((a, b), (b, a)):
        if isinstance(this, Const) and this.value == 0:
            return Const(0, dtype)
        mask = int(this.value) if isinstance(this, Const) else 0
        most = integer_range(dtype)[1]
        if mask == -1 or (mask == most and dtype.kind == "uint"):
            return other
        if 0 < mask < most and mask & (mask + 1) == 0:
            return _mod_rule(other, Const(mask + 1, dtype), dtype)
    return Binary("&", a, b, dtype)


def _shift_left(a: Expr, b: Expr, dtype: DType) -> Expr:
    plain = Binary("<<", a, b, dtype)
    if isinstance(b, Const) and 0 <= b.value < 31:
        product = _mul_rule(a, Const(1 << int(b.value), dtype), dtype)
        # A product that may not fit is none: (x << 28) >> 28 extends a sign, and C++ takes it
        # that a product of signed integers fits.
        return plain if dtype.kind == "int" and not _fits(product.bounds, dtype) else product
    return plain


def _fits(bounds: Bounds, dtype: DType) -> bool:
    (lo, hi), (least, most) = bounds, integer_range(dtype)
    return lo is not None and hi is not None and least <= lo and hi <= most


_INTEGER_RULES: dict[str, Callable[[Expr, Expr, DType], Expr]] = {
    "+": _sum_rule(1), "-": _sum_rule(-1), "*": _mul_rule, "//": _div_rule, "%": _mod_rule,
    "^": _xor_rule, "&": _and_rule, "<<": _shift_left,
}  # fmt: skip


def fold_minmax(fn: str, args: Sequence[Expr], dtype: DType) -> Expr:
    """min/max of two values, decided by bounds where they decide it."""
    a, b = args
    if isinstance(a, Const) and isinstance(b, Const):
        numbers = [v for v in (a.value, b.value) if v == v] or [a.value]  # NaN gives way
        return Const(min(numbers) if fn == "min" else max(numbers), dtype)
    if dtype.is_int:
        small = _compare("<=", a.bounds, b.bounds)
        if small is not None:
            return a if small == (fn == "min") else b
    return Call(fn, (a, b), dtype)


def divisibility(e: Expr, unknown_size: int = 1) -> int:
    """The largest power of two (at most 2**20) known to divide `e`.

    A dynamic size variable counts as a multiple of `unknown_size`.
    """
    terms, constant = linear(e)
    found = 1 << 20
    for term, coefficient in terms.values():
        found = min(found, _low_bit(coefficient) * _term_divisor(term, unknown_size))
    return min(found, _low_bit(constant)) if constant else found


def _low_bit(value: int) -> int:
    return value & -value


def _term_divisor(term: Expr, unknown_size: int) -> int:
    if getattr(term, "role", "") == "size":
        return unknown_size
    if not isinstance(term, Binary) or term.op not in ("*", "%", "<<"):
        return 1
    a, b = (divisibility(side, unknown_size) for side in (term.a, term.b))
    if term.op == "<<":
        return a << int(term.b.value) if isinstance(term.b, Const) else 1
    return a * b if term.op == "*" else min(a, b)
