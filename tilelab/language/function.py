"""Functions and sizes: T.prim_func, T.macro, T.const, T.dynamic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab.calls import caller_frame
from tilelab.errors import TileRuntimeError, TileTypeError
from tilelab.frontend import Macro, PrimFunc, no_match, plain_dtype, session, trace
from tilelab.ir import Var


def prim_func(func: Callable[..., Any] | None = None, *, eager_jit: bool = False) -> Any:
    """Trace a function with annotated parameters into a tile program, now.

    `@T.prim_func def main(A: T.Tensor((M, K), "float16"), ...): with T.Kernel(...) as ...`
    """
    if eager_jit:
        raise TileTypeError(
            "T.prim_func(eager_jit=True) is the peer's internal form", code="TL1488",
            hint="use @tilelang.jit",
        )  # fmt: skip
    if func is None:
        return prim_func
    return PrimFunc(trace(func, dict(caller_frame().f_locals)), func)


def macro(func: Callable[..., Any] | None = None) -> Any:
    """A helper whose statements are traced where it is called; arguments are evaluated once."""
    return macro if func is None else Macro(func, dict(caller_frame().f_locals))


def _names(text: str) -> list[str]:
    names = text.replace(",", " ").split()
    if not names or not all(n.isidentifier() for n in names):
        raise TileTypeError(
            f"{text!r} holds no names of sizes", code="TL1489", hint='write "M", or "M, N"'
        )
    return names


def dynamic(name: str, dtype: Any = "int32") -> Any:
    """A size known at each call: one kernel for all values. "M, N" gives two."""
    kind = plain_dtype(dtype)
    variables = tuple(Var(n, kind, lo=0, role="size") for n in _names(name))
    return variables[0] if len(variables) == 1 else variables


symbolic = dynamic


def const(name: str, dtype: Any = "int32") -> Any:
    """Sizes that are read from the argument tensors and compiled into the kernel (eager style):
    `M, N, K = T.const("M, N, K")`."""
    current = session()
    if current.mode == "lazy":
        raise TileRuntimeError(
            "T.const belongs to eager functions, and this is a T.prim_func", code="TL1490",
            hint="use the factory's arguments, or T.dynamic",
        )  # fmt: skip
    kind = plain_dtype(dtype)
    values: list[Any] = []
    for one in _names(name):
        if one not in current.consts and current.mode == "eager":
            raise no_match(one)  # phase 1 ended before, with every tensor declared
        if one not in current.consts:
            current.consts[one] = Var(one, kind, lo=0, role="size")
        values.append(current.consts[one])
    return values[0] if len(values) == 1 else tuple(values)
