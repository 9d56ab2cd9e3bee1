"""@autotune: a @tilelab.jit function whose tunable arguments are found at the first call."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from tilelab.autotuner.capture import get_autotune_inputs
from tilelab.autotuner.search import AutotuneResult, pinned, search
from tilelab.autotuner.settings import PASS_CONFIGS, Config, Settings, as_configs, tunable
from tilelab.call_forms import freeze
from tilelab.calls import answer_all
from tilelab.errors import TileTypeError
from tilelab.jit import JITImpl
from tilelab.kernel import JITKernel


class AutoTuneImpl:
    """What @autotune leaves in place of a function: called as the @tilelab.jit function is, with
    the tunable arguments left out. With all of them given, nothing is tuned; with some given,
    the others are tuned."""

    def __init__(
        self, jit_impl: JITImpl, configs: Any, settings: Settings, do_not_specialize: Sequence[str]
    ) -> None:
        self.jit_impl = jit_impl
        self.configs = configs
        self.settings = settings
        self.do_not_specialize = frozenset(do_not_specialize)
        self._results: dict[Hashable, AutotuneResult] = {}
        self._last = jit_impl
        self._lock = threading.RLock()
        functools.update_wrapper(self, jit_impl.func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kernel = self.compile(*args, **kwargs)
        if self.mode == "lazy":
            return kernel
        return kernel(*self.jit_impl.runtime_arguments(args, kwargs))

    @property
    def mode(self) -> str:
        """ "auto" until the first call, then "lazy" or "eager"."""
        return self.jit_impl.mode if self.jit_impl.mode != "auto" else self._last.mode

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The tuned kernel for these arguments, with `.latency`, `.config` and `.ref_latency`."""
        configs = as_configs(self.configs, args, kwargs)
        given = self._given(args, kwargs)
        names = tunable(configs)
        self._check_names(names)
        fixed = {name: given[name] for name in names if name in given}
        if len(fixed) == len(names):
            return self.jit_impl.compile(*args, **kwargs)
        positional = self._left_out(names, args)
        result = self._tuned(pinned(configs, fixed), positional, kwargs, given)
        return result.kernel

    def tune(self, *args: Any, **kwargs: Any) -> AutotuneResult:
        """As `compile`, and the whole result: every config with its time or its problem."""
        self.compile(*args, **kwargs)
        return self._results[self._key(self._given(args, kwargs))]

    def __getattr__(self, name: str) -> Any:
        if name in ("func", "signature", "out_idx", "get_tir", "par_compile"):
            return getattr(self.jit_impl, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The CUDA text of the tuned kernel for these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<autotune {self.jit_impl!r}>"

    # ---- arguments --------------------------------------------------------------------------

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments that the call names, by parameter."""
        known = self.jit_impl.signature.parameters
        own = {k: v for k, v in kwargs.items() if k in known}
        bound = self.jit_impl.signature.bind_partial(*args, **own)
        return {**kwargs, **bound.arguments}

    def _check_names(self, names: Iterable[str]) -> None:
        parameters = self.jit_impl.signature.parameters
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            return
        for name in names:
            if name not in parameters:
                raise TileTypeError(
                    f"a config of autotune has {name!r}, which is no argument of "
                    f"{self.jit_impl.func.__name__}",
                    code="TL1651", hint="its arguments are " + ", ".join(parameters),
                )  # fmt: skip

    def _left_out(self, names: Sequence[str], args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Positional arguments before the first tunable one: the tuner names the others."""
        parameters = list(self.jit_impl.signature.parameters)
        places = [parameters.index(n) for n in names if n in parameters]
        return args[: min([len(args), *places])]

    def _key(self, given: dict[str, Any]) -> Hashable:
        kept = sorted(name for name in given if name not in self.do_not_specialize)
        return tuple((name, _described(given[name])) for name in kept)

    # ---- tuning -----------------------------------------------------------------------------

    def _tuned(
        self, configs: list[Config], args: tuple[Any, ...], kwargs: dict[str, Any],
        given: dict[str, Any],
    ) -> AutotuneResult:  # fmt: skip
        key = self._key(given)
        parameters = list(self.jit_impl.signature.parameters)
        named = {k: v for k, v in given.items() if k not in parameters[: len(args)]}

        def make(config: Config) -> JITKernel:
            own = {k: v for k, v in config.items() if k != PASS_CONFIGS}
            impl = self._last = self.jit_impl.with_pass_configs(config.get(PASS_CONFIGS))
            return impl.compile(*args, **{**named, **own})

        with self._lock:
            found = self._results.get(key)
            if found is None:
                inputs = get_autotune_inputs() or self._tensors(args, named)
                name = self.jit_impl.func.__name__
                found = search(name, make, configs, self.settings, inputs)
                self._results[key] = found
                return found
        if not self.do_not_specialize:
            return found
        kernel = make(found.config)
        kernel.update_tuner_result(found.latency, found.config, found.ref_latency)
        return AutotuneResult(found.config, found.latency, found.ref_latency, kernel, found.trials)

    def _tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """The tensors of an eager call, to tune on; None when it has none."""
        values = (*args, *kwargs.values())
        if not any(hasattr(v, "data_ptr") for v in values):
            return None
        return tuple(self.jit_impl.runtime_arguments(args, kwargs))


def _described(value: Any) -> Any:
    """A tensor by its kind, anything else as it stands in a kernel's key."""
    if hasattr(value, "data_ptr"):
        return (str(value.dtype), tuple(value.shape), tuple(value.stride()), str(value.device))
    return freeze(value)


def autotune(
    func: Any = None,
    *,
    configs: Any,
    warmup: float = 25,
    rep: float = 100,
    timeout: float | None = 100,
    do_not_specialize: Sequence[str] | None = None,
    **settings: Any,
) -> Any:
    """Decorator above `@tilelab.jit`: find the best of `configs` when the function is called.

    `configs`: dicts of arguments, or a function of the call's arguments that returns them; the
    key "pass_configs" of a config goes to the compiler. `do_not_specialize` names arguments whose
    change tunes nothing anew. The other keywords are the fields of `autotuner.settings.Settings`.
    On the simulator the modelled time ranks, and says so. TileTypeError (TL1651) for other
    arguments.
    """
    known = Settings.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise TileTypeError(
                f"autotune has no argument {name!r}", code="TL1651",
                hint="it takes " + ", ".join(known),
            )  # fmt: skip
    made = Settings(warmup=warmup, rep=rep, timeout=timeout, **settings)
    wrap: Callable[[Any], AutoTuneImpl] = functools.partial(
        _decorate, configs, made, do_not_specialize or ()
    )
    return wrap if func is None else wrap(func)


def _decorate(
    configs: Any, settings: Settings, do_not_specialize: Sequence[str], func: Any
) -> AutoTuneImpl:
    if not isinstance(func, JITImpl):
        raise TileTypeError(
            f"@autotune stands above {getattr(func, '__name__', func)!r}, which is not under "
            "@tilelang.jit",
            code="TL1651", hint="write @autotune(...) above @tilelang.jit",
        )  # fmt: skip
    return AutoTuneImpl(func, configs, settings, do_not_specialize)


answer_all(globals(), ("autotune",), "tilelab")
