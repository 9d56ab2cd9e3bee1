"""JITKernel: a traced function, compiled when it is needed, called like a function.

The device of the inputs decides where a call runs. Hides that one kernel has several variants.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilelab.absent import absent
from tilelab.calls import answers, did_you_mean
from tilelab.compiler import lower
from tilelab.errors import TileRuntimeError, TileTypeError, TileValueError, shown
from tilelab.frontend import PrimFunc
from tilelab.ir import Function
from tilelab.ir.packing import packed_params
from tilelab.kinds import admits
from tilelab.profiler import Profiler, TensorSupplyType
from tilelab.runtime import driver
from tilelab.runtime.arguments import Binding, Signature
from tilelab.runtime.builds import Builds, LoweredProgram
from tilelab.runtime.inspection import Inspection
from tilelab.runtime.launch import MISS, Launcher
from tilelab.runtime.module import LoadedVariant, Variant
from tilelab.runtime.options import compiler_options, config_map
from tilelab.runtime.shipping import Shipment, pack, unpack
from tilelab.runtime.simulated import run_simulated, tell
from tilelab.runtime.untouched import Untouched
from tilelab.sim.simulate import OPTIONS
from tilelab.target import Target, parse_target
from tilelab.views import SimulationReport, show

_SOURCES = "use kernel.export_sources(kernel_path=..., host_path=...)"


class JITKernel(Inspection):
    """A compiled tile program.

    Call it with the inputs (outputs named by `out_idx` are allocated and returned): CUDA tensors
    run on the GPU, CPU tensors on the simulator. With a target given, it is lowered at once;
    otherwise at first use.
    """

    def __init__(
        self,
        function: Function | PrimFunc,
        *,
        out_idx: int | Sequence[int] | None = None,
        target: Target | str | Mapping[str, Any] | None = None,
        pass_configs: Mapping[Any, Any] | None = None,
        compile_flags: Sequence[str] | str | None = (),
        verbose: bool = False,
    ) -> None:
        function = function.function if isinstance(function, PrimFunc) else function
        self.prim_func = function
        self._flags = compile_flags
        wishes: dict[str, Any] = dict(function.attrs)
        self.pass_configs = {**dict(wishes.get("pass_configs", ())), **config_map(pass_configs)}
        outputs = _outputs(function, out_idx)
        self.signature = Signature(
            function.name,
            packed_params(function),
            function.sizes,
            outputs,
            function.loc,
            Untouched.of(function),
        )
        wanted = parse_target(target)
        options = compiler_options(wishes.get("compile_flags"), self.pass_configs)
        options += compiler_options(compile_flags, {})
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

    def checked(self) -> JITKernel:
        """This kernel, lowered now if it was not before: mistakes of the program are told here."""
        self._builds.build()
        return self

    def _lower(self, target: Target, aligned: bool) -> LoweredProgram:
        configs = dict(self.pass_configs)
        return lower(self.prim_func, target=target, pass_configs=configs, aligned=aligned)

    def remade(
        self, *, function: Function | None = None, target: Target | None = None,
        pass_configs: Mapping[str, Any] | None = None,
    ) -> JITKernel:  # fmt: skip
        """The same kernel compiled with another function, target or pass_configs than its own."""
        function = function or self.prim_func
        return JITKernel(
            function, out_idx=None if function.outputs else self.out_idx or None,
            target=target or self.trace.target, compile_flags=self._flags,
            pass_configs=self.pass_configs if pass_configs is None else pass_configs,
        )  # fmt: skip

    def ship(self) -> Shipment:
        """The compiled kernel for another process that has traced the same program."""
        build = self._builds.build()
        variant = Variant(build.program, self._builds.cubin(build), build.kernel_names)
        return pack(self.prim_func, build.target, build.aligned, variant)

    def receive(self, shipment: Shipment) -> None:
        """Take what `ship` gave in another process; nothing is lowered here until it is shown."""
        variant = unpack(self.prim_func, shipment)
        self._builds.adopt(shipment.target, shipment.aligned, variant)

    # ---- calling -----------------------------------------------------------------------------

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run with the inputs in order, or by their names; gives
        the output, a list of several outputs, or None when
        the program writes into its arguments. A grid without blocks launches nothing: outputs
        are then returned as allocated."""
        if named:
            args = self.signature.ordered(args, named)
        result = self._launcher.quick(args)
        if result is not MISS:
            return result
        binding = self.signature.bind(args)
        device = self._gpu_of(binding)
        if device is not None:
            return self._launcher.run(binding, device)
        made, report = run_simulated(self.signature, self._builds, binding, {})
        tell(self.name, report)
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
            sys.stderr.write(
                f"tilelab: {self.name} runs on the simulator, because its inputs are on the CPU; "
                'move them with .to("cuda") to use the GPU\n'
            )
        return None

    def simulate(self, *args: Any, **named: Any) -> SimulationReport:
        """Run on the simulator and return its report: outputs, findings, counters, a modelled
        timeline; whatever it found.

        Inputs as in a call (in order or by name), on the CPU. Options: `checks` (True, False or
        names of checks), `schedule` ("late", "eager", "random"), `seed`, `timeline_block`,
        `loop_seconds`, `max_steps`, `max_memory`, `progress`, as `tilelab.sim.simulate` has them.
        """
        own = OPTIONS - {param.name for param in self.signature.params}
        options = {name: named.pop(name) for name in own & named.keys()}
        _check_options(options, named.keys() - {p.name for p in self.signature.params})
        if named:
            args = self.signature.ordered(args, named)
        binding = self.signature.bind(args)
        if binding.device not in (None, "cpu"):
            raise TileValueError(
                f"the simulator works on CPU tensors, these lie on {binding.device}",
                code="TL1618", hint="pass x.cpu()",
            )  # fmt: skip
        made, report = run_simulated(self.signature, self._builds, binding, options)
        return SimulationReport.of(report, tuple(made))

    @property
    def loaded(self) -> tuple[LoadedVariant, ...]:
        """The variants that calls on a GPU have loaded so far."""
        return self._launcher.in_use

    @answers("kernel.get_profiler", inside=False, kinds=True)
    def get_profiler(self, tensor_supply_type: TensorSupplyType | None = None) -> Profiler:
        """A profiler that makes inputs, times the kernel and compares it with a reference."""
        return Profiler(self, tensor_supply_type)

    export_library = absent("kernel.export_library", "there is no host library", _SOURCES)
    show_ptx = absent("kernel.show_ptx", "only cubins are made", "use kernel.show_sass()")
    export_ptx = absent("kernel.export_ptx", "only cubins are made", "use kernel.export_sass(path)")

    @answers("kernel.print_source_code", inside=False, kinds=True)
    def print_source_code(
        self, which: str = "kernel", file: str | os.PathLike[str] | None = None
    ) -> None:
        """`show_source` by its old name, or `export_sources` where a file is named."""
        if file is None:
            self.show_source(which)
        else:
            self.export_sources(file)

    @answers("kernel.run_once", inside=False, kinds=True)
    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """The result of one run (of `func`, by default the kernel) on made-up inputs."""
        return self.get_profiler().run_once(func)

    def update_tuner_result(
        self, latency: float | None, config: dict[str, Any] | None, ref_latency: float | None
    ) -> JITKernel:
        """Note what the autotuner found: milliseconds, the config, the reference's time."""
        self.latency, self.config, self.ref_latency = latency, config, ref_latency
        return self

    def get_tuner_result(self) -> dict[str, Any]:
        """What the autotuner found. TileRuntimeError (TL1653) for a kernel that is not tuned."""
        if self.latency is None:
            raise TileRuntimeError(
                f"{self.name} was not made by the autotuner", code="TL1653",
                hint="put @tilelang.autotune(configs=...) above @tilelang.jit",
            )  # fmt: skip
        return {
            "latency": self.latency, "config": self.config, "ref_latency": self.ref_latency
        }  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        report = show(self)
        return {"text/plain": report.to_text(), "text/html": report.to_html()}

    def __repr__(self) -> str:
        return f"<JITKernel {self.signature} for {self.target}>"


