"""Rewrite the generated CUDA text before it is compiled: `register_cuda_postproc`.

The simulator reads thread IR and not the text, so a rewritten text acts on the GPU only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilelab.absent import absent
from tilelab.calls import answer_all
from tilelab.codegen import CudaSource
from tilelab.errors import TileRuntimeError, TileTypeError, TileWarning
from tilelab.runtime import driver
from tilelab.target import Target

Rewrite = Callable[[str, Any], str]
"""(CUDA text, target) -> CUDA text."""

_HOOK: list[Rewrite] = []


def register_cuda_postproc(func: Rewrite | None, override: bool = True) -> None:
    """Let `func(code, target)` rewrite the CUDA text of kernels compiled from now on; None ends
    it. Without `override`, TileRuntimeError (TL1655) when a function is registered already."""
    if func is not None and not callable(func):  # pyright: ignore[reportUnnecessaryComparison]
        raise _no_text(func, "is no function")
    if _HOOK and not override:
        raise TileRuntimeError(
            "a function that rewrites CUDA text is registered already", code="TL1655",
            hint="pass override=True, or register_cuda_postproc(None) first",
        )  # fmt: skip
    _HOOK[:] = [] if func is None else [func]
    if func is not None and driver.find() is None:
        warnings.warn(
            "the simulator reads thread IR, so a rewritten CUDA text changes only what is shown",
            TileWarning, stacklevel=2,
        )  # fmt: skip


def register_cuda_postproc_callback(func: Any = None, override: bool = True) -> Any:
    """`register_cuda_postproc` as a decorator, bare or with `override`."""

    def register(fn: Rewrite) -> Rewrite:
        register_cuda_postproc(fn, override)
        return fn

    return register if func is None else register(func)


def rewritten(source: CudaSource, target: Target) -> CudaSource:
    """The source as the registered function leaves it. The map to Python lines is kept while the
    number of lines stays, and dropped otherwise. TileTypeError (TL1655) when it gives no text."""
    if not _HOOK:
        return source
    text: Any = _HOOK[0](source.text, target)
    if not isinstance(text, str):
        raise _no_text(text, "is no text")
    same = text.count("\n") == source.text.count("\n")
    return replace(source, text=text, links=source.links if same else ())


def _no_text(value: Any, problem: str) -> TileTypeError:
    return TileTypeError(
        f"register_cuda_postproc: {value!r} {problem}", code="TL1655",
        hint="pass a function (code, target) -> code",
    )  # fmt: skip


_WHY, _HINT = "kernels are compiled as CUDA only", "use register_cuda_postproc"
register_hip_postproc = absent("register_hip_postproc", _WHY, _HINT)
register_hip_postproc_callback = absent("register_hip_postproc_callback", _WHY, _HINT)
register_c_postproc = absent("register_c_postproc", _WHY, _HINT)
register_c_postproc_callback = absent("register_c_postproc_callback", _WHY, _HINT)


answer_all(globals(), ("register_cuda_postproc", "register_cuda_postproc_callback"), "tilelab")
