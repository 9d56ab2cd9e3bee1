"""What a parameter annotation says: a tensor's shape, type and strides; a reference."""

from __future__ import annotations

import contextlib
import operator
from dataclasses import dataclass
from typing import Any

from tilelab.calls import answers
from tilelab.dtypes import DTYPES, DType, as_dtype
from tilelab.errors import TileTypeError, shown
from tilelab.ir import Buffer, Expr, ScalarBuffer, Scope, Var, const_int
from tilelab.ir.builder import current, is_tracing
from tilelab.ir.printer import to_text

Dim = Expr | int
_MOST = (1 << 63) - 1  # sizes and offsets are 64-bit numbers


@dataclass(frozen=True, eq=False)
class TensorType:
    """`T.Tensor((M, K), dtype)`: the type of a tensor parameter; `strides` None means row-major."""

    shape: tuple[Dim, ...]
    dtype: DType
    strides: tuple[Dim, ...] | None = None

    def buffer(self, name: str) -> Buffer:
        """The global buffer of a parameter of this type."""
        return Buffer(name, self.shape, self.dtype, Scope.GLOBAL, strides=self.strides)


@dataclass(frozen=True, eq=False)
class PointerType:
    """`T.ptr`: the type of a tensor parameter whose shape the body gives (T.make_tensor)."""


@dataclass(frozen=True, eq=False)
class PointerParam:
    """A parameter of that type, as the body gets it."""

    name: str


class RefType:
    """The type of `T.Ref`, the annotation of a macro parameter passed by reference."""

    def __repr__(self) -> str:
        return "T.Ref"


REF = RefType()


class _Variables(type):
    """`isinstance(n, T.Var)` asks for the variables of the program."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Var)


class Variable(metaclass=_Variables):
    """`T.Var("n", "int32")`: a variable, which T.let gives a value. As the annotation of a macro's
    parameter it is T.Ref, by its older name."""

    @answers("T.Var", kinds=True)
    def __new__(cls, name: str = "v", dtype: Any = "int32") -> Var:  # type: ignore[misc]
        return Var(current().fresh(name) if is_tracing() else name, plain_dtype(dtype))


def plain_dtype(value: Any) -> DType:
    """The table's own DType for any spelling of it."""
    return DTYPES[as_dtype(value).name]


def as_dims(shape: Any, what: str, least: int = 0) -> tuple[Dim, ...]:
    """A shape as a tuple of ints and expressions; TileTypeError (TL1420) names the bad entry.

    A tensor or a grid may be empty (an extent of 0): it then holds or launches nothing.
    """
    entries: tuple[Any, ...] = tuple(shape) if isinstance(shape, tuple | list) else (shape,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return tuple(_dim(entry, what, least) for entry in entries)


def _dim(value: Any, what: str, least: int) -> Dim:
    constant = None if isinstance(value, bool) else const_int(value)
    if constant is not None and not least <= constant <= _MOST:
        raise _bad_dim(value, what)
    if constant is not None:
        return constant
    if isinstance(value, Expr) and value.dtype.is_int:
        return value
    if isinstance(value, Expr | ScalarBuffer):
        raise _bad_dim(value, what)
    if hasattr(value, "__index__") and not isinstance(value, bool):  # numpy integers
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            return _dim(operator.index(value), what, least)
    raise _bad_dim(value, what)


def _bad_dim(value: Any, what: str) -> TileTypeError:
    said = to_text(value) if isinstance(value, Expr) else shown(value)
    hints = {
        "float": ("" if not said.endswith(".0") else f"write {said.removesuffix('.0')}; ")
        + "`/` gives a float, `//` and ceildiv an int: T.ceildiv(n, tile) rounds up",
        "tuple": "extents are arguments of their own: T.Kernel(gx, gy), a shape is flat",
        "str": f"write T.dynamic({said}) for a size that each call brings; the shape comes before "
        "the element type",
    }
    given: object = value
    hint = hints.get(
        type(given).__name__, "extents are Python ints from 0 on, T.dynamic or T.const variables"
    )
    return TileTypeError(f"{said} is no extent of {what}", code="TL1420", hint=hint)