def _outputs(function: Function, out_idx: int | Sequence[int] | None) -> tuple[int, ...]:
    """Positions of the outputs: out_idx, or what the function returns; never both."""
    listed: list[Any] = list(out_idx) if isinstance(out_idx, list | tuple) else [out_idx]
    given: tuple[Any, ...] = () if out_idx is None else tuple(listed)
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in given):
        raise TileTypeError(
            f"out_idx={out_idx!r} is no position of a parameter", code="TL1621", loc=function.loc,
            hint="give the positions of the outputs: out_idx=-1 or out_idx=[1, 2]",
        )  # fmt: skip
    if given and function.outputs:
        raise TileValueError(
            f"{function.name} returns its T.empty tensors, so out_idx={out_idx} has no meaning",
            code="TL1621", loc=function.loc, hint="leave out_idx out",
        )  # fmt: skip
    return given or function.outputs


def _check_options(options: Mapping[str, Any], others: Iterable[str]) -> None:
    """TileTypeError for a misspelt option of simulate (TL1407) and a seed that is none (TL1002)."""
    for name in others:
        near = did_you_mean(name, OPTIONS, "{}=...")
        if near:
            raise TileTypeError(
                f"kernel.simulate() has no argument {name!r}", code="TL1407",
                hint=f"{near} its options: {', '.join(sorted(OPTIONS))}",
            )  # fmt: skip
    seed = options.get("seed", 0)
    if not admits(int, seed) or seed < 0:
        raise TileTypeError(
            f"kernel.simulate() has got seed={shown(seed)}", code="TL1002",
            hint="give an int from 0 on",
        )  # fmt: skip
