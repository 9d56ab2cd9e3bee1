"""`tvm.tirx`: expressions of a kernel by TVM's names.

Names that are not here are looked up in the language (`tirx.Cast` is `T.Cast`).
"""

from __future__ import annotations

from typing import Any

import tilelab.language as T
from tilelab.dtypes import as_dtype
from tilelab.ir import Expr, Var, as_expr, cast
from tilelab.language import Select
from tilelab.language import reinterpret as _reinterpret

PrimExpr = Expr
__all__ = ["PrimExpr", "Select", "Var", "const", "reinterpret"]


def const(value: Any, dtype: Any = None) -> Expr:
    """A number of a type; without a type as the language reads a Python number."""
    return as_expr(value) if dtype is None else cast(value, as_dtype(dtype))


def reinterpret(dtype: Any, value: Any, span: Any = None) -> Any:
    """The bits of a value as another type; TVM names the type first."""
    return _reinterpret(value, dtype)


def __getattr__(name: str) -> Any:
    return getattr(T, name)
