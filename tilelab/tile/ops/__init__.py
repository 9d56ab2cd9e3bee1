"""The tile ops; importing this package registers every op and its lowerings."""

from collections.abc import Callable
from typing import Any

from tilelab.tile.ops.copy import Copy, copy
from tilelab.tile.ops.fill import Fill, clear, fill
from tilelab.tile.ops.gemm import Gemm, GemmWarpPolicy, gemm
from tilelab.tile.ops.reduce import REDUCTIONS, Reduce

LANGUAGE: dict[str, Callable[..., Any] | type] = {
    "GemmWarpPolicy": GemmWarpPolicy,
    "clear": clear,
    "copy": copy,
    "fill": fill,
    "gemm": gemm,
    **{f.__name__: f for f in REDUCTIONS},
}
"""Names that the language offers: what a user calls, by its name in `T`."""

__all__ = [
    "LANGUAGE",
    "Copy",
    "Fill",
    "Gemm",
    "GemmWarpPolicy",
    "Reduce",
    "clear",
    "copy",
    "fill",
    "gemm",
]
