"""Helpers for tests of kernels, by TileLang's names (`tilelang.testing`).

The `requires_*` decorators are marks that pytest obeys: a test that the program calls itself runs
all the same, as with TileLang. pytest is needed by `main` only.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import operator
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from tilelab.calls import answer_all, caller_frame
from tilelab.errors import TileRuntimeError, TileValueError
from tilelab.runtime.timing import has_cuda
from tilelab.utils.tensor import torch_assert_close

__all__ = [
    "main", "process_func", "regression", "requires_cdna", "requires_cuda",
    "requires_cuda_compute_version", "requires_cuda_compute_version_eq",
    "requires_cuda_compute_version_ge", "requires_cuda_compute_version_gt",
    "requires_cuda_compute_version_le", "requires_cuda_compute_version_lt", "requires_gfx950",
    "requires_llvm", "requires_metal", "requires_package", "requires_rocm", "set_random_seed",
    "torch_assert_close",
]  # fmt: skip

Test = TypeVar("Test", bound=Callable[..., Any])


def main() -> None:
    """Run pytest on the file that calls this, with the command line's arguments, and leave with
    its status. TileRuntimeError (TL1601) where pytest is not installed."""
    file = caller_frame().f_globals["__file__"]
    if importlib.util.find_spec("pytest") is None:
        raise TileRuntimeError(
            "tilelang.testing.main() needs pytest, which is not installed", code="TL1601",
            hint=f"{Path(sys.executable).name} -m pip install pytest",
        )  # fmt: skip
    pytest = importlib.import_module("pytest")
    sys.exit(pytest.main([file, *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seed Python's, numpy's and torch's random numbers."""
    import torch

    random.seed(seed)
    np.random.seed(seed)
    cast("Any", torch).manual_seed(seed)


# ---- skipping --------------------------------------------------------------------------------


def _skip_unless(holds: Callable[[], bool], reason: str) -> Callable[[Test], Test]:
    """A decorator after which pytest skips a test unless `holds()`, asked when it is decorated."""

    def decorate(test: Test) -> Test:
        pytest: Any = sys.modules.get("pytest")
        if pytest is None:
            return test
        return pytest.mark.skipif(not holds(), reason=reason)(test)

    return decorate


def requires_cuda(test: Any = None) -> Any:
    """Skip a test where torch finds no GPU (`tilelab run --device sim` shows it one)."""
    decorate = _skip_unless(has_cuda, "needs a CUDA device")
    return decorate if test is None else decorate(test)


requires_cuda_or_cdna = requires_cuda


_MODES: dict[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge, "gt": operator.gt, "eq": operator.eq, "le": operator.le, "lt": operator.lt,
}  # fmt: skip


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0, mode: str = "ge"
) -> Callable[[Test], Test]:
    """Skip a test unless the GPU's compute capability compares so: "ge", "gt", "eq", "le", "lt".
    TileValueError (TL1643) for another mode."""
    compare = _MODES.get(mode)
    if compare is None:
        raise TileValueError(
            f"there is no mode {mode!r}", code="TL1643", hint="use " + ", ".join(_MODES)
        )
    wanted = (major_version, minor_version)

    def holds() -> bool:
        import torch

        return has_cuda() and compare(tuple(torch.cuda.get_device_capability()), wanted)

    text = "{}.{}".format(*wanted)
    return _skip_unless(holds, f"needs a GPU of compute capability {mode} {text}")


requires_cuda_compute_version_ge = functools.partial(requires_cuda_compute_version, mode="ge")
requires_cuda_compute_version_gt = functools.partial(requires_cuda_compute_version, mode="gt")
requires_cuda_compute_version_eq = functools.partial(requires_cuda_compute_version, mode="eq")
requires_cuda_compute_version_le = functools.partial(requires_cuda_compute_version, mode="le")
requires_cuda_compute_version_lt = functools.partial(requires_cuda_compute_version, mode="lt")


def requires_package(name: str) -> Callable[[Test], Test]:
    """Skip a test where a Python package is not installed."""
    return _skip_unless(
        lambda: importlib.util.find_spec(name) is not None, f"needs the package {name}"
    )


def _never(what: str) -> Callable[[Test], Test]:
    return _skip_unless(lambda: False, f"needs {what}, which tilelab has no back end for")


requires_rocm = _never("ROCm")
requires_cdna = _never("a CDNA chip")
requires_gfx950 = _never("gfx950")
requires_metal = _never("Metal")
requires_llvm = _never("LLVM")

# ---- times of programs -----------------------------------------------------------------------

_TIMES: list[tuple[str, Any, float]] = []


def process_func(func: Callable[..., Any], name: str | None = None, /, **kwargs: Any) -> Any:
    """Call `func(**kwargs)`, which returns milliseconds, and note the result for `regression`."""
    started = time.perf_counter()
    latency = func(**kwargs)
    label = name or f"{func.__module__}.{func.__qualname__}"
    _TIMES.append((label, latency, time.perf_counter() - started))
    return latency


def regression(prefixes: tuple[str, ...] = ("regression_",)) -> list[tuple[str, Any]]:
    """Call every function of the calling file whose name begins so, print what `process_func`
    noted, and return (name, milliseconds) of each. An error of one is raised at once."""
    names = caller_frame().f_globals
    _TIMES.clear()
    for name, value in list(names.items()):
        if name.startswith(prefixes) and callable(value):
            value()
    for label, latency, seconds in _TIMES:
        sys.stdout.write(f"{label}: {latency!r} ms ({seconds:.1f} s in all)\n")
    return [(label, latency) for label, latency, _ in _TIMES]


answer_all(globals(), __all__, "testing")
