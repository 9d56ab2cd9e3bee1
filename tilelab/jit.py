"""@tilelab.jit and tilelab.compile: from a decorated function to a kernel, made once for each
combination of compile-time arguments.

Hides the two styles (a factory that returns a T.prim_func, or a function that is itself the
kernel), how the style is found, and the caches.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from tilelab.call_forms import Binder, Call, freeze
from tilelab.calls import answers, caller_frame
from tilelab.errors import TileError, TileValueError, shown
from tilelab.frontend import (
    Captured,
    EagerFunction,
    EagerSignature,
    PrimFunc,
    const_value,
    plain_function,
    style_of,
)
from tilelab.ir import Function
from tilelab.jit_errors import as_config, no_numbers, no_prim_func, no_program, undeclared
from tilelab.kernel import JITKernel
from tilelab.language import Kernel, const, prim_func
from tilelab.logs import notice
from tilelab.pass_config import normalise

_NO_BUILDER = "TL1401"


@dataclass(frozen=True)
class Options:
    """What is compiled with: the keywords of jit and compile."""

    out_idx: int | Sequence[int] | None = None
    target: Any = None
    pass_configs: Mapping[Any, Any] | None = None
    compile_flags: Sequence[str] | str | None = None
    verbose: bool | None = None

    def kernel(self, function: Function) -> JITKernel:
        """The kernel of a traced function."""
        return JITKernel(
            function,
            out_idx=self.out_idx,
            target=self.target,
            pass_configs=normalise(self.pass_configs),
            compile_flags=self.compile_flags or (),
            verbose=bool(self.verbose),
        )

    def plus(self, pass_configs: Mapping[Any, Any] | None) -> Options:
        """The same with more pass_configs, which win over those that are there."""
        if not pass_configs:
            return self
        return replace(self, pass_configs={**(self.pass_configs or {}), **pass_configs})


@answers("compile", inside=False, kinds=True)
def compile(
    func: Any,
    out_idx: int | Sequence[int] | None = None,
    execution_backend: str | None = None,
    target: Any = None,
    target_host: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: Sequence[str] | str | None = None,
) -> JITKernel:
    """Compile a T.prim_func: `kernel = tilelab.compile(main, out_idx=[2], target="sm_90a")`.

    `out_idx` names the parameters that a call allocates and returns. Without a target it is the
    GPU's, or Hopper's; the device of a call's tensors decides where it runs. Mistakes of the
    program raise here.
    """
    check_backend(execution_backend, target_host)
    options = Options(out_idx, target, pass_configs, compile_flags, verbose)
    return options.kernel(_traced(func)).checked()


@answers("par_compile", inside=False, kinds=True)
def par_compile(
    funcs: Iterable[Any],
    out_idx: int | Sequence[int] | None = None,
    *,
    num_workers: int | None = None,
    ignore_error: bool = False,
    **options: Any,
) -> list[Any]:
    """Compile several functions, in threads; with `ignore_error` a failed one gives None."""
    jobs = [functools.partial(compile, f, out_idx, **options) for f in funcs]
    return _in_threads(jobs, num_workers, ignore_error)


def _traced(func: Any) -> Function:
    if isinstance(func, PrimFunc):
        return func.function
    if isinstance(func, Function):  # kernel.prim_func, to be compiled in another way
        return func
    raise no_prim_func(func, jitted=isinstance(func, JITImpl))


def check_backend(execution_backend: str | None, target_host: Any) -> None:
    """TileValueError (TL1494) for back ends of the peer that cannot be honoured; the ways to launch
    CUDA are all one here."""
    known = ("auto", "tvm_ffi", "cython", "nvrtc", "ctypes", "dlpack")
    if execution_backend is not None and str(execution_backend) not in known:
        raise TileValueError(
            f"execution_backend={shown(execution_backend)} does not exist here", code="TL1494",
            hint="leave it out: kernels run through the CUDA driver or the simulator",
        )  # fmt: skip
    if target_host is not None and str(target_host) not in ("auto", "c", "llvm"):
        raise TileValueError(
            f"target_host={shown(target_host)} does not exist here",
            code="TL1494",
            hint="leave it out",
        )


def _in_threads(
    jobs: Sequence[Callable[[], Any]], workers: int | None, ignore_error: bool
) -> list[Any]:
    if workers is not None and not (type(workers) is int and workers > 0):
        raise TileValueError(
            f"num_workers={shown(workers)} is no number of threads", code="TL1643",
            hint="give a positive int, or leave it out",
        )  # fmt: skip

    def run(job: Callable[[], Any]) -> Any:
        try:
            return job()
        except Exception:
            if ignore_error:
                return None
            raise

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run, jobs))


class JITImpl:
    """What @jit leaves in place of a function.

    Lazy: a call returns the JITKernel. Eager: a call compiles if needed, runs, and returns the
    outputs. `mode` is "auto" until the first use decides.
    """

    def __init__(self, func: Any, options: Options, outer: Mapping[str, Any]) -> None:
        self.func = plain_function(func, "@tilelang.jit")
        self.options = options
        self.signature = inspect.signature(self.func)
        self.mode = "auto"
        self._outer = dict(outer)
        self._binder = Binder(self.signature, name=self.func.__name__)
        self._captured = Captured(self.func)
        self._learnt: dict[Hashable, EagerSignature] = {}
        self._kernels: dict[Hashable, JITKernel] = {}
        self._calls: dict[Hashable, JITKernel] = {}
        self._variants: dict[Hashable, JITImpl] = {}
        functools.update_wrapper(self, self.func)

    @property
    def out_idx(self) -> Any:
        """The out_idx given to jit."""
        return self.options.out_idx

    # ---- public -----------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = self.mode if self.mode != "auto" else self._find_mode(args, kwargs)
        if mode == "lazy":
            return self._lazy_kernel(args, kwargs).checked()
        call = self._eager_binder.sort(args, kwargs)
        return self._eager_kernel(call)(*call.runtime.values())

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel for these arguments; sizes of an eager function may be keywords."""
        mode = self.mode if self.mode != "auto" else self._find_mode(args, kwargs)
        if mode == "lazy":
            return self._lazy_kernel(args, kwargs)
        return self._eager_kernel(self._eager_binder.sort(args, kwargs))

    def get_kernel_source(self, *args: Any, **kwargs: Any) -> str:
        """The CUDA text for these arguments."""
        return self.compile(*args, **kwargs).get_kernel_source()

    def get_tir(self, *args: Any, **kwargs: Any) -> PrimFunc:
        """The traced program for these arguments."""
        mode = self.mode if self.mode != "auto" else self._find_mode(args, kwargs)
        if mode == "lazy":
            return self._lazy_program(args, kwargs)
        call = self._eager_binder.sort(args, kwargs)
        consts = self._consts(call, self._learn(call, self._static_key(call)))
        return PrimFunc(self._trace(call, consts), self.func)

    @answers("par_compile", inside=False, kinds=True)
    def par_compile(
        self, configs: Iterable[Any], num_workers: int | None = None, ignore_error: bool = False
    ) -> list[Any]:
        """Kernels for several argument lists: dicts of keywords, or tuples."""

        def made(config: Any) -> JITKernel:
            named = isinstance(config, dict)
            return (self.compile(**config) if named else self.compile(*config)).checked()

        jobs = [functools.partial(made, c) for c in map(as_config, configs)]
        return _in_threads(jobs, num_workers, ignore_error)

    @answers("with_pass_configs", inside=False, kinds=True)
    def with_pass_configs(self, pass_configs: Mapping[Any, Any] | None) -> JITImpl:
        """The same function compiled with more pass_configs; kept, so that kernels are shared."""
        if not pass_configs:
            return self
        key = freeze(dict(pass_configs))
        if key not in self._variants:
            made = JITImpl(self.func, self.options.plus(pass_configs), self._outer)
            self._variants[key] = made
        return self._variants[key]

    def runtime_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """What the kernel of an eager call is called with; other arguments may be missing."""
        known = self.signature.parameters
        own = {k: v for k, v in kwargs.items() if k in known}
        bound = self.signature.bind_partial(*args, **own)
        bound.apply_defaults()
        return [v for name, v in bound.arguments.items() if name in self.eager.runtime]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<jit {self.func.__qualname__} ({self.mode})>"

    # ---- style ------------------------------------------------------------------------------

    def _find_mode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """ "lazy" or "eager": from the text, else from what the function does when called."""
        mode = style_of(self.func, prim_func, (const, Kernel))
        if not mode:
            mode = self._mode_by_calling(args, kwargs)
        if mode == "eager" and self.options.out_idx is not None:
            raise TileValueError(
                "out_idx is only supported in lazy mode",
                code="TL1496",
                hint=f"{self.func.__name__} is eager: create outputs with T.empty and return them",
            )
        self.mode = mode
        return mode

    def _mode_by_calling(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        try:
            made = self._call_factory(args, kwargs)
        except TileError as error:
            if error.code == _NO_BUILDER:
                return "eager"
            raise
        if isinstance(made, PrimFunc):
            return "lazy"
        raise no_program(self.func.__name__, made)

    # ---- lazy -------------------------------------------------------------------------------

    def _call_factory(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        known = self.signature.parameters
        anything = any(p.kind is p.VAR_KEYWORD for p in known.values())
        own = kwargs if anything else {k: v for k, v in kwargs.items() if k in known}
        self._binder.check(args, own, {k: v for k, v in kwargs.items() if k not in own})
        try:
            return self.func(*args, **own)
        except Exception as error:
            given = self.signature.bind_partial(*args, **own).arguments
            wrong = no_numbers(self.func.__name__, given, error)
            if wrong is None or getattr(error, "code", "") == _NO_BUILDER:
                raise
            raise wrong from error

    def _lazy_program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PrimFunc:
        made = self._call_factory(args, kwargs)
        if not isinstance(made, PrimFunc):
            raise no_program(self.func.__name__, made)
        return made

    def _lazy_kernel(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JITKernel:
        around = self._captured.key()
        form = _call_form(args, kwargs, around)
        if form is not None and form in self._calls:
            return self._calls[form]
        call = self._binder.sort(args, kwargs)
        key = (call.key(), call.extra_key(), around)
        kernel = self._kernels.get(key)
        if kernel is None:
            self._binder.check_extra(call.extra)
            program = self._lazy_program(args, kwargs)
            kernel = self._kernels[key] = self.options.kernel(program.function)
        if form is not None:
            self._calls[form] = kernel
        return kernel

    # ---- eager ------------------------------------------------------------------------------

    @functools.cached_property
    def eager(self) -> EagerFunction:
        """The function, classified into runtime and compile-time parameters."""
        return EagerFunction(self.func, self._outer)

    @functools.cached_property
    def _eager_binder(self) -> Binder:
        return Binder(self.signature, self.eager.runtime, self.func.__name__)

    def _static_key(self, call: Call) -> Hashable:
        """Compile-time arguments, and what the function reads from around itself."""
        return (call.key(), self._captured.key())

    def _learn(self, call: Call, key: Hashable) -> EagerSignature:
        learnt = self._learnt.get(key)
        if learnt is None:
            undeclared(self.func.__name__, call.static)
            learnt = self._learnt[key] = self.eager.learn(call.static)
        return learnt

    def _consts(self, call: Call, learnt: EagerSignature) -> dict[str, int]:
        return {m.name: const_value(m, call.runtime, call.extra) for m in learnt.matches}

    def _trace(self, call: Call, consts: Mapping[str, int]) -> Function:
        return self.eager.trace(call.static, consts)

    def _eager_kernel(self, call: Call) -> JITKernel:
        static = self._static_key(call)
        learnt = self._learn(call, static)
        consts = self._consts(call, learnt)
        key = (static, call.extra_key(learnt.names), tuple(consts.values()))
        kernel = self._kernels.get(key)
        if kernel is None:
            self._eager_binder.check_extra(call.extra, learnt.names)
            kernel = self._kernels[key] = self.options.kernel(self._trace(call, consts))
        return kernel


def _call_form(args: tuple[Any, ...], kwargs: dict[str, Any], around: Hashable) -> Hashable | None:
    """The call as written, as a key; None when an argument cannot be hashed."""
    types = tuple(map(type, args)), tuple(map(type, kwargs.values()))
    form = (args, tuple(kwargs.items()), types, around)
    try:
        hash(form)
    except TypeError:
        return None
    return form


@answers("jit", inside=False, kinds=True)
def jit(
    func: Any = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    target: Any = None,
    target_host: Any = None,
    execution_backend: str | None = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    debug_root_path: Any = None,
    compile_flags: Sequence[str] | str | None = None,
) -> Any:
    """Decorator, bare or with keywords, for a kernel factory (lazy) or a kernel (eager).

    Lazy: `kernel = matmul(1024, 1024, 1024)` compiles; `c = kernel(a, b)` runs. Eager:
    `c = gemm(a, b)` does both. See T.const and T.empty for the eager style.
    """
    check_backend(execution_backend, target_host)
    if debug_root_path is not None:
        notice("jit", "debug_root_path has no effect; see kernel.export_sources and kernel.trace")
    options = Options(out_idx, target, pass_configs, compile_flags, verbose)
    if func is None:
        return functools.partial(_decorate, options)
    return JITImpl(func, options, caller_frame().f_locals)


def _decorate(options: Options, func: Any) -> JITImpl:
    return JITImpl(func, options, caller_frame().f_locals)
