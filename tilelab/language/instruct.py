"""Instructions of one thread as calls of the language: how a call becomes an Invoke statement."""

from __future__ import annotations

from typing import Any

from tilelab.dtypes import DType
from tilelab.errors import TileTypeError
from tilelab.frontend import open_kernel, session
from tilelab.ir import Buffer, Expr, Let, Load, Scope, Stmt, Var, as_bool, as_expr, const_int
from tilelab.thread.intrinsic import Intrinsic
from tilelab.thread.nodes import Invoke, Operand, Ref


def perform(record: Intrinsic, *operands: Operand, what: str, anywhere: bool = False) -> Stmt:
    """Emit an instruction that gives no value (`anywhere`: see Builder.emit)."""
    open_kernel(what)
    trace = session()
    return trace.emit(Invoke(record, operands, loc=trace.loc()), anywhere=anywhere)


def evaluate(record: Intrinsic, *operands: Operand, dtype: DType, what: str) -> Expr:
    """Emit an instruction, once, and give its value."""
    open_kernel(what)
    trace = session()
    lo_hi = (0, 1) if dtype.is_bool else (None, None)
    result = Var(trace.hinted("value"), dtype, *lo_hi)
    trace.emit(Invoke(record, operands, result=result, loc=trace.loc()), anywhere=True)
    return result


def predicate(value: Any, what: str) -> Expr:
    """`value` as a truth value. TileTypeError (TL1782) for floats, whose bits are no answer."""
    given = as_expr(value)
    if given.dtype.is_float:
        raise TileTypeError(
            f"{what} requires an integer or boolean predicate, but got {given.dtype}",
            code="TL1782", loc=session().loc(), hint="compare it: x != 0",
        )  # fmt: skip
    return as_bool(given)


def bound(value: Expr, name: str) -> Expr:
    """`value` computed now and kept under a name."""
    trace = session()
    var = Var(trace.fresh(name), value.dtype, *value.bounds)
    trace.emit(Let(var, value, loc=trace.loc()), anywhere=True)
    return var


def barrier_place(value: Any, what: str) -> Ref:
    """The mbarrier that `value` names. TileTypeError (TL1757) when it names none."""
    if isinstance(value, Buffer) and all(const_int(n) == 1 for n in value.shape):
        value = Load(value, (as_expr(0),) * value.rank)
    if isinstance(value, Load) and value.buffer.scope is Scope.BARRIER:
        return Ref(value.buffer, value.indices)
    name = getattr(value, "name", repr(value))
    raise TileTypeError(
        f"{what} needs one barrier, and {name} is none", code="TL1757", loc=session().loc(),
        hint="make barriers with T.alloc_barrier, and name one of them: barrier[i]",
    )  # fmt: skip


def element_place(value: Any, what: str) -> Ref:
    """The place that an element or a whole buffer begins at. TileTypeError (TL1757) otherwise."""
    if isinstance(value, Buffer):
        value = Load(value, (as_expr(0),) * value.rank)
    if isinstance(value, Load):
        return Ref(value.buffer, value.indices)
    raise TileTypeError(
        f"{what} needs an element of a buffer, and {value!r} is none", code="TL1757",
        loc=session().loc(), hint="name the first element: A[i, j]",
    )  # fmt: skip
