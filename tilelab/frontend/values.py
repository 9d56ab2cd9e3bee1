"""The tracer's part for expressions: what `and`, `not`, ternaries and `in` mean for traced values.

A traced value is one known only when the kernel runs; everything else is decided now.
"""

from __future__ import annotations

import ast
import builtins
import operator
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from tilelab.errors import TileTypeError, TileWarning
from tilelab.frontend.called import call_at, resolve
from tilelab.frontend.loops import RangeLoop
from tilelab.frontend.poison import Poison, raise_poison
from tilelab.frontend.session import session
from tilelab.ir import Buffer, Const, Expr, Region, ScalarBuffer, as_expr, binary, select, unary

_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip
_IN_PLACE = {
    "+": "iadd", "-": "isub", "*": "imul", "/": "itruediv", "//": "ifloordiv", "%": "imod",
    "**": "ipow", "@": "imatmul", "<<": "ilshift", ">>": "irshift", "&": "iand", "|": "ior",
    "^": "ixor",
}  # fmt: skip
_PYTHON.update({op: getattr(operator, name) for op, name in _IN_PLACE.items()})
_REPLACEMENTS = {
    "min": "T.min", "max": "T.max", "round": "T.round", "sum": "a loop",
}  # fmt: skip


def is_traced(value: object) -> bool:
    """Whether `value` is a scalar that is known only when the kernel runs."""
    if isinstance(value, Poison):
        raise_poison(value)
    if isinstance(value, Expr):
        return not isinstance(value, Const)
    return hasattr(value, "__expr__")


def truth(value: object) -> bool:
    """The trace-time truth of a value that is not traced. TileTypeError (TL1452) for a buffer."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Buffer | Region):
        raise TileTypeError(
            f"{getattr(value, 'name', 'a region')} is a whole buffer, not a condition",
            code="TL1452",
            hint="test one element, such as A[i] > 0",
        )
    return bool(value)


def apply(op: str, a: Any, b: Any) -> Any:
    """`a op b` as Python evaluates it (in place where the left side allows it)."""
    return _PYTHON[op](a, b)


class Values:
    """Methods that rewritten expressions call."""

    def __init__(self) -> None:
        self._stack: list[Any] = []

    def pop(self) -> Any:
        """The left operand that decided a short-circuit."""
        return self._stack.pop()

    def need_and(self, left: Any) -> bool:
        """Whether the right side of `left and ...` has to be evaluated."""
        self._stack.append(left)
        return is_traced(left) or truth(left)

    def both(self, right: Any) -> Any:
        """`left and right`, where left is on the stack and did not decide."""
        left = self._stack.pop()
        return binary("and", left, _operand(right)) if is_traced(left) else right

    def need_or(self, left: Any) -> bool:
        """Whether the right side of `left or ...` has to be evaluated."""
        self._stack.append(left)
        return is_traced(left) or not truth(left)

    def either(self, right: Any) -> Any:
        """`left or right`, where left is on the stack and did not decide."""
        left = self._stack.pop()
        return binary("or", left, _operand(right)) if is_traced(left) else right

    def not_(self, value: Any) -> Any:
        """`not value`."""
        return unary("not", value) if is_traced(value) else not truth(value)

    def compare(self, ops: tuple[str, ...], *operands: Any) -> Any:
        """A comparison chain, or a membership test."""
        result: Any = True
        for op, a, b in zip(ops, operands, operands[1:], strict=False):
            part = _compare(op, a, b)
            if is_traced(result):
                result = binary("and", result, _operand(part))
            elif truth(result):
                result = part
        return result

    def choose(self, cond: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        """`a() if cond else b()`: an expression when the condition is traced."""
        if not is_traced(cond):
            return a() if truth(cond) else b()
        sides = (a(), b())
        for side in sides:
            if isinstance(side, Buffer | Region) and not isinstance(side, ScalarBuffer):
                raise TileTypeError(
                    "a condition known only at run time cannot choose between buffers",
                    code="TL1453",
                    hint="use an if statement with both uses, or a compile-time condition",
                )
        return select(cond, *sides)

    def builtin(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`range`, `max`, ... as called in traced code (the user's own if it is shadowed)."""
        if fn is builtins.range:
            return _range
        if fn is builtins.abs:  # values of the kernel have __abs__
            return fn
        if getattr(builtins, getattr(fn, "__name__", ""), None) is not fn:
            return fn

        if fn is builtins.print:
            return partial(_shown_now, fn)

        def checked(*args: Any, **kwargs: Any) -> Any:
            if any(map(is_traced, args)):
                name = fn.__name__
                raise TileTypeError(
                    f"Python's {name}() needs values now, and this one is known only in the kernel",
                    code="TL1454",
                    hint=f"use {_REPLACEMENTS[name]}",
                )
            return fn(*args, **kwargs)

        return checked


def formats_traced(frame: FrameType) -> bool:
    """Whether the call that runs in `frame` has an f-string with a value of the kernel."""
    node, known = call_at(session().loc()), {**frame.f_globals, **frame.f_locals}
    texts = [] if node is None else [n for n in ast.walk(node) if isinstance(n, ast.FormattedValue)]
    names = [resolve(n, known) for t in texts for n in ast.walk(t) if isinstance(n, ast.Name)]
    return any(isinstance(n, Buffer) or is_traced(n) for n in names)


def _shown_now(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Python's print, `fn`: it shows how a value of the kernel is computed, not the value."""
    shown = any(isinstance(a, Buffer | Region) or is_traced(a) for a in args)
    if shown or formats_traced(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
        warnings.warn(
            "print() runs while the kernel is traced and shows an expression: T.print(x) shows "
            "its value while the kernel runs", TileWarning, stacklevel=2,
        )  # fmt: skip
    fn(*args, **kwargs)


def _operand(value: Any) -> Any:
    """The right side of a traced `and`/`or`; a Python truth value is taken as bool."""
    if is_traced(value) or isinstance(value, Const | bool | int | float):
        return value
    return truth(value)


def _compare(op: str, a: Any, b: Any) -> Any:
    if op in ("in", "not in"):
        inside = _contains(a, b)
        return inside if op == "in" else not inside
    return apply(op, a, b)


def _contains(value: Any, container: Any) -> bool:
    if is_traced(value):
        raise TileTypeError(
            "`in` compares objects while the kernel is traced, before this value is known",
            code="TL1455",
            hint="write the comparisons out: x == 0 or x == 1",
        )
    return value in container


def _range(*args: Any) -> Any:
    """`range(...)`: Python's own for Python ints, else a serial loop of the kernel."""
    values: list[Any] = [int(a.value) if isinstance(a, Const) else a for a in args]
    if not any(is_traced(v) for v in values):
        return range(*values)
    start, stop, step = (0, values[0], 1) if len(values) == 1 else (*values, 1)[:3]
    return RangeLoop(as_expr(start), as_expr(stop), as_expr(step))
