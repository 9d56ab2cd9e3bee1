"""From a student's entry function to an artefact. Runs inside the worker, before and after the
student's own code. Hides which of TileLang's styles the file is written in.
"""

from __future__ import annotations

import inspect
from typing import Any

import tilelab
import tilelab.language as T
from tilelab import artifact, shim

shim.install()
_LOADED = (T, tilelab.JITKernel, tilelab.compile, tilelab.jit)  # loaded now, not by the student


def artifact_of(entry: Any, sizes: dict[str, Any], target: str) -> dict[str, Any]:
    """The artefact of what `entry` gives for `sizes`: a T.prim_func, a kernel, or the kernel of a
    @tilelang.jit function of either style. Raises TileErrors; TypeError for anything else."""
    try:
        made = entry.compile(**sizes) if isinstance(entry, tilelab.JITImpl) else entry(**sizes)
    except Exception as error:
        wrong = _wrong_call(entry, sizes)
        if wrong is None:
            raise
        raise wrong from error
    kernel = made if isinstance(made, tilelab.JITKernel) else tilelab.compile(made, target=target)
    return artifact.save(kernel, target)


class WrongParameters(TypeError):
    """The entry function does not take the sizes that the task names. `hint` says what to do."""

    hint = (
        "keep the starter's `def` line: the function gets sizes and makes the kernel; tensors are "
        "the parameters of the kernel inside"
    )


def _wrong_call(entry: Any, sizes: dict[str, Any]) -> WrongParameters | None:
    """That `entry` cannot be called with these sizes; None where it can. An eager function has
    tensors in their place."""
    if getattr(entry, "mode", "") == "eager":
        return None
    try:
        inspect.signature(getattr(entry, "func", entry)).bind(**sizes)
    except TypeError:
        taken = inspect.signature(getattr(entry, "func", entry))
        name = getattr(entry, "__name__", "the entry")
        return WrongParameters(
            f"the task calls {name}({', '.join(sizes)}), the file defines {name}{taken}"
        )
    except ValueError:
        return None
    return None
