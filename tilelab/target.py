"""Targets: an architecture as a set of features and a table of limits.

Rank 0. The only module in which architecture numbers stand; passes and ops ask for features.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tilelab.calls import answer_all
from tilelab.errors import TileValueError

WARP = 32
"""Threads of a warp, on every chip (CUDA C programming guide, SIMT architecture)."""
WARPGROUP = 128
"""Threads of a warpgroup: four warps that issue a wgmma together (PTX ISA, wgmma)."""
NAMED_BARRIERS = 16
"""Of a block (PTX ISA, bar); number 0 is that of all its threads."""


class Feature(enum.Enum):
    """What a chip can do, one name for each instruction family."""

    CP_ASYNC = "cp.async"
    LDMATRIX = "ldmatrix"
    STMATRIX = "stmatrix"
    MMA_SYNC = "mma.sync"
    BF16 = "bf16"
    TF32_MMA = "mma.sync of tf32"
    INT8_MMA = "mma.sync of 8-bit integers"
    FP8_MMA = "mma.sync of 8-bit floats"
    F64_MMA = "mma.sync of float64"
    FP8_CVT = "fp8 conversions"
    MBARRIER = "mbarrier"
    TMA = "TMA"
    WGMMA = "wgmma"
    SETMAXNREG = "setmaxnreg"
    GRID_CONTROL = "griddepcontrol"
    VECTOR_RED = "red of vectors"


@dataclass(frozen=True)
class Limits:
    """Sizes of one chip, in bytes and counts (CUDA C programming guide, compute capabilities)."""

    shared_per_block: int
    shared_per_sm: int
    shared_reserved_per_block: int
    registers_per_sm: int
    registers_per_thread: int
    threads_per_sm: int
    threads_per_block: int
    blocks_per_sm: int
    sms: int
    l2_bytes: int
    dram_bytes_per_second: float
    tensor_flops_16bit: float
    clock_hz: float  # at which the data sheet states its peaks


REGISTERS_BESIDE_TILES = 40
"""What a thread needs beside its tiles: addresses, counters, temporaries (seen in builds)."""


@dataclass(frozen=True)
class Target:
    """What to compile for: `features` are used, `arch` names the machine code that is built."""

    name: str
    arch: str
    features: frozenset[Feature]
    limits: Limits

    def has(self, *features: Feature) -> bool:
        """Whether every one of `features` may be used."""
        return self.features.issuperset(features)

    def built_for(self, arch: str) -> Target:
        """The same features and limits, as machine code for `arch` (an older target on a newer
        device: its cubin would not load there)."""
        return replace(self, arch=arch)

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of the machine code, as CUDA counts it."""
        digits = self.arch.removeprefix("sm_").rstrip("abf")
        return int(digits[:-1]), int(digits[-1])

    def __str__(self) -> str:
        return self.name

    def __enter__(self) -> Target:
        """`with target:`: what compilations inside mean where they leave their target open."""
        inside = open_targets_mean(self)
        inside.__enter__()
        _entered.append(inside)
        return self

    def __exit__(self, *raised: Any) -> None:
        _entered.pop().__exit__(None, None, None)


_AMPERE = frozenset({
    Feature.CP_ASYNC, Feature.LDMATRIX, Feature.MMA_SYNC, Feature.BF16, Feature.TF32_MMA,
    Feature.INT8_MMA, Feature.F64_MMA, Feature.MBARRIER,
})  # fmt: skip
_HOPPER = _AMPERE | {
    Feature.TMA, Feature.WGMMA, Feature.SETMAXNREG, Feature.STMATRIX, Feature.FP8_CVT,
    Feature.FP8_MMA, Feature.GRID_CONTROL, Feature.VECTOR_RED,
}  # fmt: skip

SM80 = Target(
    "sm_80", "sm_80", _AMPERE,
    Limits(166_912, 167_936, 1024, 65_536, 255, 2048, 1024, 32, 108, 40 << 20, 1.555e12, 312e12,
           1.41e9),
)  # fmt: skip
SM90A = Target(
    "sm_90a", "sm_90a", _HOPPER,
    Limits(232_448, 233_472, 1024, 65_536, 255, 2048, 1024, 32, 132, 60 << 20, 4.8e12, 989e12,
           1.83e9),
)  # fmt: skip

TARGETS: dict[str, Target] = {"sm_80": SM80, "sm_90a": SM90A}
_SPELLINGS = {"sm_90": "sm_90a", "hopper": "sm_90a", "ampere": "sm_80", "cuda": "", "auto": ""}
DEFAULT_TARGET = SM90A


def for_capability(major: int, minor: int) -> Target:
    """The richest target that a device of compute capability `major.minor` can run."""
    if (major, minor) == (9, 0):
        return SM90A
    if major >= 8:
        return SM80.built_for(f"sm_{major}{minor}")
    raise TileValueError(
        f"no target for compute capability {major}.{minor}",
        code="TL1201",
        hint="tilelab compiles for " + ", ".join(TARGETS) + " and newer devices",
    )


_chosen: Target | None = None
_entered: list[AbstractContextManager[None]] = []  # the `with target:` blocks that are open


@contextmanager
def open_targets_mean(target: Target | None) -> Generator[None]:
    """Inside, `parse_target` answers `target` where a program leaves the choice open ("auto")."""
    global _chosen
    before, _chosen = _chosen, target
    try:
        yield
    finally:
        _chosen = before


def parse_target(value: Any) -> Target | None:
    """The target that `value` spells: a Target, "sm_90a", {"kind": "cuda", "arch": "sm_90a"},
    "cuda -arch=sm_80"; for "auto", "cuda" and None what `open_targets_mean` said, or the variable
    TILELANG_DEFAULT_TARGET, else None (the device decides)."""
    if value is None or isinstance(value, Target):
        return value or _open()
    text: Any = value
    if isinstance(value, Mapping):
        spelled: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        if spelled.get("kind", "cuda") != "cuda":
            raise _no_such_target(value)
        text = spelled.get("arch", "cuda")
    if not isinstance(text, str):
        raise _no_such_target(value)
    text = text.strip()
    if "-arch=" in text:
        text = text.split("-arch=", 1)[1].split()[0]
    text = _SPELLINGS.get(text, text)
    if text == "":
        return _open()
    if text not in TARGETS:
        raise _no_such_target(value)
    return TARGETS[text]


def _open() -> Target | None:
    """What a target left open means."""
    wish = os.environ.get("TILELANG_DEFAULT_TARGET", "").strip()
    if _chosen is not None or _SPELLINGS.get(wish, wish) == "":
        return _chosen
    return parse_target(wish)


def _no_such_target(value: Any) -> TileValueError:
    return TileValueError(
        f"target {value!r} is not known",
        code="TL1201",
        hint='use "auto", or one of ' + ", ".join(f'"{name}"' for name in TARGETS),
    )


answer_all(globals(), ("Target", "parse_target"), "tilelab")
