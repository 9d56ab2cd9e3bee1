"""The tile ops; importing this package registers every op and its lowerings."""

from tilelab.tile.ops.copy import Copy, copy
from tilelab.tile.ops.fill import Fill, clear, fill
from tilelab.tile.ops.gemm import Gemm, GemmWarpPolicy, gemm

__all__ = ["Copy", "Fill", "Gemm", "GemmWarpPolicy", "clear", "copy", "fill", "gemm"]
