"""Hooks into compilation by TileLang's names (`tilelang.engine`); see also `engine.lower`."""

from tilelab.engine.callback import (
    register_c_postproc,
    register_cuda_postproc,
    register_cuda_postproc_callback,
    register_hip_postproc,
)

__all__ = [
    "register_c_postproc",
    "register_cuda_postproc",
    "register_cuda_postproc_callback",
    "register_hip_postproc",
]
