"""Questions about all elements of a buffer: T.any_of, T.all_of."""

from __future__ import annotations

from typing import Any

from tilelab.dtypes import BOOL
from tilelab.errors import TileTypeError
from tilelab.frontend import open_kernel, session
from tilelab.ir import (
    Alloc,
    Expr,
    For,
    Load,
    LoopKind,
    Region,
    ScalarBuffer,
    Scope,
    Seq,
    Stmt,
    Store,
    Var,
    as_bool,
    as_expr,
    binary,
    const_int,
)
from tilelab.language.instruct import bound
from tilelab.tile.operands import as_region


def any_of(buffer: Any) -> Expr:
    """Whether some element of a buffer or slice is not zero; every thread looks at all of them."""
    return _over(buffer, "or", "T.any_of")


def all_of(buffer: Any) -> Expr:
    """Whether no element of a buffer or slice is zero; every thread looks at all of them."""
    return _over(buffer, "and", "T.all_of")


def _over(value: Any, op: str, what: str) -> Expr:
    open_kernel(what)
    trace = session()
    region = as_region(value, "buffer", (1,))
    _check(region, what)
    loc = trace.loc()
    found = ScalarBuffer(trace.fresh("found"), (1,), BOOL, Scope.LOCAL, loc=loc)
    zero = as_expr(0)
    start = Store(found, (zero,), as_expr(op == "and", BOOL), loc=loc)
    vars = [Var(trace.fresh("k"), lo=0, hi=int(const_int(e) or 1) - 1) for e in region.tile_shape]
    element = as_bool(Load(region.buffer, region.index(tuple(vars))))
    body: Stmt = Store(found, (zero,), binary(op, Load(found, (zero,)), element), loc=loc)
    for var, extent in zip(reversed(vars), reversed(region.tile_shape), strict=True):
        inner = Seq((body,), loc=loc)
        body = For(var, zero, as_expr(extent), as_expr(1), LoopKind.SERIAL, inner, loc=loc)
    for stmt in (Alloc(found, loc=loc), start, body):
        trace.emit(stmt, anywhere=True)
    return bound(Load(found, (zero,)), "answer")


def _check(region: Region, what: str) -> None:
    if any(const_int(e) is None for e in region.tile_shape):
        raise TileTypeError(
            f"{what} of {region.buffer.name}, whose extents are known only at run time",
            code="TL1535", hint="give a slice of constant extents",
        )  # fmt: skip
    if region.buffer.scope is Scope.FRAGMENT:
        raise TileTypeError(
            f"{what} of the fragment {region.buffer.name}: no thread holds all of it",
            code="TL1535", hint="copy it to a shared buffer first",
        )  # fmt: skip


NAMES = {"any_of": any_of, "all_of": all_of}
"""What this module adds to the language."""
