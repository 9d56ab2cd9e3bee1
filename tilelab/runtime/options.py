"""pass_configs and compile_flags as options of NVRTC.

Hides that users write nvcc's spellings ("-O3", "-Xptxas -v"), of which NVRTC knows only some.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tilelab.errors import TileTypeError

# nvcc options about the host compiler, its warnings, or the kind of output, and two that NVRTC
# always has on: nothing for it to do.
_WITHOUT_EFFECT = frozenset(
    {"-O0", "-O1", "-O2", "-O3", "-w", "-c", "--cubin", "-cubin", "-m64",
     "--expt-relaxed-constexpr", "-expt-relaxed-constexpr", "--expt-extended-lambda",
     "-expt-extended-lambda", "--extended-lambda", "-extended-lambda"}
)  # fmt: skip
_HOST_WARNINGS = "-W"


def config_map(pass_configs: Mapping[Any, Any] | None) -> dict[str, Any]:
    """pass_configs with plain string keys (they may be members of a str enum)."""
    return {str(getattr(k, "value", k)): v for k, v in (pass_configs or {}).items()}


def compiler_options(
    compile_flags: Sequence[str] | str | None, pass_configs: Mapping[str, Any]
) -> tuple[str, ...]:
    """Options for NVRTC, beside those that every kernel gets."""
    flags: list[str] = []
    if pass_configs.get("tl.enable_fast_math"):
        flags.append("--use_fast_math")
    level = pass_configs.get("tl.ptxas_register_usage_level")
    if level is not None:
        flags.append(f"--ptxas-options=--register-usage-level={int(level)}")
    flags += _translated(_words(pass_configs.get("tl.device_compile_flags")))
    flags += _translated(_words(compile_flags))
    return tuple(dict.fromkeys(flags))


def _words(flags: Sequence[str] | str | None) -> list[str]:
    if flags is None:
        return []
    items = [flags] if isinstance(flags, str) else list(flags)
    if not all(isinstance(item, str) for item in items):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TileTypeError(
            f"compile_flags are strings, got {flags!r}",
            code="TL1643", hint='write compile_flags=["--use_fast_math"]',
        )  # fmt: skip
    return [word for item in items for word in shlex.split(item)]


def _translated(words: Sequence[str]) -> list[str]:
    """nvcc's spellings as NVRTC's."""
    found: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word in _WITHOUT_EFFECT or word.startswith(_HOST_WARNINGS):
            continue
        name, equals, value = word.partition("=")
        if name in ("-Xptxas", "--ptxas-options"):
            value = value if equals else next(waiting, "")
            found += [f"--ptxas-options={part}" for part in value.split(",")]
        elif word in ("-I", "-D", "-U", "-std"):
            value = next(waiting, "")
            found.append(f"{word}{'=' if word == '-std' else ''}{value}")
        else:
            found.append(word)
    return found
