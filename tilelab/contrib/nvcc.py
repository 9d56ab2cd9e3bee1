"""Questions about the target, and CUDA text to machine code; NVRTC does nvcc's work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelab.absent import not_here
from tilelab.errors import TileValueError
from tilelab.runtime import driver, nvrtc, sass
from tilelab.runtime.options import compiler_options
from tilelab.target import DEFAULT_TARGET, Feature, Target, for_capability, parse_target


def _target(target: Any = None) -> Target:
    """The target meant: the one named, this machine's GPU, or the default."""
    found = parse_target(target)
    if found is None and driver.find() is not None:
        found = driver.device_info().target
    return found or DEFAULT_TARGET


def get_target_compute_version(target: Any = None) -> str:
    """Compute capability of the target: "9.0"."""
    return "{}.{}".format(*_target(target).capability)


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """(9, 0) for "9.0". TileValueError (TL1643) for other text."""
    first, dot, second = compute_version.partition(".")
    if not (first.isdigit() and dot and second.isdigit()):
        raise TileValueError(
            f"{compute_version!r} is no compute capability", code="TL1643", hint='write "9.0"'
        )
    return int(first), int(second)


def get_target_arch(compute_version: str) -> str:
    """The digits alone: "90" for "9.0"."""
    return "{}{}".format(*parse_compute_version(compute_version))


def _chip(compute_version: str) -> Target:
    return for_capability(*parse_compute_version(compute_version))


def have_tma(target: Any) -> bool:
    """Whether the target has TMA."""
    return _target(target).has(Feature.TMA)


def have_bf16(compute_version: str) -> bool:
    """Whether a chip of this compute capability computes with bfloat16."""
    return _chip(compute_version).has(Feature.BF16)


def have_fp8(compute_version: str) -> bool:
    """Whether a chip of this compute capability converts to 8-bit floats."""
    return _chip(compute_version).has(Feature.FP8_CVT)


def compile_cuda(
    code: str, target_format: str = "cubin", arch: str | None = None,
    options: Sequence[str] | str | None = None, path_target: str | None = None,
) -> bytes:  # fmt: skip
    """Machine code of CUDA text. TileNotSupported (TL1654) for other formats than "cubin"."""
    if target_format != "cubin":
        raise not_here(f"compile_cuda(target_format={target_format!r})", "only cubins are made",
                       'use target_format="cubin", and get_sass_from_source')  # fmt: skip
    arch = arch or _target().arch
    made = nvrtc.compile_cubin(code, arch, options=compiler_options(options, {}))
    if path_target is not None:
        with open(path_target, "wb") as file:
            file.write(made.image)
    return made.image


def get_sass_from_source(
    code: str, compile_flags: Sequence[str] | str | None = None, verbose: bool = False
) -> str:
    """CUDA text as the target's instructions."""
    del verbose  # errors say everything
    return sass.disassemble(compile_cuda(code, options=compile_flags))


def get_ptx_from_source(code: str, compile_flags: Any = None, verbose: bool = False) -> str:
    """Raises TileNotSupported (TL1654)."""
    raise not_here("get_ptx_from_source", "only cubins are made", "use get_sass_from_source")
