"""Run a script with `import tilelang` answered by tilelab, on the device that was asked for.

Hides the finder, `sys.argv`, and the stand-ins for a GPU.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Generator, Sequence
from typing import Any

from tilelab import shim
from tilelab.commands.simdevice import simulated_device
from tilelab.errors import TileRuntimeError
from tilelab.runtime import driver
from tilelab.target import DEFAULT_TARGET, Target, open_targets_mean

DEVICES = ("auto", "sim", "cuda", "gpu")
NO_GPU = "TL1707"


@contextlib.contextmanager
def device(name: str, target: Target | None) -> Generator[None]:
    """Inside, programs run on `name`: "cuda" (or "gpu"), "sim" (tensors that ask for CUDA stay on
    the CPU), or "auto" (the GPU if there is one, else the simulator for CPU tensors).

    TileRuntimeError (TL1707) for "cuda" where there is none.
    """
    if name in ("cuda", "gpu") and driver.find() is None:
        raise TileRuntimeError(
            "there is no GPU here that tilelab can use", code=NO_GPU,
            hint="see `tilelab doctor`, or use --device sim",
        )  # fmt: skip
    with contextlib.ExitStack() as stack:
        stack.enter_context(open_targets_mean(target))
        if name == "sim":
            stack.enter_context(simulated_device(target or DEFAULT_TARGET))
        yield


def run_script(path: str, args: Sequence[str] = (), *, main: bool = True) -> dict[str, Any]:
    """Run a file as Python would and return its namespace.

    With main=False, `if __name__ == "__main__":` parts are left out.
    """
    shim.install()
    argv, path_list = sys.argv, list(sys.path)
    sys.argv = [path, *args]
    sys.path.insert(0, os.path.dirname(path))
    try:
        return runpy.run_path(path, run_name="__main__" if main else "__tilelab__")
    finally:
        sys.argv, sys.path[:] = argv, path_list
