"""Constructors of expressions: conversion, C-like promotion, folding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilelab.dtypes import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UINT64,
    DType,
    computing,
    integer_range,
    promote,
)
from tilelab.errors import TileRuntimeError, TileTypeError, TileValueError, shown
from tilelab.ir.core import Node
from tilelab.ir.expr import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    const_int,
)
from tilelab.ir.operators import Operators
from tilelab.ir.simplify import fold_binary, fold_minmax, held, wrapped

_OF_BITS = frozenset({"&", "|", "^", "<<", ">>"})


def is_scalar(value: object) -> bool:
    """Whether `as_expr` takes `value` for a number: operators answer NotImplemented otherwise."""
    return isinstance(value, Expr | int | float) or hasattr(value, "__expr__")


def _from_bool(value: bool, like: DType | None) -> Expr:
    return Const(value, like if like is not None and not like.is_float else BOOL)


def _from_int(value: int, like: DType | None) -> Expr:
    if like is not None and like.is_float:
        return Const(float(value), like)
    return Const(value, _holding(value, like if like is not None and like.is_int else INT32))


def _holding(value: int, like: DType) -> DType:
    """The type of an integer literal: `like` where it holds the number, else the least of int32,
    int64 and uint64 that does and that meets `like` in a type which holds both."""
    least, most = integer_range(like)
    if least <= value <= most:
        return like
    for wider in (INT32, INT64, UINT64):
        least, most = integer_range(wider)
        if least <= value <= most and (wider.bits > like.bits or like.bits == 64):
            return wider
    raise TileValueError(
        f"{value} needs more than 64 bits",
        code="TL1113",
        hint="kernels compute with integers up to uint64; use a float, such as 1e30",
    )


def _from_float(value: float, like: DType | None) -> Expr:
    return Const(value, like if like is not None and like.is_float else FLOAT32)


_LITERALS: dict[type, Callable[[Any, DType | None], Expr]] = {
    bool: _from_bool,
    int: _from_int,
    float: _from_float,
}


def as_expr(value: Any, like: DType | None = None) -> Expr:
    """`value` as an expression; a Python number takes the type `like` where it can.

    Raises TileTypeError (TL1103) for what is no number, kernel variable or element.
    """
    if isinstance(value, Expr):
        return value
    literal = next((_LITERALS[k] for k in type(value).__mro__ if k in _LITERALS), None)
    if literal is not None:
        return literal(value, like)
    if hasattr(value, "__expr__"):  # a one-element buffer used as a scalar
        return value.__expr__()
    if hasattr(value, "item") and getattr(value, "shape", ()) == ():
        return as_expr(value.item(), like)
    raise _no_scalar(value)


def _absolute(value: Any) -> Expr:
    return call("abs", value)


def _no_scalar(value: Any) -> TileTypeError:
    values: list[Any] = list(value) if isinstance(value, list | tuple) else []  # pyright: ignore[reportUnknownArgumentType]
    if any(isinstance(v, Expr) for v in values):
        names = ", ".join(str(getattr(v, "name", "a value")) for v in values)
        blocks = any(getattr(v, "role", "") == "block" for v in values)
        form = f"with T.Kernel(...) as ({names}):" if blocks else f"for {names} in T.Parallel(...):"
        what = "a T.Kernel or a loop over several extents"
        return TileTypeError(
            f"({names}) are {len(values)} values, and no scalar of a kernel", code="TL1103",
            hint=f"{what} has one variable for each: write `{form}`",
        )  # fmt: skip
    if isinstance(value, Node):
        name = getattr(value, "name", "")
        what = f"the whole buffer {name}" if name else f"a {type(value).__name__.lower()}"
    else:
        what = f"{shown(value)} (a {type(value).__name__})"  # pyright: ignore[reportUnknownArgumentType]
    return TileTypeError(
        f"{what} is no scalar of a kernel",
        code="TL1103",
        hint="use a number, a kernel variable, or an element such as A[i, j]",
    )


def binary(op: str, a: Any, b: Any) -> Expr:
    """`a op b` with TVM's promotion, folded. Comparisons and logic give bool."""
    a, b = map(_computable, _match(a, b))
    if op in LOGICAL:
        a, b = as_bool(a), as_bool(b)
        return fold_binary(op, a, b, BOOL)
    if op == "/" and not a.dtype.is_float:
        raise TileRuntimeError(
            "`/` between integers is ambiguous in a kernel",
            code="TL1104",
            hint="use // for the floor, or convert first: a.astype('float32') / b",
        )
    dtype = promote(a.dtype, b.dtype)
    if op in _OF_BITS and (a.dtype.is_float or b.dtype.is_float):
        raise _no_bits(f"`{op}` between {a.dtype} and {b.dtype}")
    if dtype.is_bool and op in ("+", "-", "*", "//", "%", "<<", ">>"):
        dtype = INT32
    a, b = cast(a, dtype), cast(b, dtype)
    if op in ("<<", ">>") and isinstance(b, Const) and b.value < 0:
        raise TileValueError(
            f"a shift by {b.value} bits",
            code="TL1114",
            hint=f"shift the other way: x {'>>' if op == '<<' else '<<'} {-b.value}",
        )
    return fold_binary(op, a, b, BOOL if op in COMPARISONS else dtype)


def _computable(e: Expr) -> Expr:
    return cast(e, computing(e.dtype))


def _no_bits(what: str) -> TileTypeError:
    return TileTypeError(
        f"{what}: floats have no bit operations",
        code="TL1112",
        hint='convert first (T.cast(x, "int32")), or take the bits: T.reinterpret(x, "int32")',
    )


