"""From a student's entry function to an artefact. Runs inside the worker, before and after the
student's own code. Hides which of TileLang's styles the file is written in.
"""

from __future__ import annotations

from typing import Any

import tilelab
import tilelab.language as T
from tilelab import artifact, shim

shim.install()
_LOADED = (T, tilelab.JITKernel, tilelab.compile, tilelab.jit)  # loaded now, not by the student


def artifact_of(entry: Any, sizes: dict[str, Any], target: str) -> dict[str, Any]:
    """The artefact of what `entry` gives for `sizes`: a T.prim_func, a kernel, or the kernel of a
    @tilelang.jit function of either style. Raises TileErrors; TypeError for anything else."""
    made = entry.compile(**sizes) if isinstance(entry, tilelab.JITImpl) else entry(**sizes)
    kernel = made if isinstance(made, tilelab.JITKernel) else tilelab.compile(made, target=target)
    return artifact.save(kernel, target)
