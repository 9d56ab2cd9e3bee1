"""What a program promises and wishes: T.assume, values past tensors, aliases, options, prelude.

Hides where each is kept until a pass or the kernel's maker reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelab.errors import TileNotSupported, TileTypeError
from tilelab.frontend import is_traced, open_kernel, session, truth
from tilelab.ir import Buffer, Expr, Scope, Stmt, as_bool, as_expr, cast
from tilelab.language.instruct import perform
from tilelab.thread.intrinsics.debug import ASSUME


def assume(cond: Any = None) -> Stmt | None:
    """Promise that a condition holds: the chip's compiler may rely on it, the simulator reports
    where it does not (TL2020). Outside T.Kernel it promises something of the sizes, on which
    nothing relies."""
    trace = session()
    if cond is None:
        return None
    if not is_traced(cond):
        if truth(cond):
            return None
        raise TileTypeError(
            "T.assume of a condition that is false", code="TL1780", loc=trace.loc(),
            hint="assume what holds in every call",
        )  # fmt: skip
    return None if trace.kernel is None else perform(ASSUME, as_bool(cond), what="T.assume")


def annotate_safe_value(safe_value_map: Mapping[Buffer, Any]) -> None:
    """`T.annotate_safe_value({A: -1})`: reads past the end of the tensor A in this kernel give
    that number instead of 0. TileTypeError (TL1780) for anything but tensors and numbers."""
    kernel, trace = open_kernel("T.annotate_safe_value"), session()
    pairs: list[tuple[Buffer, Expr]] = list(kernel.attrs.get("safe_values", ()))  # type: ignore[call-overload]
    for buffer, value in safe_value_map.items():
        is_tensor = isinstance(buffer, Buffer) and buffer.scope is Scope.GLOBAL  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_tensor or (is_traced(value) and not isinstance(value, Expr)):
            raise TileTypeError(
                f"T.annotate_safe_value({{{getattr(buffer, 'name', buffer)!s}: {value!r}}})",
                code="TL1780", loc=trace.loc(), hint="give a number for each tensor: {A: -1}",
            )  # fmt: skip
        pairs.append((buffer, cast(as_expr(value, buffer.dtype), buffer.dtype)))
    kernel.attrs["safe_values"] = tuple(pairs)


def annotate_restrict_buffers(*buffers: Buffer) -> None:
    """These tensors may share memory with other arguments: the kernel does not promise the chip's
    compiler otherwise."""
    kernel = open_kernel("T.annotate_restrict_buffers")
    for buffer in buffers:
        if not isinstance(buffer, Buffer) or buffer.scope is not Scope.GLOBAL:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TileTypeError(
                f"T.annotate_restrict_buffers takes tensors, not {buffer!r}", code="TL1780",
                loc=session().loc(), hint="name parameters of the function",
            )  # fmt: skip
    known: Any = kernel.attrs.get("may_alias", ())
    kernel.attrs["may_alias"] = (*known, *buffers)


def annotate_compile_flags(flags: Any) -> None:
    """Options of the chip's compiler for this function, as `compile_flags` of tilelab.compile."""
    words = [flags] if isinstance(flags, str) else list(flags)
    if not all(isinstance(word, str) for word in words):
        raise TileTypeError(
            f"T.annotate_compile_flags takes strings, not {flags!r}", code="TL1780",
            loc=session().loc(), hint='write T.annotate_compile_flags(["--use_fast_math"])',
        )  # fmt: skip
    attrs = session().attrs
    known: Any = attrs.get("compile_flags", ())
    attrs["compile_flags"] = (*known, *words)


def annotate_pass_configs(configs: Mapping[Any, Any]) -> None:
    """pass_configs of this function; those given to tilelab.jit or compile win."""
    if not isinstance(configs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TileTypeError(
            f"T.annotate_pass_configs takes a dict, not {configs!r}", code="TL1780",
            loc=session().loc(), hint='write T.annotate_pass_configs({"tl.name": value})',
        )  # fmt: skip
    attrs = session().attrs
    known: Any = dict(attrs.get("pass_configs", ()))  # type: ignore[call-overload]
    known.update({str(getattr(k, "value", k)): v for k, v in configs.items()})
    attrs["pass_configs"] = tuple(known.items())


def func_attr(attrs: Mapping[str, Any]) -> None:
    """The peer's attributes of a function. Only its name can be given and it changes nothing:
    TileNotSupported (TL1780) for other attributes."""
    unknown = sorted(set(attrs) - {"global_symbol", "tir.noalias", "tirx.noalias"})
    if unknown:
        raise TileNotSupported(
            f"T.func_attr({unknown[0]!r}) has no meaning here", code="TL1780", loc=session().loc(),
            hint="leave it out; T.annotate_pass_configs gives options to the compiler",
        )  # fmt: skip


NAMES: dict[str, Any] = {
    f.__name__: f
    for f in (
        annotate_compile_flags, annotate_pass_configs, annotate_restrict_buffers,
        annotate_safe_value, assume, func_attr,
    )
}  # fmt: skip
"""What this module adds to the language."""
