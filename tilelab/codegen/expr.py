"""Expressions as CUDA text, with no parentheses that C++ or a reader can do without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelab.codegen.access import is_register, offset_of
from tilelab.codegen.context import Context, internal
from tilelab.codegen.small_int import small_int
from tilelab.codegen.values import FP8, convert, held, literal, type_name
from tilelab.dtypes import FLOAT16, FLOAT32, INT32, DType
from tilelab.ir import Binary, Buffer, Call, Cast, Const, Expr, Load, Pool, Select, Unary, Var
from tilelab.ir.expr import COMPARISONS
from tilelab.thread.intrinsics.helpers import E4M3_TO_HALF, E5M2_TO_HALF
from tilelab.thread.mathfn import math_fn

_DECODERS = {"float8_e4m3fn": E4M3_TO_HALF, "float8_e5m2": E5M2_TO_HALF}

Piece = tuple[str, int]
"""Text and how tightly its outermost operator binds (a level of `_LEVELS`)."""

PRIMARY, UNARY, TERNARY, LOWEST = 100, 90, 10, 0
_LEVELS = {
    "*": 80, "/": 80, "%": 80, "+": 70, "-": 70, "<<": 60, ">>": 60,
    "<": 50, "<=": 50, ">": 50, ">=": 50, "==": 45, "!=": 45,
    "&": 40, "^": 35, "|": 30, "&&": 20, "||": 15,
}  # fmt: skip
_BITWISE = frozenset({"&", "^", "|", "<<", ">>"})  # few readers know how these bind: parenthesise
_SPELLING = {"//": "/", "and": "&&", "or": "||"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_OPERATORS = {
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<",
    "shift_right": ">>",
}  # fmt: skip
_ASSOCIATIVE = frozenset({"+", "*", "&", "|", "^", "&&", "||"})


def expr(e: Expr, ctx: Context, level: int = LOWEST) -> str:
    """`e` as text, in parentheses when it binds less tightly than `level`."""
    text, own = piece(ctx.resolve(e), ctx)
    return f"({text})" if own < level else text


def value_as(e: Expr, dtype: DType, ctx: Context) -> str:
    """`e` converted to `dtype`, as text that may stand on the right of `=`."""
    e = ctx.resolve(e)
    ctx.preamble.use_type(dtype)
    return piece(e if e.dtype == dtype else Cast(dtype, e), ctx)[0]


def piece(e: Expr, ctx: Context) -> Piece:
    """Text of a resolved expression and its binding level."""
    rule = EXPRESSIONS.get(type(e))
    if rule is None:
        raise internal(f"codegen has no rule for the expression {type(e).__name__}")
    return rule(e, ctx)


def _operand(e: Expr, ctx: Context, level: int, parent: str = "") -> str:
    text, own = piece(e, ctx)
    mixed = own < UNARY and parent and _mixes(parent, own)
    return f"({text})" if own < level or mixed else text


def _mixes(parent: str, own: int) -> bool:
    """Whether a bitwise operator meets another operator, which a reader wants parenthesised."""
    bitwise_child = own in (_LEVELS[op] for op in _BITWISE)
    return (parent in _BITWISE or bitwise_child) and own != _LEVELS[parent] and own > _LEVELS["&&"]


# ---- places ------------------------------------------------------------------------------------


def element(buffer: Buffer, indices: Sequence[Expr], ctx: Context) -> str:
    """The element as an lvalue: `A_shared[...]`, or the bare name of a mutable scalar."""
    name = _base(buffer, indices, ctx)
    if is_register(buffer):
        return name
    return f"{name}[{_offset(buffer, indices, ctx, LOWEST)}]"


def pointer(buffer: Buffer, indices: Sequence[Expr], ctx: Context) -> str:
    """The element's address: `A_shared + ...`."""
    name = _base(buffer, indices, ctx)
    if is_register(buffer):
        return f"&{name}"
    offset = _offset(buffer, indices, ctx, _LEVELS["+"])
    return name if offset in ("0", "0LL") else f"{name} + {offset}"


