"""Chips as descriptions of their limits (`tilelang.carver.arch`)."""

from tilelab.absent import absent
from tilelab.carver.arch import driver
from tilelab.carver.arch.cuda import CUDA

_HINT = "use carver.arch.CUDA"
CDNA = absent("carver.arch.CDNA", "kernels are compiled for NVIDIA chips only", _HINT)
RDNA = absent("carver.arch.RDNA", "kernels are compiled for NVIDIA chips only", _HINT)
METAL = absent("carver.arch.METAL", "kernels are compiled for NVIDIA chips only", _HINT)

__all__ = ["CDNA", "CUDA", "METAL", "RDNA", "driver"]
