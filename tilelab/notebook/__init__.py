"""The notebook: `%load_ext tilelab` gives `import tilelang`, the magics and rich display.

`tilelab.load_ipython_extension` leads here, so that `import tilelab` loads none of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab import shim
from tilelab.notebook import display, errors, exercise, magics, registry


def _magics(shell: Any) -> dict[registry.Magic, Callable[..., Any]]:
    return {**magics.magics(shell), **exercise.magics(shell)}


def load_ipython_extension(shell: Any) -> None:
    """Install the magics `%%tilelang`, `%tilelab` and `%%exercise`, short error messages, pictures
    of kernels and fragments, and the finder that answers `import tilelang`."""
    shim.install()
    registry.install(shell, _magics(shell))
    errors.install(shell)
    display.install(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take everything back but modules that were imported."""
    display.remove(shell)
    errors.remove(shell)
    registry.remove(shell, _magics(shell))
    shim.uninstall()


__all__ = ["load_ipython_extension", "unload_ipython_extension"]
