"""`tvm.tirx`: expressions of a kernel by TVM's names.

Names that are not here are looked up in the language (`tirx.Cast` is `T.Cast`).
"""

from __future__ import annotations

from typing import Any

import tilelab.language as T
from tilelab.dtypes import DTYPES, as_dtype
from tilelab.ir import Call, Const, Expr, as_expr, cast
from tilelab.language import PrimExpr, Select, Var
from tilelab.language import reinterpret as _reinterpret

__all__ = ["Call", "FloatImm", "IntImm", "PrimExpr", "Select", "Var", "const", "reinterpret"]


class _Numbers(type):
    """`isinstance(n, tirx.IntImm)` asks for numbers of the program that are known."""

    is_float = False

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Const) and instance.dtype.is_float == cls.is_float


class IntImm(metaclass=_Numbers):
    """`tirx.IntImm("int32", 3)`: a number of an integer type."""

    def __new__(cls, dtype: Any, value: Any) -> Const:  # type: ignore[misc]
        return Const(int(value), DTYPES[as_dtype(dtype).name])


class FloatImm(metaclass=_Numbers):
    """`tirx.FloatImm("float32", 0.5)`: a number of a floating-point type."""

    is_float = True

    def __new__(cls, dtype: Any, value: Any) -> Const:  # type: ignore[misc]
        return Const(float(value), DTYPES[as_dtype(dtype).name])


def const(value: Any, dtype: Any = None) -> Expr:
    """A number of a type; without a type as the language reads a Python number."""
    return as_expr(value) if dtype is None else cast(value, as_dtype(dtype))


def reinterpret(dtype: Any, value: Any, span: Any = None) -> Any:
    """The bits of a value as another type; TVM names the type first."""
    return _reinterpret(value, dtype)


def __getattr__(name: str) -> Any:
    return getattr(T, name)
