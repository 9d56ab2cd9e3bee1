"""Python operators that build expressions, shared by expressions and scalar buffers.

Hides late binding: `build` (which imports the node classes) fills in the constructors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from tilelab.dtypes import as_dtype
from tilelab.errors import TileTypeError


def _no_power() -> TileTypeError:
    return TileTypeError(
        "`**` is not supported between values of the kernel", code="TL1407",
        hint="write x * x for a square, T.sqrt(x) for a root, T.pow(x, y) for others, "
        "and 1 << n for a power of two",
    )  # fmt: skip


class Operators:
    """Mixin: `a + b`, `a < b`, ... build expressions; nothing is evaluated."""

    _binary: ClassVar[Callable[[str, Any, Any], Any]]
    _unary: ClassVar[Callable[[str, Any], Any]]
    _cast: ClassVar[Callable[[Any, Any], Any]]
    _abs: ClassVar[Callable[[Any], Any]]
    _is_scalar: ClassVar[Callable[[object], bool]]

    def __add__(self, other: Any) -> Any:
        return Operators._binary("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return Operators._binary("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return Operators._binary("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return Operators._binary("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return Operators._binary("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return Operators._binary("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return Operators._binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return Operators._binary("/", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return Operators._binary("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return Operators._binary("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return Operators._binary("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return Operators._binary("%", other, self)

    def __and__(self, other: Any) -> Any:
        return Operators._binary("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return Operators._binary("&", other, self)

    def __or__(self, other: Any) -> Any:
        return Operators._binary("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return Operators._binary("|", other, self)

    def __xor__(self, other: Any) -> Any:
        return Operators._binary("^", self, other)

    def __rxor__(self, other: Any) -> Any:
        return Operators._binary("^", other, self)

    def __lshift__(self, other: Any) -> Any:
        return Operators._binary("<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return Operators._binary("<<", other, self)

    def __rshift__(self, other: Any) -> Any:
        return Operators._binary(">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return Operators._binary(">>", other, self)

    def __lt__(self, other: Any) -> Any:
        return Operators._binary("<", self, other)

    def __le__(self, other: Any) -> Any:
        return Operators._binary("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return Operators._binary(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return Operators._binary(">=", self, other)

    def __eq__(self, other: object) -> Any:
        return (
            Operators._binary("==", self, other) if Operators._is_scalar(other) else NotImplemented
        )

    def __ne__(self, other: object) -> Any:
        return (
            Operators._binary("!=", self, other) if Operators._is_scalar(other) else NotImplemented
        )

    def __pow__(self, other: Any) -> Any:
        raise _no_power()

    def __rpow__(self, other: Any) -> Any:
        raise _no_power()

    __array_ufunc__ = None  # numpy's numbers leave an operator to the value of the kernel

    __hash__ = object.__hash__  # identity: == builds an expression

    def __neg__(self) -> Any:
        return Operators._unary("-", self)

    def __abs__(self) -> Any:
        return Operators._abs(self)

    def __round__(self, digits: int | None = None) -> Any:
        raise TileTypeError(
            "Python's round() gives a Python number, and this value is known only in the kernel",
            code="TL1454", hint="use T.round(x), or T.cast(T.round(x), \"int32\")",
        )  # fmt: skip

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return Operators._unary("~", self)

    def astype(self, dtype: Any) -> Any:
        """This value converted to another element type."""
        return Operators._cast(self, as_dtype(dtype))
