"""Variants of one kernel: which are needed, lowered once, compiled once, checked for a device.

Hides the cache on disk and the choice of architecture.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Protocol

from tilelab.codegen.source import CudaSource
from tilelab.errors import Loc, TileRuntimeError, warn
from tilelab.passes.base import CompileTrace
from tilelab.passes.plan_shared_memory import check_fit
from tilelab.passes.smaller_tiles import smaller_tiles
from tilelab.runtime import cache, driver, nvrtc
from tilelab.runtime.module import Variant
from tilelab.target import DEFAULT_TARGET, Target
from tilelab.thread.nodes import Program


class LoweredProgram(Protocol):
    """What the compiler hands over (compile.Lowered)."""

    @property
    def program(self) -> Program: ...
    @property
    def trace(self) -> CompileTrace: ...
    @property
    def cuda(self) -> CudaSource: ...


Lower = Callable[[Target, bool], LoweredProgram]
"""(target, aligned) -> the lowered function."""
SLOW = ("spill", "C7510", "C7511", "C7512", "C7513", "C7514")
"""Remarks that mean registers ran out, or that wgmma waits for itself because of it."""


@dataclass
class Build:
    """One variant: its machine code once it was asked for, and `received` when another process
    built it. It is lowered here when somebody looks at more than that."""

    target: Target
    aligned: bool
    lower: Lower
    cubin: nvrtc.Cubin | None = None
    received: Variant | None = None

    @cached_property
    def lowered(self) -> LoweredProgram:
        """The lowered function, with its trace and CUDA text."""
        return self.lower(self.target, self.aligned)

    @property
    def program(self) -> Program:
        """What a launch needs to know."""
        return self.lowered.program if self.received is None else self.received.program

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The `__global__` functions, in the order of the kernels."""
        return self.lowered.cuda.kernel_names if self.received is None else (
            self.received.kernel_names
        )  # fmt: skip


class Builds:
    """All variants of one kernel. `wanted` is the target the user named, None for the device's."""

    def __init__(
        self,
        name: str,
        lower: Lower,
        wanted: Target | None,
        pass_configs: Mapping[str, Any],
        options: tuple[str, ...],
        verbose: bool = False,
    ) -> None:
        self._name = name
        self._lower = lower
        self._wanted = wanted
        self._configs = pass_configs
        self._options = options
        self._verbose = verbose
        self._found: dict[tuple[Target, bool], Build] = {}
        self._lock = threading.RLock()

    @property
    def target(self) -> Target:
        """What is compiled for when no call decides: the target named (as machine code for this
        machine's GPU when that is newer), the GPU's, or the default."""
        if driver.find() is None:
            return self._wanted or DEFAULT_TARGET
        own = driver.device_info().target
        if self._wanted is None:
            return own
        fits = self._wanted.features <= own.features
        return self._wanted.built_for(own.arch) if fits else self._wanted

    def build(self, aligned: bool = True, target: Target | None = None) -> Build:
        """A variant, lowered at first use."""
        key = (target or self.target, aligned)
        with self._lock:
            found = self._found.get(key)
            if found is None:
                found = Build(*key, self._lower)
                _ = found.lowered  # a mistake of the program is reported now
                self._found[key] = found
            return found

    def adopt(self, target: Target, aligned: bool, variant: Variant) -> None:
        """Take a variant that another process has built."""
        with self._lock:
            made = Build(target, aligned, self._lower, variant.cubin, variant)
            self._found[target, aligned] = made
            self._warn(made, variant.cubin)

    def cubin(self, build: Build) -> nvrtc.Cubin:
        """Machine code of a variant: from memory, from the cache on disk, or from NVRTC. What
        ptxas finds wrong with it (spills, serialised wgmma) is a Python warning, once."""
        with self._lock:
            if build.cubin is None:
                build.cubin = self._compiled(build)
                self._warn(build, build.cubin)
            return build.cubin

    def _warn(self, build: Build, cubin: nvrtc.Cubin) -> None:
        for remark in cubin.warnings:
            advice = ""
            if remark.code in SLOW:
                kernels = build.lowered.program.kernels
                mine = next((k for k in kernels if k.name == remark.kernel), kernels[0])
                threads, limits = prod(mine.user_threads), build.target.limits
                advice = smaller_tiles(build.lowered.trace, threads, limits)
            text = f"{self._name}: {remark}" + (f" ({advice})" if advice else "")
            warn(text, RuntimeWarning)

    def registers(self, program: Program) -> dict[str, int]:
        """Registers a thread of each kernel of a variant, if it has been compiled."""
        for build in self._found.values():
            if build.lowered.program is program and build.cubin is not None:
                used = build.cubin.resources
                names = zip(program.kernels, build.lowered.cuda.kernel_names, strict=True)
                return {k.name: used[name].registers for k, name in names if name in used}
        return {}

    def _compiled(self, build: Build) -> nvrtc.Cubin:
        source, arch = build.lowered.cuda, build.target.arch
        # The CUDA text stands for the tile IR: lowering has run by now (its trace is wanted), and
        # equal text gives equal machine code whatever program it came from.
        key = cache.cache_key(
            source.text, f"{build.target.name}:{arch}",
            pass_configs=self._configs, options=self._options, compiler=nvrtc.version(),
        )  # fmt: skip
        found = cache.load(key)
        if found is not None:
            return found

        def locate(line: int) -> Loc | None:
            places = [link.loc for link in source.links_of_line(line) if link.loc is not None]
            return places[-1] if places else None

        if self._verbose:
            sys.stderr.write(f"tilelab: compiling {self._name} for {arch}\n")
        made = nvrtc.compile_cubin(source.text, arch, options=self._options, locate=locate)
        cache.store(key, made, source.text)
        return made

    def variant(self, device: int, aligned: bool) -> Variant:
        """What runs on GPU `device`: this kernel's target, as machine code for that chip.
        TileRuntimeError (TL1633) when the chip lacks a feature of the target."""
        info = driver.device_info(device)
        own = info.target
        target = self._wanted or own
        missing = target.features - own.features
        if missing:
            names = ", ".join(sorted(f.value for f in missing))
            raise TileRuntimeError(
                f"{self._name} was compiled for {target}, and {info.name} lacks {names}",
                code="TL1633", hint=f'leave the target out, or use target="{own.name}"',
            )  # fmt: skip
        build = self.build(aligned, target.built_for(own.arch))
        for kernel in build.program.kernels:
            check_fit(kernel, info.shared_per_block, info.name)
        return Variant(build.program, self.cubin(build), build.kernel_names)
