"""Which GPU kernels run on, and why one that is there cannot be used.

Runs in the runner. Hides what torch and the system say of it: "no GPU" and "a GPU that cannot be
reached" are different answers.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.failure import describe

DEVICES = (("/dev", "nvidia[0-9]*"), ("/dev", "dxg"))
"""Where the system shows a GPU; the second one in Windows' Linux."""


@dataclass(frozen=True)
class Gpu:
    """Name and compute capability; an empty name where none can be used. `trouble` says why one
    that the system shows cannot be used, and is empty where there is none."""

    name: str = ""
    capability: tuple[int, int] = (0, 0)
    trouble: str = ""


def find_gpu() -> Gpu:
    """The first GPU that torch can use."""
    import torch

    cuda: Any = torch.cuda  # half typed
    if cuda.is_available():
        return Gpu(cuda.get_device_name(), tuple(cuda.get_device_capability()))
    shown = [path for folder, name in DEVICES for path in Path(folder).glob(name)]
    return Gpu(trouble=_trouble(torch)) if shown else Gpu()


def _trouble(torch: Any) -> str:
    """Why torch finds no GPU where the system shows one."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and not hidden.strip().strip("-1"):
        return f"CUDA_VISIBLE_DEVICES={hidden!r} hides it"
    if torch.version.cuda is None:
        return "this torch is built without CUDA"
    try:
        torch.cuda.init()
    except Exception as error:  # whatever the driver has to say
        return describe(error)
    return "torch sees none"