def _base(buffer: Buffer, indices: Sequence[Expr], ctx: Context) -> str:
    """Where the buffer begins: its name, or the address that a table has for it."""
    if not isinstance(buffer, Pool):
        return ctx.name(buffer)
    ctx.preamble.use_type(buffer.dtype)
    address = element(buffer.table, indices[: buffer.table.rank], ctx)
    return f"reinterpret_cast<{type_name(buffer.dtype)}*>({address})"


def _offset(buffer: Buffer, indices: Sequence[Expr], ctx: Context, level: int) -> str:
    offset = offset_of(buffer, [ctx.resolve(i) for i in indices])
    return expr(_without_widening(offset), ctx, level)


# ---- one function for each kind of expression -------------------------------------------------


def _const(e: Const, ctx: Context) -> Piece:
    ctx.preamble.use_type(e.dtype)
    text = literal(e.value, e.dtype)
    return text, UNARY if text.startswith("-") else PRIMARY


def _var(e: Var, ctx: Context) -> Piece:
    return ctx.name(e), PRIMARY


def _load(e: Load, ctx: Context) -> Piece:
    ctx.preamble.use_type(e.dtype)
    return element(e.buffer, e.indices, ctx), PRIMARY


def _cast(e: Cast, ctx: Context) -> Piece:
    ctx.preamble.use_type(e.dtype)
    if isinstance(e.a, Const) and e.dtype.is_float:
        return literal(held(e.a), e.dtype), PRIMARY
    if e.dtype.is_bool:
        a = Cast(FLOAT32, e.a) if e.a.dtype.name in FP8 or e.a.dtype.is_code else e.a
        return _infix(Binary("!=", a, Const(0, a.dtype), e.dtype), "!=", ctx)
    text = piece(e.a, ctx)[0]
    small = small_int(e.a, text, e.dtype, ctx)
    if small is not None:
        return small, PRIMARY
    source, decoder = e.a.dtype, _DECODERS.get(e.a.dtype.name)
    if decoder is not None and ctx.decodes_fp8:
        ctx.preamble.use_type(FLOAT16)
        ctx.preamble.use_helper(decoder)
        text, source = f"tl::{decoder}({text})", FLOAT16
    return convert(text, source, e.dtype), PRIMARY


def _select(e: Select, ctx: Context) -> Piece:
    cond, a = _operand(e.cond, ctx, TERNARY + 1), _operand(e.a, ctx, TERNARY + 1)
    return f"{cond} ? {a} : {_operand(e.b, ctx, TERNARY)}", TERNARY


def _unary(e: Unary, ctx: Context) -> Piece:
    inner = e.a
    if e.op == "not" and _has_opposite(inner):
        assert isinstance(inner, Binary)
        return _binary(Binary(_OPPOSITE[inner.op], inner.a, inner.b, inner.dtype), ctx)
    if e.dtype.name in FP8:
        return convert("-" + _as_float(e.a, ctx, UNARY), FLOAT32, e.dtype), PRIMARY
    text = {"not": "!"}.get(e.op, e.op) + _operand(inner, ctx, PRIMARY)
    narrow = e.dtype.is_int and e.dtype.bits < 32  # C computed an int
    return (convert(text, INT32, e.dtype), PRIMARY) if narrow else (text, UNARY)


def _has_opposite(e: Expr) -> bool:
    """Whether `e` is a comparison of integers (NaN makes `not <` differ from `>=` for floats)."""
    return isinstance(e, Binary) and e.op in _OPPOSITE and e.a.dtype.is_int


def _call(e: Call, ctx: Context) -> Piece:
    ctx.preamble.use_type(e.dtype)
    if e.fn in _OPERATORS:
        return _binary(Binary(_OPERATORS[e.fn], e.args[0], e.args[1], e.dtype), ctx)
    args = [piece(a, ctx)[0] for a in e.args]
    function = math_fn(e.fn)
    for name in function.helpers:
        ctx.preamble.use_helper(name)
    text = function.text(e.args[0].dtype, args)
    narrow = function.leaves and e.dtype.is_int and e.dtype.bits < 32
    return (convert(text, INT32, e.dtype) if narrow else text), PRIMARY


