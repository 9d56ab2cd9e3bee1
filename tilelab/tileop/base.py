"""`from tilelang.tileop.base import GemmWarpPolicy`."""

from tilelab.tile.ops.gemm_plan import GemmWarpPolicy

__all__ = ["GemmWarpPolicy"]
