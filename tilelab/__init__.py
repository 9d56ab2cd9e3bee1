"""tilelab: a tile compiler made to be looked into.

    import tilelab
    import tilelab.language as T

The language is TileLang's; a kernel runs on an NVIDIA GPU or on the simulator, and every step of
its compilation can be seen.
"""

from typing import Any

from tilelab.errors import TileError
from tilelab.target import Target, parse_target

try:  # temporary, until every package is in place
    from tilelab import language
    from tilelab.jit import JITImpl, compile, jit, par_compile
    from tilelab.kernel import JITKernel
    from tilelab.pass_config import PassConfigKey
    from tilelab.runtime.cache import disable_cache, enable_cache, is_cache_enabled
except ImportError:
    pass

__version__ = "0.1.0"
__all__ = [
    "JITImpl", "JITKernel", "PassConfigKey", "Target", "TileError", "cdiv", "compile",
    "disable_cache", "enable_cache", "is_cache_enabled", "jit", "language",
    "load_ipython_extension", "next_power_of_2", "par_compile", "parse_target",
]  # fmt: skip


def cdiv(a: int, b: int) -> int:
    """The smallest integer not below a / b."""
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not below x (1 for x below 1)."""
    return 1 << max(x - 1, 0).bit_length()


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext tilelab`: the magics, the pictures, and `import tilelang`."""
    from tilelab.notebook import load_ipython_extension as load

    load(ipython)
