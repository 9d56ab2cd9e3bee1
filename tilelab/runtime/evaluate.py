"""Expressions over size variables and runtime numbers, as Python functions.

Grids, shapes and strides are evaluated on the host at each call. Hides the translation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelab.errors import TileInternalError
from tilelab.ir import Binary, Call, Cast, Const, Expr, Select, Unary, Var, const_int

Names = Mapping[int, str]
"""id of a variable -> its name in the generated function."""

Values = tuple[Any, ...]


def _const(e: Any, names: Names) -> str:
    return repr(e.value)


def _var(e: Any, names: Names) -> str:
    name = names.get(id(e))
    if name is None:
        raise TileInternalError(
            f"the launch of this kernel depends on {e.name}, which is known only on the GPU",
            hint="this is a bug of tilelab: please report it with the program",
        )
    return name


def _binary(e: Any, names: Names) -> str:
    return f"({python_text(e.a, names)} {e.op} {python_text(e.b, names)})"


def _unary(e: Any, names: Names) -> str:
    return f"({e.op} {python_text(e.a, names)})"


def _cast(e: Any, names: Names) -> str:
    to = "float" if e.dtype.is_float else "bool" if e.dtype.is_bool else "int"
    return f"{to}({python_text(e.a, names)})"


def _select(e: Any, names: Names) -> str:
    a, cond, b = (python_text(part, names) for part in (e.a, e.cond, e.b))
    return f"({a} if {cond} else {b})"


def _call(e: Any, names: Names) -> str:
    if e.fn not in ("min", "max", "abs"):
        raise TileInternalError(f"{e.fn} cannot be evaluated on the host")
    return f"{e.fn}({', '.join(python_text(a, names) for a in e.args)})"


_PRINTERS: dict[type[Any], Callable[[Any, Names], str]] = {
    Const: _const, Var: _var, Binary: _binary, Unary: _unary, Cast: _cast,
    Select: _select, Call: _call,
}  # fmt: skip


def python_text(e: Expr | int, names: Names) -> str:
    """`e` as a Python expression (`//` and `%` floor in both languages)."""
    value = const_int(e)
    if value is not None:
        return repr(value)
    printer = _PRINTERS.get(type(e))
    if printer is None:
        raise TileInternalError(f"a {type(e).__name__} cannot be evaluated on the host")
    return printer(e, names)


def function_of(exprs: Sequence[Expr | int], variables: Sequence[Var]) -> Callable[..., Values]:
    """A function of the variables' values, in order, that gives the tuple of `exprs`."""
    constants = [const_int(e) for e in exprs]
    if all(c is not None for c in constants):
        answer = tuple(constants)
        return lambda *_: answer
    names = {id(v): f"v{i}" for i, v in enumerate(variables)}
    body = "".join(f"{python_text(e, names)}, " for e in exprs)
    text = f"lambda {', '.join(names.values())}: ({body})"
    return eval(text, {"__builtins__": {"min": min, "max": max, "abs": abs, "int": int,
                                        "float": float, "bool": bool}})  # fmt: skip


def free_variables(e: Expr | int) -> list[Var]:
    """The variables of an expression, each once, in the order they are met."""
    found: dict[int, Var] = {}
    stack: list[Any] = [e]
    while stack:
        top = stack.pop()
        if type(top) is Var:
            found.setdefault(id(top), top)
        elif isinstance(top, Expr):
            stack.extend(reversed([getattr(top, f) for f in ("a", "b", "cond") if hasattr(top, f)]))
            stack.extend(reversed(getattr(top, "args", ())))
    return list(found.values())
