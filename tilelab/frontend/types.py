"""What a parameter annotation says: a tensor's shape, type and strides; a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelab.dtypes import DTYPES, DType, as_dtype
from tilelab.errors import TileTypeError
from tilelab.ir import Buffer, Expr, ScalarBuffer, Scope, Var, const_int
from tilelab.ir.builder import current, is_tracing

Dim = Expr | int


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

    def __new__(cls, name: str = "v", dtype: Any = "int32") -> Var:  # type: ignore[misc]
        return Var(current().fresh(name) if is_tracing() else name, plain_dtype(dtype))


def plain_dtype(value: Any) -> DType:
    """The table's own DType for any spelling of it."""
    return DTYPES[as_dtype(value).name]


def as_dims(shape: Any, what: str) -> tuple[Dim, ...]:
    """A shape as a tuple of ints and expressions; TileTypeError (TL1420) names the bad entry."""
    entries: tuple[Any, ...] = tuple(shape) if isinstance(shape, tuple | list) else (shape,)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return tuple(_dim(entry, what) for entry in entries)


def _dim(value: Any, what: str) -> Dim:
    constant = const_int(value)
    if constant is not None:
        return constant
    if isinstance(value, Expr) and value.dtype.is_int:
        return value
    if isinstance(value, Expr | ScalarBuffer):
        raise _bad_dim(value, what)
    if hasattr(value, "__index__"):  # numpy integers
        return int(value)
    raise _bad_dim(value, what)


def _bad_dim(value: Any, what: str) -> TileTypeError:
    return TileTypeError(
        f"{value!r} is no extent of {what}",
        code="TL1420",
        hint="extents are Python ints, T.dynamic or T.const variables",
    )
