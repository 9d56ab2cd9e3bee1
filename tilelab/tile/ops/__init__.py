"""The tile ops; importing this package registers every op and its lowerings."""

from collections.abc import Callable
from typing import Any

from tilelab.tile.ops.async_ops import async_copy, tma_copy
from tilelab.tile.ops.atomic import FUNCTIONS as _ATOMICS
from tilelab.tile.ops.atomic import AtomicTile
from tilelab.tile.ops.copy import Copy, copy
from tilelab.tile.ops.fill import Fill, clear, fill
from tilelab.tile.ops.gemm import Gemm, GemmWarpPolicy, gemm, wait_wgmma, warpgroup_wait, wgmma_gemm
from tilelab.tile.ops.im2col import im2col
from tilelab.tile.ops.reduce import REDUCTIONS, Reduce
from tilelab.tile.ops.scan import Scan, cummax, cumsum
from tilelab.tile.ops.transpose import transpose

LANGUAGE: dict[str, Callable[..., Any] | type] = {
    "GemmWarpPolicy": GemmWarpPolicy,
    "async_copy": async_copy,
    "c2d_im2col": im2col,
    "clear": clear,
    "copy": copy,
    "cummax": cummax,
    "cumsum": cumsum,
    "fill": fill,
    "gemm": gemm,
    "im2col": im2col,
    "tma_copy": tma_copy,
    "transpose": transpose,
    "wait_wgmma": wait_wgmma,
    "warpgroup_wait": warpgroup_wait,
    "wgmma_gemm": wgmma_gemm,
    "wgmma_mma": wgmma_gemm,
    **{f.__name__: f for f in (*_ATOMICS, *REDUCTIONS)},
}
"""Names that the language offers: what a user calls, by its name in `T`."""

__all__ = [
    "LANGUAGE",
    "AtomicTile",
    "Copy",
    "Fill",
    "Gemm",
    "GemmWarpPolicy",
    "Reduce",
    "Scan",
    "async_copy",
    "clear",
    "copy",
    "cummax",
    "cumsum",
    "fill",
    "gemm",
    "tma_copy",
]
