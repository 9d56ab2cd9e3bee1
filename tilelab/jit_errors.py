"""What a wrong use of @tilelang.jit and compile() is told. Hides how the mistake is recognised."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from tilelab.errors import TileTypeError, shown
from tilelab.kernel import JITKernel


def no_program(name: str, made: Any) -> TileTypeError:
    """A factory that returned something else than a T.prim_func (TL1497)."""
    if made is None:
        return TileTypeError(
            f"{name} returns nothing, and a kernel factory returns its T.prim_func",
            code="TL1497", hint="end it with `return main`, where main is that function's name",
        )  # fmt: skip
    hint = "return the function under @T.prim_func, or write the kernel in the body"
    if isinstance(made, FunctionType) and made.__name__.isidentifier():
        hint = f"put @T.prim_func above {made.__name__}"
    return TileTypeError(
        f"{name} returned {shown(made)} instead of a T.prim_func", code="TL1497", hint=hint
    )


def no_numbers(name: str, given: Mapping[str, Any], error: Exception) -> TileTypeError | None:
    """A factory that failed with a tensor among its arguments (TL1495); None without one."""
    tensors = [n for n, v in given.items() if len(getattr(v, "shape", ())) > 0]
    if not tensors:
        return None
    return TileTypeError(
        f"{name}() makes a kernel out of numbers, and got a tensor for {', '.join(tensors)}",
        code="TL1495", notes=[f"{type(error).__name__}: {(str(error) or '-').splitlines()[0]}"],
        hint=f"call twice: kernel = {name}(...) with the sizes, then kernel(tensors)",
    )  # fmt: skip


def as_config(config: Any) -> Any:
    """A config of par_compile as it is; TileTypeError (TL1002) for what is none."""
    if isinstance(config, dict | tuple | list):
        return config  # pyright: ignore[reportUnknownVariableType]
    raise TileTypeError(
        f"par_compile() has got the config {shown(config)}", code="TL1002",
        hint="a config is a dict of keywords, or a tuple of arguments",
    )  # fmt: skip


def undeclared(name: str, static: Mapping[str, Any]) -> None:
    """Raise TileTypeError (TL1425) for a tensor that an eager function gets and never declares."""
    for parameter, value in static.items():
        if hasattr(value, "dtype") and len(getattr(value, "shape", ())) > 0:
            axes = ", ".join("MNKPQR"[: len(value.shape)])
            raise TileTypeError(
                f"{name}() got a tensor for {parameter}, and its body does not say that it is one",
                code="TL1425",
                hint=f'write in the body: {axes} = T.const("{axes}"), then '
                f"{parameter}: T.Tensor[[{axes}], dtype]",
            )


def no_prim_func(func: Any, *, jitted: bool) -> TileTypeError:
    """compile() of something that is no T.prim_func (TL1493)."""
    name = getattr(func, "__name__", "main")
    hints: dict[type, str] = {
        type(None): "end the function that makes it with `return main`",
        JITKernel: "it is compiled: call it with its tensors",
        FunctionType: f"put @T.prim_func above {name}; if {name} makes the program, call it first",
    }
    kind: type = type(func)  # pyright: ignore[reportUnknownVariableType]
    hint = hints.get(kind, "give it the function under @T.prim_func")
    if jitted:
        hint = f"@tilelang.jit compiles: call {name}(...), or {name}.compile(...)"
    return TileTypeError(
        f"compile() takes a T.prim_func, got {shown(func)}", code="TL1493", hint=hint
    )
