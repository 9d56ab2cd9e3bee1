"""Find the CUDA pieces that come as Python wheels: libnvrtc, the runtime headers, nvdisasm.

Hides where the wheels (or the ones a CUDA build of torch brings, or a toolkit) put their files.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tilelab.errors import TileRuntimeError

NVRTC, HEADERS, NVDISASM = "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-nvdisasm"
# Folders inside the `nvidia` namespace package: wheels of CUDA 13, then the older layout.
_FOLDERS = {
    NVRTC: ("cu13", "cuda_nvrtc"),
    HEADERS: ("cu13", "cuda_runtime"),
    NVDISASM: ("cu13", "cuda_nvdisasm"),
}


def _namespace_folders() -> Iterator[Path]:
    """Folders of the `nvidia` namespace package, in the order of sys.path."""
    spec = importlib.util.find_spec("nvidia")
    if spec is not None and spec.submodule_search_locations:
        yield from map(Path, spec.submodule_search_locations)


def _toolkit_folders() -> Iterator[Path]:
    """An installed CUDA toolkit, the last resort."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield Path("/usr/local/cuda")


def _roots(wheel: str) -> Iterator[Path]:
    for base in _namespace_folders():
        for folder in _FOLDERS[wheel]:
            yield base / folder
    yield from _toolkit_folders()


def pip_command(*wheels: str) -> str:
    """The command that installs CUDA 13 wheels for the Python that is running."""
    names = " ".join(f'"{wheel}>=13,<14"' for wheel in wheels)
    return f"{Path(sys.executable).name} -m pip install {names}"


def missing(wheel: str, what: str) -> TileRuntimeError:
    """The error that says which wheel brings `what`, and how to install it."""
    return TileRuntimeError(
        f"{what} was not found in any installed {wheel} wheel",
        code="TL1601",
        hint=f"install it: {pip_command(wheel)}",
    )


@lru_cache(maxsize=1)
def nvrtc_library() -> Path | None:
    """Path of libnvrtc, the newest in the first folder that has one; None when there is none."""
    patterns = ("lib/libnvrtc.so.*", "lib64/libnvrtc.so.*", "bin/nvrtc64_*.dll")
    for root in _roots(NVRTC):
        for pattern in patterns:
            found = [p for p in sorted(root.glob(pattern)) if ".alt." not in p.name]
            if found:
                return found[-1]
    return None


@lru_cache(maxsize=1)
def include_folder() -> Path | None:
    """The folder that holds cuda_fp16.h; None when there is none."""
    for root in _roots(HEADERS):
        if (root / "include" / "cuda_fp16.h").is_file():
            return root / "include"
    return None


@lru_cache(maxsize=1)
def nvdisasm_binary() -> Path | None:
    """The nvdisasm program; None when there is none."""
    for root in _roots(NVDISASM):
        for name in ("nvdisasm", "nvdisasm.exe"):
            if (root / "bin" / name).is_file():
                return root / "bin" / name
    return None
