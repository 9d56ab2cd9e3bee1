"""On-chip memory: T.alloc_shared, alloc_fragment, alloc_local, alloc_var."""

from __future__ import annotations

from typing import Any

from tilelab.errors import TileTypeError, TileValueError, shown
from tilelab.frontend import as_dims, plain_dtype, session
from tilelab.ir import Alloc, Buffer, Expr, ScalarBuffer, Scope, Store, as_expr, cast, const_int
from tilelab.ir.printer import to_text


def alloc_shared(shape: Any, dtype: Any, scope: str = "shared.dyn") -> Buffer:
    """A buffer that all threads of the block share: `T.alloc_shared((128, 64), "float16")`."""
    return _alloc(shape, dtype, scope, "shared")


def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> Buffer:
    """A tile in registers, spread over the threads of the block by layout inference."""
    return _alloc(shape, dtype, scope, "fragment")


def alloc_local(shape: Any, dtype: Any, scope: str = "local") -> Buffer:
    """A private array of each thread."""
    return _alloc(shape, dtype, scope, "local")


def alloc_var(dtype: Any, *args: Any, scope: str = "local.var", init: Any = None) -> ScalarBuffer:
    """One mutable number of each thread: `v = T.alloc_var("int32", init=0)`; `v = e` and `v += e`
    store to it. Without `init` its value is undefined until it is stored."""
    for extra in args:
        if isinstance(extra, str):
            scope = extra
        else:
            init = extra
    _check_scope(scope, ("local.var", "local"))
    trace = session()
    kind, loc = plain_dtype(dtype), trace.loc()
    variable = ScalarBuffer(trace.hinted("var"), (1,), kind, Scope.LOCAL, loc=loc)
    trace.emit(Alloc(variable, loc=loc), anywhere=True)
    if init is not None:
        value = cast(as_expr(init, kind), kind)
        trace.emit(Store(variable, (as_expr(0),), value, loc=loc), anywhere=True)
    return variable


_FAR = 1 << 63  # a negative extent has words of its own here
SCOPES = {
    "shared.dyn": Scope.SHARED,
    "shared": Scope.SHARED,
    "local.fragment": Scope.FRAGMENT,
    "local": Scope.LOCAL,
}
"""The peer's names of memory spaces; any T.alloc_* function takes any of them as `scope`."""


def _alloc(shape: Any, dtype: Any, scope: str, name: str) -> Buffer:
    if isinstance(dtype, int | Expr) or (isinstance(dtype, tuple | list) and dtype):
        raise TileTypeError(
            f"{shown(shape)}, {shown(dtype)} are a shape and an element type: "  # pyright: ignore[reportUnknownArgumentType]
            f"{shown(dtype)} is no type", code="TL1101",  # pyright: ignore[reportUnknownArgumentType]
            hint=f'the shape is one argument, in brackets: T.alloc_{name}((128, 64), "float16")',
        )  # fmt: skip
    _check_scope(scope, tuple(SCOPES))
    where = SCOPES[scope]
    trace = session()
    dims = as_dims(shape, "an on-chip buffer", -_FAR)
    extents = tuple(const_int(d) for d in dims)
    if any(e is None or e <= 0 for e in extents):
        raise _bad_shape(dims)
    sizes = tuple(e for e in extents if e is not None)
    loc = trace.loc()
    buffer = Buffer(trace.hinted(name), sizes, plain_dtype(dtype), where, loc=loc)
    trace.emit(Alloc(buffer, loc=loc), anywhere=True)
    return buffer


def _bad_shape(dims: tuple[Expr | int, ...]) -> TileTypeError:
    words = [to_text(d) if isinstance(d, Expr) else str(d) for d in dims]
    text = f"({', '.join(words)}{',' if len(words) == 1 else ''})"
    if any(const_int(d) is None for d in dims):
        problem, hint = "is not fixed at compile time", "sizes known only at run time go to tensors"
    else:
        problem, hint = "has an extent that is not positive", "leave out a buffer without elements"
    return TileTypeError(
        f"an on-chip buffer has the shape {text}, which {problem}",
        code="TL1427", hint=f"use positive Python ints; {hint}",
    )  # fmt: skip


def _check_scope(scope: str, allowed: tuple[str, ...]) -> None:
    if scope not in allowed:
        raise TileValueError(
            f"scope={shown(scope)} is not known here", code="TL1428",
            hint="use " + " or ".join(repr(a) for a in allowed),
        )  # fmt: skip
