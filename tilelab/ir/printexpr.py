"""Expressions as Python-like text, with minimal parentheses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tilelab.ir.buffer import Buffer
from tilelab.ir.expr import Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var

Piece = tuple[str, int]


class Printer(Protocol):
    """What the printer of whole nodes does for expressions."""

    def name(self, node: Any) -> str: ...

    def index(self, buffer: Buffer, indices: tuple[Any, ...]) -> str: ...


def expression(e: Expr, p: Printer) -> str:
    """`e` on one line."""
    return _piece(e, p)[0]


_PRIMARY, _UNARY, _NOT, _SELECT = 100, 90, 25, 10
_LEVELS = {
    "*": 80, "/": 80, "//": 80, "%": 80, "+": 70, "-": 70, "<<": 60, ">>": 60, "&": 50, "^": 45,
    "|": 40, "<": 30, "<=": 30, ">": 30, ">=": 30, "==": 30, "!=": 30, "and": 20, "or": 15,
}  # fmt: skip
_PLAIN = frozenset({"int32", "float32", "bool"})  # types that a literal of Python has by itself


def _piece(e: Expr, p: Printer) -> Piece:
    return _RULES[type(e)](e, p)


def _at(e: Expr, p: Printer, level: int) -> str:
    text, own = _piece(e, p)
    return f"({text})" if own < level else text


def _const(e: Const, p: Printer) -> Piece:
    text = repr(e.value)
    if e.dtype.name not in _PLAIN:
        return f"{e.dtype}({text})", _PRIMARY
    return text, _UNARY if text.startswith("-") else _PRIMARY


def _binary(e: Binary, p: Printer) -> Piece:
    level = _LEVELS[e.op]
    compares = level == _LEVELS["<"]  # Python would chain them
    return f"{_at(e.a, p, level + compares)} {e.op} {_at(e.b, p, level + 1)}", level


def _unary(e: Unary, p: Printer) -> Piece:
    if e.op == "not":
        return f"not {_at(e.a, p, _NOT)}", _NOT
    return f"{e.op}{_at(e.a, p, _UNARY)}", _UNARY


def _select(e: Select, p: Printer) -> Piece:
    a, cond = _at(e.a, p, _SELECT + 1), _at(e.cond, p, _SELECT + 1)
    return f"{a} if {cond} else {_at(e.b, p, _SELECT)}", _SELECT


def _call(e: Call, p: Printer) -> Piece:
    return f"{e.fn}({', '.join(_piece(a, p)[0] for a in e.args)})", _PRIMARY


_RULES: dict[type[Expr], Callable[[Any, Printer], Piece]] = {
    Const: _const, Binary: _binary, Unary: _unary, Select: _select, Call: _call,
    Var: lambda e, p: (p.name(e), _PRIMARY),
    Cast: lambda e, p: (f"{e.dtype}({_piece(e.a, p)[0]})", _PRIMARY),
    Load: lambda e, p: (p.index(e.buffer, e.indices), _PRIMARY),
}  # fmt: skip
