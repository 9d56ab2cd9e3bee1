"""Arithmetic in a reference's description: text such as "min(sms, ceildiv(M, 128))" -> a number.

Hides the parsing: only numbers, names, operators and four functions are known, nothing is run.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tilelab.errors import TileValueError

Names = Mapping[str, Any]


def ceildiv(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


def _divide(a: Any, b: Any) -> Any:
    return a / b


def _floor_divide(a: Any, b: Any) -> Any:
    return a // b


def _power(a: Any, b: Any) -> Any:
    return a**b


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceildiv": ceildiv, "min": min, "max": max, "sqrt": math.sqrt,
}  # fmt: skip

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: _divide, ast.FloorDiv: _floor_divide, ast.Mod: operator.mod,
    ast.Pow: _power, ast.USub: operator.neg, ast.Not: operator.not_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def calculate(text: str | float, names: Names, *, what: str) -> Any:
    """The value of `text`, where `names` stand for numbers, booleans and strings.

    Raises TileValueError (TL2121) naming `what` it was about and what may be written.
    """
    try:
        value = _value(ast.parse(str(text), mode="eval").body, names)
    except (SyntaxError, KeyError, TypeError, ArithmeticError, ValueError) as error:
        reason = f"{error.args[0]!r} is not known" if type(error) is KeyError else str(error)
        raise TileValueError(
            f"{what}: {str(text)!r} cannot be calculated: {reason}",
            code="TL2121",
            hint=f"names here: {', '.join(sorted(names))}; functions: {', '.join(FUNCTIONS)}; "
            "operators: + - * / // % ** comparisons, and, or, not",
        ) from error
    return value


def _value(node: ast.AST, names: Names) -> Any:
    rule = _RULES.get(type(node))
    if rule is None:
        raise ValueError(f"{ast.unparse(node)!r} is no arithmetic")
    return rule(node, names)


def _operator(node: ast.AST) -> Callable[..., Any]:
    if type(node) not in _OPERATORS:
        raise ValueError(f"the operator {type(node).__name__} is not known")
    return _OPERATORS[type(node)]


def _compare(node: Any, names: Names) -> bool:
    values = [_value(n, names) for n in (node.left, *node.comparators)]
    pairs = zip(node.ops, values, values[1:], strict=False)
    return all(_operator(op)(a, b) for op, a, b in pairs)


def _call(node: Any, names: Names) -> Any:
    name = getattr(node.func, "id", ast.unparse(node.func))
    return FUNCTIONS[name](*[_value(a, names) for a in node.args])


def _both(node: Any, names: Names) -> bool:
    join = all if type(node.op) is ast.And else any
    return join(_value(v, names) for v in node.values)


_RULES: dict[type[ast.AST], Callable[[Any, Names], Any]] = {
    ast.Constant: lambda n, names: n.value,
    ast.Name: lambda n, names: names[n.id],
    ast.UnaryOp: lambda n, names: _operator(n.op)(_value(n.operand, names)),
    ast.BinOp: lambda n, names: _operator(n.op)(_value(n.left, names), _value(n.right, names)),
    ast.Compare: _compare,
    ast.BoolOp: _both,
    ast.Call: _call,
}
