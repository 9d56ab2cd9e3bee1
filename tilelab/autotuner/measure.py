"""One config's turn: inputs, check against the reference, time.

Hides how a run on the simulator, which counts as check and measurement at once, is told from a
run on the GPU.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tilelab.autotuner.settings import Settings
from tilelab.ir import ScalarParam, TensorParam
from tilelab.profiler import Milliseconds, Profiler
from tilelab.runtime.arguments import Signature
from tilelab.runtime.reports import collect_reports
from tilelab.utils.tensor import KernelParam

_QUICK_RUNS = 3
_OUT_OF_REACH = 1.5
"""A config whose quickest first run takes so many times the best mean is timed no further."""


class TooSlow(Exception):
    """A config took longer than its timeout, or much longer than the best one."""


class Watched:
    """A kernel that notes what the simulator models for its last call."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.modelled: Milliseconds | None = None

    @property
    def signature(self) -> Signature:
        """The kernel's."""
        return self.kernel.signature

    def __call__(self, *args: Any) -> Any:
        with collect_reports() as reports:
            result = self.kernel(*args)
        if reports:
            self.modelled = Milliseconds(sum(r.modelled_ms for r in reports), "modelled")
        return result


class Inputs:
    """Where a tuning run takes its tensors from: `given` ones (copied for every config), else the
    user's supply_prog, else made-up ones."""

    def __init__(self, settings: Settings, given: Sequence[Any] | None) -> None:
        self.settings = settings
        self.given = given
        self._kept: tuple[str, list[Any]] | None = None

    def make(self, kernel: Any) -> list[Any]:
        """Inputs for one kernel."""
        if self.given is not None:
            return [t.clone() if hasattr(t, "clone") else t for t in self.given]
        key = str(kernel.signature)
        if self.settings.cache_input_tensors and self._kept is not None and self._kept[0] == key:
            return self._kept[1]
        made = self._supplied(kernel)
        self._kept = (key, made)
        return made

    def _supplied(self, kernel: Any) -> list[Any]:
        if self.settings.supply_prog is None:
            return Profiler(kernel, self.settings.supply_type).make_inputs()
        signature: Signature = kernel.signature
        params = [_described(signature.params[i]) for i in signature.inputs]
        return list(self.settings.supply_prog(params))


def _described(param: TensorParam | ScalarParam) -> KernelParam:
    if isinstance(param, ScalarParam):
        return KernelParam(param.name, param.dtype, ())
    return KernelParam(param.name, param.buffer.dtype, tuple(param.buffer.shape))


def measure(
    kernel: Any, settings: Settings, inputs: Sequence[Any], best: float | None
) -> Milliseconds:
    """Milliseconds of one call, once its results have been found right.

    AssertionError for wrong results; TooSlow when `settings.early_stop` ends it early.
    """
    watched = Watched(kernel)
    profiler = Profiler(watched, settings.supply_type)
    if settings.checks:
        _check(profiler, settings, inputs)
    if watched.modelled is not None:  # the simulator: another run would tell the same
        return watched.modelled
    timed = _timer(profiler, settings, inputs)
    if best is not None:
        quick = timed(n_warmup=1, n_repeat=_QUICK_RUNS, return_mode="min")
        if settings.early_stop and quick > best * settings.early_stop_factor:
            raise TooSlow(f"stopped early at {quick:.4g} ms, the best is {best:.4g} ms")
        if quick > best * _OUT_OF_REACH:
            return quick
    return timed(warmup=settings.warmup, rep=settings.rep)


def _timer(profiler: Profiler, settings: Settings, inputs: Sequence[Any]) -> Callable[..., Any]:
    def timed(**how: Any) -> Any:
        return profiler.do_bench(input_tensors=inputs, backend=settings.backend, **how)

    return timed


def _check(profiler: Profiler, settings: Settings, inputs: Sequence[Any]) -> None:
    assert settings.ref_prog is not None
    if settings.manual_check_prog is not None:
        profiler.manual_assert_close(settings.ref_prog, inputs, settings.manual_check_prog)
        return
    profiler.assert_allclose(
        settings.ref_prog, inputs, atol=settings.atol, rtol=settings.rtol,
        max_mismatched_ratio=settings.max_mismatched_ratio,
    )  # fmt: skip


def can_limit_time() -> bool:
    """Whether `time_limit` can act: it takes a timer signal, which only the main thread gets."""
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and hasattr(signal, "setitimer")


@contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """Raise TooSlow inside once `seconds` have passed, where `can_limit_time`: again and again, as
    Python drops what is raised in a finalizer or a callback of the garbage collector."""
    if not seconds or not can_limit_time():
        yield
        return

    def ring(*_: object) -> None:
        raise TooSlow(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
