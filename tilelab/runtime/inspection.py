"""What there is to look at in a compiled kernel: sources, machine code, trace, resources.

Hides which variant is shown: the fast one, for the target that no call has decided.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tilelab.calls import answers
from tilelab.codegen.source import CudaSource
from tilelab.errors import TileValueError
from tilelab.passes.base import CompileTrace
from tilelab.runtime import nvrtc, sass, wheels
from tilelab.runtime.arguments import Signature
from tilelab.runtime.builds import Builds
from tilelab.runtime.host import host_text
from tilelab.target import Target
from tilelab.thread.nodes import Program


class Inspection:
    """The read-only side of a kernel object."""

    signature: Signature
    _builds: Builds

    @property
    def name(self) -> str:
        """The function's name."""
        return self.signature.name

    @property
    def target(self) -> Target:
        """What the kernel is compiled for when no call decides."""
        return self._builds.target

    @property
    def program(self) -> Program:
        """The thread IR that runs."""
        return self._builds.build().lowered.program

    def program_for(self, aligned: bool, target: Target | None = None) -> Program:
        """The thread IR of a variant: for 16-byte aligned rows and bases, or for any; `target`
        stands for the kernel's own."""
        return self._builds.build(aligned, target).lowered.program

    @property
    def trace(self) -> CompileTrace:
        """Every pass, before and after, with its reasons."""
        return self._builds.build().lowered.trace

    @property
    def source(self) -> CudaSource:
        """The CUDA text with its line map."""
        return self._builds.build().lowered.cuda

    @property
    def cubin(self) -> nvrtc.Cubin:
        """Machine code, and ptxas' report; needs no GPU."""
        return self._builds.cubin(self._builds.build())

    @property
    def resources(self) -> dict[str, nvrtc.Resources]:
        """Kernel name -> registers, spills, stack, static shared memory, as ptxas reports them;
        empty where NVRTC is not installed (`tilelab doctor` says how to get it)."""
        return {} if wheels.nvrtc_library() is None else self.cubin.resources

    @property
    def n_regs(self) -> int:
        """Registers of a thread, of the kernel that takes most."""
        return max(r.registers for r in self.cubin.resources.values())

    @property
    def n_spills(self) -> int:
        """Bytes of registers spilled to local memory, of the kernel that spills most."""
        return max(r.spill_stores for r in self.cubin.resources.values())

    @property
    def out_idx(self) -> list[int]:
        """Positions of the parameters that a call allocates and returns."""
        return list(self.signature.outputs)

    @property
    def params(self) -> list[Any]:
        """The parameters, in order."""
        return list(self.signature.params)

    @property
    def kernel_source(self) -> str:
        """The CUDA text."""
        return self.source.text

    @answers("kernel.get_kernel_source", inside=False, kinds=True)
    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The CUDA text; with kernel_only=False the host's part follows as a comment."""
        if kernel_only:
            return self.kernel_source
        return f"{self.kernel_source}\n/*\n{self.get_host_source()}*/\n"

    @property
    def host_source(self) -> str:
        """What the host does at a call, as text."""
        return self.get_host_source()

    @answers("kernel.get_host_source", inside=False)
    def get_host_source(self) -> str:
        """What the host does at a call: checks, descriptors, grid and launch of each kernel."""
        return host_text(self.signature, self.program)

    @answers("kernel.show_source", inside=False, kinds=True)
    def show_source(self, which: str = "kernel") -> None:
        """Print the CUDA text ("kernel"), the host's part ("host") or "both"."""
        makers = {
            "kernel": (self.get_kernel_source,),
            "host": (self.get_host_source,),
            "both": (self.get_kernel_source, self.get_host_source),
        }
        if which not in makers:
            raise TileValueError(
                f"there is no source {which!r}", code="TL1642",
                hint='use "kernel", "host" or "both"',
            )  # fmt: skip
        sys.stdout.write("\n".join(make() for make in makers[which]) + "\n")

    @answers("kernel.export_sources", inside=False, kinds=True)
    def export_sources(
        self,
        kernel_path: str | os.PathLike[str] | None = None,
        host_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write the CUDA text and the host's part to files."""
        if kernel_path is not None:
            Path(kernel_path).write_text(self.get_kernel_source(), encoding="utf-8")
        if host_path is not None:
            Path(host_path).write_text(self.get_host_source(), encoding="utf-8")

    @answers("kernel.get_sass", inside=False, kinds=True)
    def get_sass(self) -> str:
        """The machine code disassembled."""
        return sass.disassemble(self.cubin.image)

    @answers("kernel.show_sass", inside=False, kinds=True)
    def show_sass(self) -> None:
        """Print the machine code disassembled."""
        sys.stdout.write(self.get_sass() + "\n")

    @answers("kernel.export_sass", inside=False, kinds=True)
    def export_sass(self, path: str | os.PathLike[str]) -> None:
        """Write the machine code disassembled to a file."""
        Path(path).write_text(self.get_sass(), encoding="utf-8")
