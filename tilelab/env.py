"""Settings from the environment, by TileLang's names: `tilelang.env.TILELANG_CACHE_DIR`.

Read when asked for, so that changes of the environment count.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilelab.absent import missing_name
from tilelab.runtime.cache import cache_folder, disable_cache, enable_cache, is_cache_enabled

__all__ = ["disable_cache", "enable_cache", "env", "is_cache_enabled"]


def _text(name: str, default: str) -> Callable[[], str]:
    return lambda: os.environ.get(name, default)


_READERS: dict[str, Callable[[], Any]] = {
    "TILELANG_CACHE_DIR": lambda: str(cache_folder()),
    "TILELANG_DISABLE_CACHE": lambda: "0" if is_cache_enabled() else "1",
    "TILELANG_HOME": lambda: str(Path(__file__).parent),
    "TILELANG_DEFAULT_TARGET": _text("TILELANG_DEFAULT_TARGET", "auto"),
    "TILELANG_AUTO_TUNING_CPU_UTILITIES": _text("TILELANG_AUTO_TUNING_CPU_UTILITIES", "0.9"),
    "TILELANG_AUTO_TUNING_CPU_COUNTS": _text("TILELANG_AUTO_TUNING_CPU_COUNTS", "-1"),
    "TILELANG_AUTO_TUNING_MAX_CPU_COUNT": _text("TILELANG_AUTO_TUNING_MAX_CPU_COUNT", "-1"),
}
env = sys.modules[__name__]
"""The module itself: `from tilelang.env import env`."""


def __getattr__(name: str) -> Any:
    reader = _READERS.get(name)
    if reader is None:
        why = "tilelab has no setting of that name"
        raise missing_name("tilelang.env", name, {**_READERS, **globals()}, why)
    return reader()
