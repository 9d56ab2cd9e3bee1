"""Expressions -> values. Hides C's integer widths and laziness of select, and, or."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np

from tilelab.dtypes import DType
from tilelab.ir import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var
from tilelab.sim.frame import Array, Frame, Value, varies
from tilelab.thread.conversions import converted
from tilelab.thread.mathfn import math_fn

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": operator.mod, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class Memory(Protocol):
    """What an expression reads from."""

    def read(self, load: Load, indices: tuple[Value, ...], frame: Frame) -> Value: ...

    def divided_by_zero(self, where: Any, frame: Frame) -> None:
        """Integers are divided by zero where `where` holds (and the frame's mask)."""
        ...

    def guarded(self, e: Select, cond: Value, frame: Frame) -> None:
        """A load under the compiler's guard happens where `cond` holds only."""
        ...


def scalar(value: Any, dtype: DType) -> Value:
    """A literal of a type: a Python int or bool, or a numpy float of its width."""
    if dtype.is_float:
        return converted(np.asarray(value, np.float64), dtype)[()]
    return bool(value) if dtype.is_bool else wrap(int(value), dtype)


def wrap(value: int, dtype: DType) -> int:
    """An integer as a register of this width holds it."""
    span = 1 << dtype.bits
    low = -(span >> 1) if dtype.kind == "int" else 0
    return value if low <= value < low + span else (value - low) % span + low


def evaluate(e: Expr, frame: Frame, memory: Memory) -> Value:
    """The value of `e` for every block, lane and lane-loop iteration of the frame."""
    return _RULES[type(e)](e, frame, memory)


def _const(e: Const, frame: Frame, memory: Memory) -> Value:
    value = e.value
    return _whole(value, e.dtype) if type(value) is int else scalar(value, e.dtype)


@lru_cache(maxsize=4096)
def _whole(value: int, dtype: DType) -> Value:
    return scalar(value, dtype)


def _var(e: Var, frame: Frame, memory: Memory) -> Value:
    return frame.env.get(e)


def _binary(e: Binary, frame: Frame, memory: Memory) -> Value:
    if e.op in ("and", "or"):
        return _logic(e, frame, memory)
    a, b = evaluate(e.a, frame, memory), evaluate(e.b, frame, memory)
    divides = e.op in ("//", "%") and not e.dtype.is_float
    if divides and not (b.all() if varies(b) else b):
        zero = np.asarray(b) == 0
        memory.divided_by_zero(zero, frame)
        b = np.where(zero, 1, b) if varies(b) else 1  # it traps nowhere on the chip: any value
    if isinstance(a, int) and isinstance(b, int):
        return _integers(e, a, b)
    return _OPS[e.op](a, b)


def _integers(e: Binary, a: int, b: int) -> Value:
    result = _OPS[e.op](a, b)
    return result if isinstance(result, bool) else wrap(result, e.dtype)


def _logic(e: Binary, frame: Frame, memory: Memory) -> Value:
    a = evaluate(e.a, frame, memory)
    stops = e.op == "or"
    if not varies(a):
        return bool(a) if bool(a) == stops else evaluate(e.b, frame, memory)
    b = evaluate(e.b, frame.masked(~a if stops else a), memory)
    return a | b if stops else a & b


def _unary(e: Unary, frame: Frame, memory: Memory) -> Value:
    a = evaluate(e.a, frame, memory)
    if e.op == "not":
        return ~a if varies(a) else not a
    return -a if e.op == "-" else ~a


def _cast(e: Cast, frame: Frame, memory: Memory) -> Value:
    return convert(evaluate(e.a, frame, memory), e.dtype)


def convert(value: Value, dtype: DType) -> Value:
    """`value` rounded or wrapped to another element type, as the chip does."""
    if varies(value):
        return converted(value, dtype)
    if isinstance(value, int | bool):
        return scalar(value, dtype)
    single = converted(np.asarray(value), dtype)
    return single[()] if dtype.is_float else single.item()


def _select(e: Select, frame: Frame, memory: Memory) -> Value:
    cond = evaluate(e.cond, frame, memory)
    if e.guard:
        memory.guarded(e, cond, frame)
    if not varies(cond):
        return evaluate(e.a if cond else e.b, frame, memory)
    a = evaluate(e.a, frame.masked(cond), memory)
    b = evaluate(e.b, frame.masked(~cond), memory)
    chosen = cast(Array, np.where(cond, a, b))
    return chosen.astype(e.dtype.numpy, copy=False)


def _call(e: Call, frame: Frame, memory: Memory) -> Value:
    args = [evaluate(a, frame, memory) for a in e.args]
    if all(isinstance(a, int) for a in args) and e.fn in ("min", "max"):
        return min(args) if e.fn == "min" else max(args)
    typed = [np.asarray(a, e.args[i].dtype.numpy) for i, a in enumerate(args)]
    result = math_fn(e.fn).value(e.args[0].dtype, typed)
    return result if result.ndim else convert(result[()], e.dtype)


def _load(e: Load, frame: Frame, memory: Memory) -> Value:
    indices = tuple(evaluate(i, frame, memory) for i in e.indices)
    return memory.read(e, indices, frame)


_RULES: dict[type[Expr], Callable[[Any, Frame, Memory], Value]] = {
    Const: _const, Var: _var, Binary: _binary, Unary: _unary, Cast: _cast, Select: _select,
    Call: _call, Load: _load,
}  # fmt: skip


def as_array(value: Value, dtype: DType) -> Array:
    """A value as an array of at least the two last axes (blocks, lanes)."""
    array = converted(np.asarray(value), dtype)
    return array.reshape(1, 1) if array.ndim == 0 else array
