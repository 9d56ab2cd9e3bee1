"""JITKernel: a traced function, compiled when it is needed, called like a function.

The device of the inputs decides where a call runs. Hides that one kernel has several variants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelab.codegen.source import CudaSource
from tilelab.compile import lower
from tilelab.errors import TileValueError
from tilelab.ir import Function
from tilelab.passes.base import CompileTrace
from tilelab.profiler import Profiler
from tilelab.runtime import driver, nvrtc, sass, wheels
from tilelab.runtime.arguments import Binding, Signature
from tilelab.runtime.builds import Builds, LoweredProgram
from tilelab.runtime.host import host_text
from tilelab.runtime.launch import MISS, Launcher
from tilelab.runtime.options import compiler_options, config_map
from tilelab.runtime.simulated import raise_findings, run_simulated
from tilelab.sim import SimReport
from tilelab.target import Target, parse_target
from tilelab.thread.nodes import Program
from tilelab.views import show


class JITKernel:
    """A compiled tile program.

    Call it with the inputs (outputs named by `out_idx` are allocated and returned): CUDA tensors
    run on the GPU, CPU tensors on the simulator. With a target given, it is lowered at once;
    otherwise at first use.
    """

    def __init__(
        self,
        function: Function,
        *,
        out_idx: int | Sequence[int] | None = None,
        target: Target | str | Mapping[str, Any] | None = None,
        pass_configs: Mapping[Any, Any] | None = None,
        compile_flags: Sequence[str] | str | None = (),
        verbose: bool = False,
    ) -> None:
        self.prim_func = function
        self.pass_configs = config_map(pass_configs)
        outputs = _outputs(function, out_idx)
        self.signature = Signature(
            function.name, function.params, function.sizes, outputs, function.loc
        )
        wanted = parse_target(target)
        options = compiler_options(compile_flags, self.pass_configs)
        self._builds = Builds(
            function.name, self._lower, wanted, self.pass_configs, options, verbose
        )
        self._launcher = Launcher(self.signature, self._builds.variant)
        self._told = False
        # Filled in by the autotuner.
        self.latency: float | None = None
        self.ref_latency: float | None = None
        self.config: dict[str, Any] | None = None
        if wanted is not None:
            self._builds.build()

    def _lower(self, target: Target, aligned: bool) -> LoweredProgram:
        configs = dict(self.pass_configs)
        return lower(self.prim_func, target=target, pass_configs=configs, aligned=aligned)

    # ---- calling -----------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """Run with the inputs in order; gives the output, a list of several outputs, or None when
        the program writes into its arguments. A grid without blocks launches nothing: outputs
        are then returned as allocated."""
        result = self._launcher(args)
        if result is not MISS:
            return result
        binding = self.signature.bind(args)
        device = self._gpu_of(binding)
        if device is not None:
            return self._launcher.run(binding, device)
        made, report = run_simulated(self.signature, self._builds, binding, {})
        raise_findings(self.name, report)
        if not made:
            return None
        return made[0] if len(made) == 1 else made

    def _gpu_of(self, binding: Binding) -> int | None:
        """The GPU a call runs on; None for the simulator."""
        name = binding.device
        if name is not None and name.startswith("cuda"):
            return int(name.partition(":")[2] or 0)
        if driver.find() is None:
            return None
        import torch

        if not torch.cuda.is_available():
            return None
        if name is None:
            return torch.cuda.current_device()
        if not self._told:
            self._told = True
            print(
                f"tilelab: {self.name} runs on the simulator, because its inputs are on the CPU; "
                'move them with .to("cuda") to use the GPU'
            )
        return None

    def simulate(self, *args: Any, **options: Any) -> SimReport:
        """Run on the simulator and return its report (findings, counters, events), whatever it
        found. Inputs as in a call, on the CPU; `options` go to `tilelab.sim.simulate`."""
        binding = self.signature.bind(args)
        if binding.device not in (None, "cpu"):
            raise TileValueError(
                f"the simulator works on CPU tensors, these lie on {binding.device}",
                code="TL1618", hint="pass x.cpu()",
            )  # fmt: skip
        return run_simulated(self.signature, self._builds, binding, options)[1]

    # ---- looking inside ----------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The thread IR that runs (of the fast variant)."""
        return self._builds.build().lowered.program

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
    def name(self) -> str:
        """The function's name."""
        return self.prim_func.name

    @property
    def target(self) -> Target:
        """What the kernel is compiled for when no call decides."""
        return self._builds.target

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

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The CUDA text; with kernel_only=False the host's part follows as a comment."""
        if kernel_only:
            return self.kernel_source
        return self.kernel_source + "\n/*\n" + self.get_host_source() + "*/\n"

    @property
    def host_source(self) -> str:
        """What the host does at a call, as text."""
        return self.get_host_source()

    def get_host_source(self) -> str:
        """What the host does at a call: checks, descriptors, grid and launch of each kernel."""
        return host_text(self.signature, self.program)

    def show_source(self, which: str = "kernel") -> None:
        """Print the CUDA text ("kernel"), the host's part ("host") or "both"."""
        texts = self._sources(which)
        print("\n".join(texts))

    def _sources(self, which: str) -> list[str]:
        makers = {"kernel": (self.get_kernel_source,), "host": (self.get_host_source,)}
        makers["both"] = (*makers["kernel"], *makers["host"])
        if which not in makers:
            raise TileValueError(
                f"there is no source {which!r}", code="TL1642",
                hint='use "kernel", "host" or "both"',
            )  # fmt: skip
        return [make() for make in makers[which]]

    def export_sources(self, kernel_path: Any = None, host_path: Any = None) -> None:
        """Write the CUDA text and the host's part to files."""
        if kernel_path is not None:
            Path(kernel_path).write_text(self.get_kernel_source(), encoding="utf-8")
        if host_path is not None:
            Path(host_path).write_text(self.get_host_source(), encoding="utf-8")

    def get_sass(self) -> str:
        """The machine code disassembled."""
        return sass.disassemble(self.cubin.image)

    def show_sass(self) -> None:
        """Print the machine code disassembled."""
        print(self.get_sass())

    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """A profiler that makes inputs, times the kernel and compares it with a reference."""
        return Profiler(self, tensor_supply_type)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return show(self)._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        return f"<JITKernel {self.signature} for {self.target}>"


def _outputs(function: Function, out_idx: int | Sequence[int] | None) -> tuple[int, ...]:
    """Positions of the outputs: out_idx, or what the function returns; never both."""
    given = (out_idx,) if isinstance(out_idx, int) else tuple(out_idx or ())
    if given and function.outputs:
        raise TileValueError(
            f"{function.name} returns its T.empty tensors, so out_idx={out_idx} has no meaning",
            code="TL1621", loc=function.loc, hint="leave out_idx out",
        )  # fmt: skip
    return given or function.outputs
