"""Scalar expression nodes; `build` makes them, folded and simplified.

An index expression knows its bounds (variables carry theirs), so `//` and `%` with a constant
disappear where a layout formula is a plain sum. `//` and `%` have Python's meaning: they floor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tilelab.dtypes import INT32, DType, integer_range
from tilelab.errors import TileTypeError
from tilelab.ir.bounds import UNKNOWN, Bounds, binary_bounds, call_bounds
from tilelab.ir.core import Node
from tilelab.ir.operators import Operators

if TYPE_CHECKING:
    from tilelab.ir.buffer import Buffer

COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
LOGICAL = frozenset({"and", "or"})


class Expr(Operators, Node):
    """A scalar value of one `dtype`. Operators build new expressions; nothing is evaluated."""

    dtype: DType

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Structural identity: two expressions with equal keys compute the same value."""
        raise NotImplementedError

    @cached_property
    def bounds(self) -> Bounds:
        """Inclusive lower and upper bound of an integer expression; None where not known."""
        return UNKNOWN

    def __bool__(self) -> bool:
        raise TileTypeError(
            "the value of this expression is known only when the kernel runs",
            code="TL1102",
            hint="use `if` inside a kernel, T.if_then_else, or `and`/`or` in kernel code",
        )

    def __index__(self) -> int:
        raise TileTypeError(
            "this expression is no Python integer: its value is known only when the kernel runs",
            code="TL1102",
            hint="pass a compile-time constant here",
        )


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A literal."""

    value: int | float | bool
    dtype: DType

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return ("const", repr(self.value), self.dtype.name)

    @cached_property
    def bounds(self) -> Bounds:
        return (int(self.value), int(self.value)) if not self.dtype.is_float else UNKNOWN


@dataclass(frozen=True, eq=False)
class Var(Expr):
    """A name for a scalar: a loop variable, a thread or block index, a let, a dynamic size.

    `lo` and `hi` are inclusive bounds where they are known. `role` is "" or one of "thread",
    "block", "size", "scalar" and tells codegen and the simulator where the value comes from.
    """

    is_leaf: ClassVar[bool] = True

    name: str
    dtype: DType = INT32
    lo: int | None = None
    hi: int | None = None
    role: str = ""

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return ("var", id(self))

    @cached_property
    def bounds(self) -> Bounds:
        return (self.lo, self.hi)


@dataclass(frozen=True, eq=False)
class Binary(Expr):
    """`a op b`; see `binary`, which folds and converts operands."""

    op: str
    a: Expr
    b: Expr
    dtype: DType

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return (self.op, self.a.key, self.b.key)

    @cached_property
    def bounds(self) -> Bounds:
        found = binary_bounds(self.op, self.a.bounds, self.b.bounds)
        wraps = self.dtype.bits < 32 or self.dtype.kind != "int" or self.op == "<<"
        return self._kept(found) if wraps else found

    def _kept(self, found: Bounds) -> Bounds:
        """Bounds of a type that wraps around: known only where the exact result fits."""
        if not self.dtype.is_int:
            return found
        least, most = integer_range(self.dtype)
        lo, hi = found
        return found if lo is not None and hi is not None and least <= lo <= hi <= most else UNKNOWN


@dataclass(frozen=True, eq=False)
class Unary(Expr):
    """`-a`, `~a` (integers), `not a` (bool)."""

    op: str
    a: Expr
    dtype: DType

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return (self.op, self.a.key)


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """`a` converted to `dtype` with the hardware's rounding (to nearest even)."""

    dtype: DType
    a: Expr

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return ("cast", self.dtype.name, self.a.key)

    @cached_property
    def bounds(self) -> Bounds:
        lo, hi = self.a.bounds
        if not (self.dtype.is_int and self.a.dtype.is_int):
            return UNKNOWN
        if self.dtype.kind == "int" and self.dtype.bits > self.a.dtype.bits:
            return self.a.bounds
        least, most = integer_range(self.dtype)
        fits = lo is not None and hi is not None and least <= lo <= hi <= most
        same = self.dtype.kind == self.a.dtype.kind and self.dtype.bits >= self.a.dtype.bits
        return self.a.bounds if fits or same else UNKNOWN


@dataclass(frozen=True, eq=False)
class Select(Expr):
    """`a if cond else b`, lazy: the side not chosen is not evaluated (its loads do not happen).

    `guard`: the compiler's own, around a load that the program does not guard: `cond` says that
    the element exists, `b` stands for it where it does not.
    """

    cond: Expr
    a: Expr
    b: Expr
    dtype: DType
    guard: bool = False

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return ("select", self.cond.key, self.a.key, self.b.key)

    @cached_property
    def bounds(self) -> Bounds:
        (al, ah), (bl, bh) = self.a.bounds, self.b.bounds
        lo = None if al is None or bl is None else min(al, bl)
        hi = None if ah is None or bh is None else max(ah, bh)
        return (lo, hi)


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A pure function of scalars, by name ("exp2", "max", ...); see thread.mathfn for the table."""

    fn: str
    args: tuple[Expr, ...]
    dtype: DType

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return ("call", self.fn, self.dtype.name, *(a.key for a in self.args))

    @cached_property
    def bounds(self) -> Bounds:
        return call_bounds(self.fn, [a.bounds for a in self.args])


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """One element of a buffer, at logical indices."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.buffer.dtype

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return ("load", id(self.buffer), *(i.key for i in self.indices))


def const_int(value: Any) -> int | None:
    """The Python integer that `value` is, or None when it is known only at run time."""
    if isinstance(value, Const) and not value.dtype.is_float:
        return int(value.value)
    return int(value) if isinstance(value, int) else None
