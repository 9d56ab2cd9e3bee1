"""tilelab: a tile compiler made to be looked into.

    import tilelab
    import tilelab.language as T

The language is TileLang's; a kernel runs on an NVIDIA GPU or on the simulator, and every step of
its compilation can be seen. Names are loaded when they are first used, so that importing the
package costs next to nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tilelab import tracebacks

if TYPE_CHECKING:
    from tilelab import (
        artifact,
        autotuner,
        carver,
        contrib,
        engine,
        env,
        errors,
        language,
        layout,
        math,
        plot,
        profiler,
        testing,
        tileop,
        tools,
        transform,
        tvm,
        utils,
        views,
        widgets,
    )
    from tilelab.autotuner import autotune
    from tilelab.engine import register_cuda_postproc
    from tilelab.engine.lower import lower
    from tilelab.errors import TileError
    from tilelab.jit import JITImpl, compile, jit, par_compile
    from tilelab.kernel import JITKernel
    from tilelab.language.dtypes import dtype as DataType  # TileLang's name
    from tilelab.layout import FragmentMap as Fragment  # as T.Fragment
    from tilelab.layout import Layout
    from tilelab.logs import set_log_level
    from tilelab.math import cdiv, next_power_of_2
    from tilelab.pass_config import PassConfigKey
    from tilelab.profiler import Profiler, TensorSupplyType
    from tilelab.runtime.cache import disable_cache, enable_cache, is_cache_enabled
    from tilelab.suggest import suggest_config
    from tilelab.target import Target, parse_target
    from tilelab.thread.intrinsics.extern import register_extern

__version__ = "0.1.0"
__all__ = [
    "DataType", "Fragment", "JITImpl", "JITKernel", "Layout", "PassConfigKey", "Profiler", "Target",
    "TensorSupplyType",
    "TileError", "artifact", "autotune", "autotuner", "carver", "cdiv", "compile", "contrib",
    "disable_cache", "enable_cache", "engine", "env", "errors", "is_cache_enabled", "jit",
    "language", "layout", "load_ipython_extension", "lower", "math", "next_power_of_2",
    "par_compile", "parse_target", "plot", "profiler", "register_cuda_postproc", "register_extern",
    "set_log_level", "suggest_config", "testing", "tileop", "tools", "transform", "tvm",
    "unload_ipython_extension", "utils", "views", "widgets",
]  # fmt: skip

_MODULES = frozenset({
    "artifact", "autotuner", "carver", "contrib", "engine", "env", "errors", "language", "layout",
    "math", "plot", "profiler", "testing", "tileop", "tools", "transform", "tvm", "utils", "views",
    "widgets",
})  # fmt: skip
_HOMES = {
    "JITImpl": "jit", "compile": "jit", "par_compile": "jit", "JITKernel": "kernel",
    "PassConfigKey": "pass_config", "Target": "target", "parse_target": "target",
    "register_extern": "thread.intrinsics.extern",
    "TileError": "errors", "disable_cache": "runtime.cache", "enable_cache": "runtime.cache",
    "is_cache_enabled": "runtime.cache", "autotune": "autotuner", "lower": "engine.lower",
    "Layout": "layout", "Fragment": "layout:FragmentMap",
    "register_cuda_postproc": "engine", "set_log_level": "logs", "Profiler": "profiler",
    "TensorSupplyType": "profiler", "DataType": "language.dtypes:dtype",
    "suggest_config": "suggest", "cdiv": "math", "next_power_of_2": "math",
}  # fmt: skip


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext tilelab`: the magics, the pictures, and `import tilelang`."""
    import_module("tilelab.notebook").load_ipython_extension(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext tilelab`: everything back but modules that were imported."""
    import_module("tilelab.notebook").unload_ipython_extension(ipython)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        # With name and obj, Python adds what was probably meant.
        module = sys.modules[__name__]
        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(text, name=name, obj=module)
    module, _, other = home.partition(":")
    value = getattr(import_module(f"{__name__}.{module}"), other or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """`tilelab.jit` is the decorator, also after the module tilelab.jit was imported (which sets
    an attribute of that name on the package)."""

    @property
    def jit(self) -> Any:
        return import_module(f"{__name__}.jit").jit

    @jit.setter
    def jit(self, value: ModuleType) -> None:
        pass


tracebacks.install()
sys.modules[__name__].__class__ = _Package
