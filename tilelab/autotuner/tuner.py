"""AutoTuner: tuning a factory step by step, `from_kernel(...).set_...(...).run()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilelab.autotuner.capture import get_autotune_inputs
from tilelab.autotuner.search import AutotuneResult, search, with_settings
from tilelab.autotuner.settings import PASS_CONFIGS, Config, Settings, as_configs, tell_inactive
from tilelab.calls import answers
from tilelab.errors import TileTypeError
from tilelab.frontend import PrimFunc
from tilelab.jit import JITImpl, Options, check_backend
from tilelab.kernel import JITKernel

# How TileLang spreads the work of tuning; results are the same without.
_INACTIVE = (
    "benchmark_devices", "benchmark_multi_gpu", "enable_grouped_compile",
    "grouped_compile_batch_size", "group_compile_size", "num_workers", "use_pipeline",
)  # fmt: skip


class AutoTuner:
    """Finds the best config of a factory: a function of the tunable arguments that returns a
    T.prim_func or a kernel, or a @tilelab.jit function."""

    def __init__(self, fn: Callable[..., Any], configs: Sequence[Config]) -> None:
        self.fn = fn
        self.configs = list(configs)
        self.options = Options()
        self.settings = Settings(timeout=30)

    @classmethod
    @answers("AutoTuner.from_kernel", inside=False, kinds=True)
    def from_kernel(cls, kernel: Callable[..., Any], configs: Any) -> AutoTuner:
        """A tuner for a factory and its configs (dicts, or a function that returns them)."""
        if not callable(kernel):
            raise TileTypeError(
                f"AutoTuner.from_kernel takes a function, got {kernel!r}", code="TL1651",
                hint="pass the function that makes the T.prim_func",
            )  # fmt: skip
        return cls(kernel, as_configs(configs))

    @answers("AutoTuner.set_compile_args", inside=False, kinds=True)
    def set_compile_args(
        self,
        out_idx: int | Sequence[int] | None = None,
        target: Any = None,
        execution_backend: str | None = None,
        target_host: Any = None,
        verbose: bool | None = None,
        pass_configs: Mapping[Any, Any] | None = None,
    ) -> AutoTuner:
        """How each program is compiled, as in `tilelab.compile`."""
        check_backend(execution_backend, target_host)
        self.options = Options(out_idx, target, pass_configs, None, verbose)
        return self

    @answers("AutoTuner.set_profile_args", inside=False, kinds=True)
    def set_profile_args(
        self, warmup: float | None = None, rep: float | None = None,
        timeout: float | None = None, **settings: Any,
    ) -> AutoTuner:  # fmt: skip
        """How each kernel is measured and checked: the fields of `Settings`."""
        known = {k: v for k, v in settings.items() if k in Settings.__dataclass_fields__}
        others = {k: v for k, v in settings.items() if k not in known}
        tell_inactive("AutoTuner.set_profile_args", others, _INACTIVE)
        self.settings = with_settings(
            self.settings, warmup=warmup, rep=rep, timeout=timeout, **known
        )
        return self

    @answers("AutoTuner.run", inside=False, kinds=True)
    def run(
        self,
        warmup: float | None = None,
        rep: float | None = None,
        timeout: float | None = None,
        early_stop: bool | None = None,
        early_stop_factor: float | None = None,
        **others: Any,
    ) -> AutotuneResult:
        """Tune now. Raises TileRuntimeError (TL1652) when no config works."""
        tell_inactive("AutoTuner.run", others, _INACTIVE)
        settings = with_settings(
            self.settings, warmup=warmup, rep=rep, timeout=timeout, early_stop=early_stop,
            early_stop_factor=early_stop_factor,
        )  # fmt: skip
        name = getattr(self.fn, "__name__", "kernel")
        return search(name, self._make, self.configs, settings, get_autotune_inputs())

    def _make(self, config: Config) -> JITKernel:
        arguments = {k: v for k, v in config.items() if k != PASS_CONFIGS}
        extra = config.get(PASS_CONFIGS)
        if isinstance(self.fn, JITImpl):
            return self.fn.with_pass_configs(extra).compile(**arguments)
        made = self.fn(**arguments)
        if isinstance(made, JITKernel):
            return made
        if isinstance(made, PrimFunc):
            return self.options.plus(extra).kernel(made.function)
        raise TileTypeError(
            f"{getattr(self.fn, '__name__', self.fn)} returned {made!r} instead of a program",
            code="TL1651", hint="return the function under @T.prim_func",
        )  # fmt: skip