def _match(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both operands as expressions; a Python literal takes the other operand's type."""
    a = as_expr(a) if hasattr(a, "__expr__") else a
    b = as_expr(b) if hasattr(b, "__expr__") else b
    if isinstance(a, Expr):
        return a, _literal(b, a.dtype)
    if isinstance(b, Expr):
        return _literal(a, b.dtype), b
    ea = as_expr(a)
    return ea, _literal(b, ea.dtype)


def _literal(value: Any, like: DType) -> Expr:
    if isinstance(value, float) and not like.is_float:
        return as_expr(value)  # int op 1.5 is a float operation
    return as_expr(value, like)


def unary(op: str, a: Any) -> Expr:
    """`op a`, folded."""
    e = _computable(as_expr(a))
    if op == "~" and e.dtype.is_bool:
        op = "not"
    if op == "~" and e.dtype.is_float:
        raise _no_bits(f"`~` of {e.dtype}")
    if op == "-" and e.dtype.is_bool:
        e = cast(e, INT32)
    if op == "not":
        e = as_bool(e)
        if isinstance(e, Unary) and e.op == "not":
            return e.a
    if isinstance(e, Const):
        fold: dict[str, Callable[[Any], Any]] = {
            "-": lambda v: -v,
            "~": lambda v: ~v,
            "not": lambda v: not v,
        }
        value = fold[op](e.value)
        return Const(wrapped(value, e.dtype) if e.dtype.is_int else value, e.dtype)
    if op == "-" and e.dtype.is_int:
        return binary("-", 0, e)
    return Unary(op, e, e.dtype)


def as_bool(a: Any) -> Expr:
    """`a` as a truth value; a number is true when it is not zero."""
    e = as_expr(a)
    return e if e.dtype.is_bool else binary("!=", e, 0)


def cast(a: Any, dtype: DType) -> Expr:
    """`a` converted to `dtype`; nothing to do when it already is, literals are converted now."""
    e = as_expr(a, dtype)
    if e.dtype == dtype:
        return e
    value = held(e) if isinstance(e, Const) else None
    return Cast(dtype, e) if value is None else _converted(e, value, dtype)


def _converted(e: Expr, value: float, dtype: DType) -> Expr:
    """The constant `e`, which is `value`, converted to `dtype`, where the result is certain."""
    if dtype.is_float:
        return Const(float(value), dtype) if dtype.bits >= 32 else Cast(dtype, e)
    if dtype.is_bool:
        return Const(bool(value), dtype)
    least, most = integer_range(dtype)
    if least <= value <= most:  # NaN is not
        return Const(int(value), dtype)
    return Const(wrapped(int(value), dtype), dtype) if e.dtype.is_int else Cast(dtype, e)


def conjuncts(cond: Expr) -> Iterator[Expr]:
    """The conditions that all hold where `cond` does: itself, or the parts of an `and`."""
    if isinstance(cond, Binary) and cond.op == "and":
        yield from conjuncts(cond.a)
        yield from conjuncts(cond.b)
    else:
        yield cond


def select(cond: Any, a: Any, b: Any, *, guard: bool = False) -> Expr:
    """`a if cond else b` as an expression; both sides take their common type. `guard` as
    `Select` has it."""
    c = as_bool(cond)
    ea, eb = _match(a, b)
    dtype = promote(ea.dtype, eb.dtype)
    ea, eb = cast(ea, dtype), cast(eb, dtype)
    if isinstance(c, Const):
        return ea if c.value else eb
    return Select(c, ea, eb, dtype, guard)


def call(fn: str, *args: Any, dtype: DType | None = None) -> Expr:
    """A pure function applied to scalars; the operands take their common type."""
    known = [as_expr(a).dtype for a in args if isinstance(a, Expr) or hasattr(a, "__expr__")]
    common = computing(known[0] if known else as_expr(args[0]).dtype)
    for dtype_of in known[1:]:
        common = promote(common, computing(dtype_of))
    exprs = [_literal(a, common) for a in args]  # a number may need more: max(n, 2.5)
    for e in exprs:
        common = promote(common, computing(e.dtype))
    operands = tuple(cast(e, common) for e in exprs)
    if fn == "abs" and common.kind == "uint":
        return operands[0]
    if fn in ("min", "max"):
        return fold_minmax(fn, operands, common)
    return Call(fn, operands, dtype or common)


def ceildiv(a: Any, b: Any) -> Any:
    """Smallest integer >= a / b; a Python int when both are."""
    ca, cb = const_int(a), const_int(b)
    if ca is not None and cb is not None:
        return -(-ca // cb)
    ea, eb = as_expr(a), as_expr(b)
    low = eb.bounds[0]
    if low is not None and low > 0:
        return (ea + eb - 1) // eb
    return select(eb > 0, (ea + eb - 1) // eb, (ea + eb + 1) // eb)


def _written(op: str, a: Any, b: Any) -> Expr:
    """`a op b` of a program. A divisor that becomes 0 later (an iteration of an unrolled loop, say)
    may stand behind a guard; one that is written so is a mistake."""
    if op in ("//", "%") and const_int(b) == 0:
        raise TileValueError(
            f"`{op}` by the constant 0", code="TL1115",
            hint="see where the divisor comes from: a tile size, or an argument of the factory",
        )  # fmt: skip
    return binary(op, a, b)


Operators._binary = staticmethod(_written)  # pyright: ignore[reportPrivateUsage]
Operators._unary = staticmethod(unary)  # pyright: ignore[reportPrivateUsage]
Operators._cast = staticmethod(cast)  # pyright: ignore[reportPrivateUsage]
Operators._is_scalar = staticmethod(is_scalar)  # pyright: ignore[reportPrivateUsage]
Operators._abs = staticmethod(_absolute)  # pyright: ignore[reportPrivateUsage]
