"""Functions that name one instruction: T.ieee_* with a rounding, T.fast_rcp, bit searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.dtypes import FLOAT32, INT32, UINT32
from tilelab.errors import TileTypeError, TileValueError
from tilelab.frontend import session
from tilelab.ir import Expr, as_expr, call, cast
from tilelab.thread.directed import MODES


def _ieee(name: str, what: str, *args: Any, mode: str) -> Expr:
    if mode not in MODES:
        raise TileValueError(
            f"T.{name}(rounding_mode={mode!r}) is no rounding", code="TL1782",
            loc=session().loc(),
            hint='use "rn" (to nearest), "rz" (toward zero), "ru" (up) or "rd" (down)',
        )  # fmt: skip
    given = [as_expr(a) for a in args if not isinstance(a, int | float)]
    for kind in (e.dtype for e in given):
        if not kind.is_float or kind.bits < 16 or (mode != "rn" and kind.bits == 16):
            raise TileTypeError(
                f"T.{name} of {kind} values with rounding {mode!r}: {what} is there for float32 "
                'and float64, and for float16 and bfloat16 with "rn"',
                code="TL1782", loc=session().loc(),
                hint="convert with T.cast(value, 'float32') first",
            )  # fmt: skip
    numbers = (float(a) if isinstance(a, int | float) else a for a in args)
    return call(f"{name}_{mode}", *numbers)


def ieee_add(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """x + y with a rounding, never joined with a product; TL1782 for other types or modes."""
    return _ieee("ieee_add", "the sum", x, y, mode=rounding_mode)


def ieee_sub(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """x - y with a rounding."""
    return _ieee("ieee_sub", "the difference", x, y, mode=rounding_mode)


def ieee_mul(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """x * y with a rounding, never joined with a sum."""
    return _ieee("ieee_mul", "the product", x, y, mode=rounding_mode)


def ieee_fdiv(x: Any, y: Any, rounding_mode: str = "rn") -> Expr:
    """x / y with a rounding."""
    return _ieee("ieee_fdiv", "the quotient", x, y, mode=rounding_mode)


def ieee_fmaf(x: Any, y: Any, z: Any, rounding_mode: str = "rn") -> Expr:
    """x * y + z, rounded once."""
    return _ieee("ieee_fmaf", "the fused product", x, y, z, mode=rounding_mode)


def fma(x: Any, y: Any, z: Any) -> Expr:
    """x * y + z, rounded once to nearest: T.ieee_fmaf."""
    return ieee_fmaf(x, y, z)


def fmul(x: Any, y: Any) -> Expr:
    """x * y rounded to nearest, never joined with a sum: T.ieee_mul."""
    return ieee_mul(x, y)


def ieee_frcp(x: Any, rounding_mode: str = "rn") -> Expr:
    """1 / x with a rounding."""
    return _ieee("ieee_frcp", "the inverse", x, mode=rounding_mode)


def ieee_fsqrt(x: Any, rounding_mode: str = "rn") -> Expr:
    """The square root with a rounding."""
    return _ieee("ieee_fsqrt", "the root", x, mode=rounding_mode)


def ieee_frsqrt(x: Any) -> Expr:
    """1 / sqrt(x), to nearest; TL1782 for float64, which has no instruction."""
    number = as_expr(float(x) if isinstance(x, int | float) else x)
    if not number.dtype.is_float or not 16 <= number.dtype.bits <= 32:
        raise TileTypeError(
            f"T.ieee_frsqrt of a {number.dtype} value: it is there for float32, float16 and "
            "bfloat16", code="TL1782", loc=session().loc(),
            hint="write 1 / T.sqrt(x), or convert with T.cast(x, 'float32') first",
        )  # fmt: skip
    return call("ieee_frsqrt", number)


def fast_rcp(x: Any) -> Expr:
    """1 / x of a float32 by the fast approximate division."""
    return call("__fdividef", as_expr(1.0), cast(as_expr(x), FLOAT32))


def ldexp(x1: Any, x2: Any) -> Expr:
    """x1 times 2 to the power x2 (a whole number)."""
    number = as_expr(x1)
    number = number if number.dtype.is_float else cast(number, FLOAT32)
    return call("ldexp", number, cast(as_expr(x2), number.dtype))


def _bits(value: Any) -> Expr:
    """An integer of at least 32 bits."""
    number = as_expr(value)
    if number.dtype.is_float:
        raise TileTypeError(
            f"a bit search of a {number.dtype} value", code="TL1782", loc=session().loc(),
            hint="T.reinterpret gives the bits of a number as an integer",
        )  # fmt: skip
    return number if number.dtype.bits >= 32 else cast(number, UINT32)


def ffs(value: Any) -> Expr:
    """The position of the lowest set bit, counted from 1; 0 when no bit is set."""
    return cast(call("ffs", _bits(value)), INT32)


def fns(mask: Any, base: Any, offset: Any) -> Expr:
    """The position of the `offset`-th set bit of a 32-bit mask from bit `base` on (below it for a
    negative offset; bit `base` itself for 0); 0xFFFFFFFF where there is none."""
    return call("fns", *(cast(as_expr(a), UINT32) for a in (mask, base, offset)))


NAMES: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        fast_rcp, fma, fmul, ieee_add, ieee_fdiv, ieee_fmaf, ieee_frcp, ieee_frsqrt, ieee_fsqrt,
        ieee_mul, ieee_sub, ldexp,
    )
}  # fmt: skip
NAMES.update({"__ffs": ffs, "__fns": fns})
"""What this module adds to the language."""
