"""What this machine has, what is missing, and what works here because of it.

Never raises: each check holds its own remedy.
"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilelab.errors import TileError
from tilelab.runtime import cache, driver, nvrtc, wheels
from tilelab.runtime.timing import has_cuda

_OLDEST_PYTHON, _OLDEST_DRIVER, _CUDA_MAJOR = (3, 11), 580, 13


@dataclass(frozen=True)
class Check:
    """One thing looked at: whether it is as needed, what was found, what to do if it is not."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


def diagnose() -> list[Check]:
    """All checks, in the order of what builds on what; the last three say what works here."""
    checks = [
        _guarded(name, look)
        for name, look in (
            ("Python", _python), ("numpy", lambda: _package("numpy")),
            ("ml_dtypes", lambda: _package("ml_dtypes")), ("torch", lambda: _package("torch")),
            ("NVRTC", _nvrtc), ("CUDA headers", _headers), ("nvdisasm", _nvdisasm),
            ("widgets", _widgets), ("driver", _driver), ("GPU", _gpu), ("cache folder", _cache),
        )
    ]  # fmt: skip
    return checks + _abilities({check.name: check.ok for check in checks})


def to_text(checks: list[Check]) -> str:
    """The checks as a table, with what to do under each that failed."""
    width = max(len(check.name) for check in checks)
    lines: list[str] = []
    for check in checks:
        lines.append(f"{'ok' if check.ok else '--'}  {check.name:<{width}}  {check.found}")
        if not check.ok and check.remedy:
            lines.append(f"    {'':<{width}}  -> {check.remedy}")
    return "\n".join(lines)


Answer = tuple[bool, str, str]


def _guarded(name: str, look: Callable[[], Answer]) -> Check:
    try:
        return Check(name, *look())
    except TileError as error:
        return Check(name, False, error.message, error.hint)
    except Exception as error:  # a broken installation must not stop the other checks
        return Check(name, False, f"{type(error).__name__}: {error}", "")


def _python() -> Answer:
    fine = sys.version_info[:2] >= _OLDEST_PYTHON
    return fine, f"{platform.python_version()} on {platform.system()}", "use Python 3.11 to 3.14"


def _package(name: str) -> Answer:
    try:
        return True, importlib.metadata.version(name), ""
    except importlib.metadata.PackageNotFoundError:
        return False, "not installed", f"{sys.executable} -m pip install {name}"


def _nvrtc() -> Answer:
    major, minor = nvrtc.version()
    remedy = f"install CUDA {_CUDA_MAJOR}'s: {wheels.pip_command(wheels.NVRTC)}"
    return major >= _CUDA_MAJOR, f"{major}.{minor} ({wheels.nvrtc_library()})", remedy


def _headers() -> Answer:
    folder = wheels.include_folder()
    if folder is None:
        return False, "not found", f"install them: {wheels.pip_command(wheels.HEADERS)}"
    return True, str(folder), ""


def _nvdisasm() -> Answer:
    binary = wheels.nvdisasm_binary()
    if binary is None:
        return False, "not found", f"install it: {wheels.pip_command(wheels.NVDISASM)}"
    return True, str(binary), ""


def _widgets() -> Answer:
    """Pictures that move need anywidget, and its loader where the notebook's server looks."""
    parts = [_package(name) for name in ("anywidget", "ipywidgets")]
    for fine, found, remedy in parts:
        if not fine:
            return False, found, f"{remedy}; without it kernels show pictures and text"
    versions = f"anywidget {parts[0][1]}, ipywidgets {parts[1][1]}"
    if "google.colab" in sys.modules:
        return (
            True,
            f"{versions}; Colab's manager of custom widgets is switched on by the first "
            "widget (google.colab.output.enable_custom_widget_manager()); it needs a network",
            "",
        )
    loader = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "anywidget"
    remedy = f"{sys.executable} -m pip install --force-reinstall anywidget, then restart Jupyter"
    return loader.is_dir(), versions if loader.is_dir() else f"{versions}, no loader", remedy


def _driver() -> Answer:
    remedy = f"install an NVIDIA driver, {_OLDEST_DRIVER} or newer; without one kernels run on "
    remedy += "the simulator"
    library, problem = driver.library_problem()
    if library is None:
        return False, problem, remedy
    major, minor = driver.Driver(library).version
    fine = major >= _CUDA_MAJOR
    return fine, f"supports CUDA {major}.{minor}", f"update the driver to {_OLDEST_DRIVER} or newer"


def _gpu() -> Answer:
    found = driver.find()
    if found is None:
        return False, "none", "call kernels with CPU tensors: they run on the simulator"
    infos = [found.device(i) for i in range(found.device_count)]
    texts = [
        f"{i.name} (compute capability {i.capability[0]}.{i.capability[1]}, {i.sms} SMs, "
        f"{i.memory_bytes >> 30} GiB, compiles for {i.target})"
        for i in infos
    ]
    return True, "; ".join(texts), ""


def _cache() -> Answer:
    folder = cache.cache_folder()
    if not cache.is_cache_enabled():
        return True, f"{folder} (switched off)", ""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return False, f"{folder}: {error}", "set TILELAB_CACHE_DIR to a folder you can write"
    return True, str(folder), ""


def _abilities(ok: dict[str, bool]) -> list[Check]:
    """What works with what was found."""
    base = ok["Python"] and ok["numpy"] and ok["ml_dtypes"]
    compiles = base and ok["NVRTC"] and ok["CUDA headers"]
    launches = compiles and ok["driver"] and ok["GPU"] and ok["torch"] and has_cuda()
    return [
        Check("simulate", base, "kernels on CPU tensors" if base else "no", "install the above"),
        Check(
            "compile", compiles, "to machine code, for every target" if compiles
            else "CUDA text only", "install NVRTC and the headers",
        ),
        Check(
            "launch", launches, "on the GPU" if launches else "no",
            "needs a GPU, its driver, NVRTC and a CUDA build of torch",
        ),
    ]  # fmt: skip