# ---- binary operators -------------------------------------------------------------------------


def _binary(e: Binary, ctx: Context) -> Piece:
    if e.a.dtype.name in FP8:
        return _through_float(e, ctx)
    if e.op in ("//", "%"):
        return _floor(e, ctx)
    return _infix(e, _SPELLING.get(e.op, e.op), ctx)


def _infix(e: Binary, op: str, ctx: Context) -> Piece:
    level = _LEVELS[op]
    exact = op in _ASSOCIATIVE and not e.dtype.is_float  # float sums keep their order
    a, b = _narrowed(e.a, e.b)
    flat = exact and isinstance(b, Binary) and _SPELLING.get(b.op, b.op) == op
    # In `a * (b * c)` without parentheses, and in a shift, `a` meets no wide operand first.
    left = _operand(e.a if flat or op in ("<<", ">>") else a, ctx, level, op)
    right = _operand(b, ctx, level if flat else level + 1, op)
    text = f"{left} {op} {right}"
    if e.dtype.is_int and e.dtype.bits < 32:
        return convert(text, INT32, e.dtype), PRIMARY  # C computed an int
    return text, level


def _narrowed(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Leave out a widening to 64 bits that C++ does anyway because the other side has them."""
    narrow_a, narrow_b = _without_widening(a), _without_widening(b)
    if narrow_b is not b and narrow_a is a:
        return a, narrow_b
    if narrow_a is not a and narrow_b is b:
        return narrow_a, b
    if narrow_a is not a and isinstance(b, Const):
        return a, narrow_b
    return a, (narrow_b if narrow_a is not a else b)


def _without_widening(e: Expr) -> Expr:
    if e.dtype.kind != "int" or e.dtype.bits != 64:
        return e
    if isinstance(e, Cast) and e.a.dtype.is_int and e.a.dtype.bits <= 32:
        return e.a
    if isinstance(e, Const) and -(1 << 31) < e.value < 1 << 31:
        return Const(e.value, INT32)
    return e


def _floor(e: Binary, ctx: Context) -> Piece:
    """`//` and `%`, which floor: C's operators where no side is negative, else a helper."""
    if e.dtype.is_float:
        return _floor_of_floats(e, ctx)
    if _non_negative(e.a) and _non_negative(e.b):
        return _infix(e, _SPELLING.get(e.op, e.op), ctx)
    name = ctx.preamble.use_floor("floordiv" if e.op == "//" else "floormod")
    return f"{name}({expr(e.a, ctx)}, {expr(e.b, ctx)})", PRIMARY


def _floor_of_floats(e: Binary, ctx: Context) -> Piece:
    name = ctx.preamble.use_floor("floordiv_float" if e.op == "//" else "floormod_float")
    if e.dtype.bits < 32:
        text = f"{name}({_as_float(e.a, ctx)}, {_as_float(e.b, ctx)})"
        return convert(text, FLOAT32, e.dtype), PRIMARY
    return f"{name}({expr(e.a, ctx)}, {expr(e.b, ctx)})", PRIMARY


def _non_negative(e: Expr) -> bool:
    low = e.bounds[0]
    return e.dtype.kind == "uint" or (low is not None and low >= 0)


def _through_float(e: Binary, ctx: Context) -> Piece:
    """Types without arithmetic of their own compute as floats and round back."""
    a, b = (Cast(FLOAT32, side) for side in (e.a, e.b))
    if e.op in COMPARISONS:
        return _binary(Binary(e.op, a, b, e.dtype), ctx)
    text, _ = _binary(Binary(e.op, a, b, FLOAT32), ctx)
    return convert(text, FLOAT32, e.dtype), PRIMARY


def _as_float(e: Expr, ctx: Context, level: int = LOWEST) -> str:
    return _operand(Cast(FLOAT32, e), ctx, level)


EXPRESSIONS: dict[type[Expr], Callable[[Any, Context], Piece]] = {
    Const: _const, Var: _var, Load: _load, Cast: _cast, Select: _select, Unary: _unary,
    Call: _call, Binary: _binary,
}  # fmt: skip
