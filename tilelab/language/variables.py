"""Variables made by hand: T.Var("n", "int32") or T.int32(), and T.let, which gives one a value."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelab.errors import TileTypeError
from tilelab.frontend import Variable, open_kernel, session
from tilelab.ir import Expr, Let, Stmt, Var, as_expr, cast


def let(v: Any, value: Any) -> Stmt:
    """`T.let(v, value)`: from here to the end of the block, the variable `v` is `value`, computed
    now. TileTypeError (TL1466) when `v` is no variable that T.Var or T.int32() made."""
    open_kernel("T.let")
    trace = session()
    if not isinstance(v, Var) or v.role:
        raise TileTypeError(
            f"T.let gives a value to {v!r}, which is no new variable", code="TL1466",
            loc=trace.loc(), hint="make one with T.int32(), or write v = ...",
        )  # fmt: skip
    return trace.emit(Let(v, cast(as_expr(value, v.dtype), v.dtype), loc=trace.loc()))


class _Expressions(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Expr)


class PrimExpr(metaclass=_Expressions):
    """What every number of a kernel is an instance of; for annotations and `isinstance`."""

    def __new__(cls, *values: Any, **named: Any) -> NoReturn:
        raise TileTypeError(
            "T.PrimExpr is a kind of value, none is made by calling it", code="TL1407",
            hint='write T.cast(x, "int32"), or T.int32(x), for a number of a type',
        )  # fmt: skip


NAMES: dict[str, Any] = {"PrimExpr": PrimExpr, "Var": Variable, "let": let}
"""What this module adds to the language."""
