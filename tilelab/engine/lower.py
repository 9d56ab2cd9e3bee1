"""tilelang.lower: compile without launching, to look at the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tilelab.absent import not_here
from tilelab.calls import answer_all
from tilelab.jit import compile as compile_program
from tilelab.kernel import JITKernel


@dataclass(frozen=True)
class CompiledArtifact:
    """A lowered program: its CUDA text, what the host does, its parameters."""

    kernel: JITKernel

    @property
    def kernel_source(self) -> str:
        """The CUDA text."""
        return self.kernel.kernel_source

    @property
    def params(self) -> list[Any]:
        """The parameters, in order."""
        return self.kernel.params

    @property
    def host_source(self) -> str:
        """What the host does at a call, as text."""
        return self.kernel.host_source

    @property
    def host_mod(self) -> NoReturn:
        """Raises TileNotSupported (TL1654)."""
        raise _no_module("host_mod")

    @property
    def device_mod(self) -> NoReturn:
        """Raises TileNotSupported (TL1654)."""
        raise _no_module("device_mod")

    @property
    def rt_mod(self) -> NoReturn:
        """Raises TileNotSupported (TL1654)."""
        raise _no_module("rt_mod")


def _no_module(name: str) -> Exception:
    return not_here(
        f"lower(...).{name}", "there is no TVM module behind a kernel",
        "use .kernel_source, .host_source, or .kernel.program for the thread IR",
    )  # fmt: skip


def lower(
    func_or_mod: Any, target: Any = "auto", target_host: Any = None, *, pass_configs: Any = None
) -> CompiledArtifact:
    """Lower a T.prim_func for `target` (by default this machine's GPU, or the default target)."""
    kernel = compile_program(
        func_or_mod, target=target, target_host=target_host, pass_configs=pass_configs
    )
    _ = kernel.program  # now, so that errors come from here
    return CompiledArtifact(kernel)


answer_all(globals(), ("lower",), "tilelab")
