"""A kernel that came as data: called with every parameter, outputs too.

Hides that its two variants are there already, so nothing is lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilelab.codegen import CudaSource, emit
from tilelab.errors import TileValueError
from tilelab.ir import walk
from tilelab.passes.base import CompileTrace
from tilelab.runtime.arguments import Signature
from tilelab.runtime.builds import Builds, LoweredProgram
from tilelab.runtime.inspection import Inspection
from tilelab.runtime.launch import MISS, Launcher
from tilelab.runtime.options import compiler_options
from tilelab.runtime.sass import opcode_counts
from tilelab.runtime.simulated import run_simulated
from tilelab.sim import SimReport
from tilelab.target import Target
from tilelab.thread.nodes import Invoke, Program


@dataclass(frozen=True)
class _Variant:
    program: Program
    trace: CompileTrace
    cuda: CudaSource


class LoadedKernel(Inspection):
    """What `load` returns. `declared_outputs` are the parameters that the saved kernel returned."""

    def __init__(
        self, aligned: Program, general: Program, target: Target, outputs: tuple[int, ...],
        options: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self._programs = {True: aligned, False: general}
        self.declared_outputs = outputs
        self.signature = Signature(aligned.name, aligned.params, aligned.sizes)
        self._builds = Builds(
            aligned.name, self._lower, target, options, compiler_options((), options)
        )
        self._launcher = Launcher(self.signature, self._builds.variant)

    def _lower(self, target: Target, aligned: bool) -> LoweredProgram:
        program = self._programs[aligned]
        return _Variant(program, CompileTrace(target), emit(program, target))

    def __call__(self, *tensors: Any) -> None:
        """Run on the GPU with CUDA tensors, one for each parameter, on torch's current stream.

        Raises TileErrors that name the parameter that does not fit, TileValueError (TL1618) for
        tensors that do not lie on a GPU.
        """
        if self._launcher.quick(tensors) is not MISS:
            return
        binding = self.signature.bind(tensors)
        kind, _, number = (binding.device or "").partition(":")
        if kind != "cuda":
            raise TileValueError(
                f"a loaded kernel is called with tensors on a GPU, these lie on {kind or 'none'}",
                code="TL1618", hint="use .simulate(...) for tensors on the CPU",
            )  # fmt: skip
        self._launcher.run(binding, int(number or 0))

    def simulate(self, *tensors: Any, **options: Any) -> SimReport:
        """Run on the simulator with CPU tensors or arrays, one for each parameter, which change
        in place; `options` go to `tilelab.sim.simulate`. Returns its report, whatever it found."""
        binding = self.signature.bind(tensors)
        return run_simulated(self.signature, self._builds, binding, options)[1]

    @property
    def costs(self) -> frozenset[str]:
        """Cost classes of the instructions in the program ("wgmma", "async", "atomic", ..)."""
        kernels = [node for kernel in self.program.kernels for node in walk(kernel.body)]
        return frozenset(n.intrinsic.cost for n in kernels if isinstance(n, Invoke))

    @property
    def opcodes(self) -> dict[str, int]:
        """How often each SASS opcode stands in the machine code ("HGMMA", "UTMALDG")."""
        return dict(opcode_counts(self.get_sass()))
