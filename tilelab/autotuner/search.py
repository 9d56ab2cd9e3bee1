"""Try every config and keep the best: builds side by side, measurements one after another.

Hides processes, threads, timeouts, and what is said while it goes on.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tilelab.autotuner.farm import FEWEST, BuildFailed, Farm, Make, can_fork
from tilelab.autotuner.measure import Inputs, TooSlow, can_limit_time, measure, time_limit
from tilelab.autotuner.settings import Config, Settings, config_text
from tilelab.errors import TileError, TileRuntimeError
from tilelab.logs import Progress, notice
from tilelab.profiler import Milliseconds, do_bench
from tilelab.runtime import driver

_MOST_SHOWN = 8


@dataclass(frozen=True)
class Trial:
    """What became of one config: its time, or why it is out."""

    config: Config
    latency: Milliseconds | None
    problem: str = ""

    def __str__(self) -> str:
        result = self.problem if self.latency is None else f"{_ms(self.latency)}"
        return f"{config_text(self.config)}: {result}"


@dataclass(frozen=True)
class AutotuneResult:
    """The best config and its kernel; times in milliseconds (`latency.source` says whether they
    were measured or modelled), and every trial in the order of the configs."""

    config: Config
    latency: Milliseconds | None
    ref_latency: Milliseconds | None
    kernel: Any
    trials: tuple[Trial, ...] = ()

    @property
    def func(self) -> Any:
        """The traced program of the kernel."""
        return self.kernel.prim_func

    @property
    def libcode(self) -> str:
        """The kernel's CUDA text."""
        return self.kernel.get_kernel_source()

    def __str__(self) -> str:
        ranked = sorted(self.trials, key=lambda t: (t.latency is None, t.latency or 0.0))
        return "\n".join(map(str, ranked))


def search(
    name: str, make: Make, configs: Sequence[Config], settings: Settings,
    given: Sequence[Any] | None = None,
) -> AutotuneResult:  # fmt: skip
    """Build, check and time the kernel of every config; the fastest right one wins.

    `given` are inputs of the user. Configs that fail are reported and skipped; TileRuntimeError
    (TL1652) when none is left, with the reasons.
    """
    inputs = Inputs(settings, given)
    trials: list[Trial] = []
    best: tuple[Milliseconds, Any, Config] | None = None
    if settings.timeout and not can_limit_time():
        notice("autotune", "timeouts need Python's main thread; configs may take any time here")
    with _built(make, configs, settings) as futures, Progress(f"autotune {name}") as progress:
        if driver.find() is not None:
            _settle(futures, settings, progress)
        for number, (config, future) in enumerate(zip(configs, futures, strict=True), 1):
            known = None if best is None else best[0]
            trial, kernel = _try(config, future, settings, inputs, known)
            trials.append(trial)
            if trial.latency is None:
                progress.line(f"{number}/{len(configs)} skipped: {trial}")
            elif best is None or trial.latency < best[0]:
                best = (trial.latency, kernel, config)
            leader = f", best {_ms(best[0])} ({config_text(best[2])})" if best else ""
            progress.update(f"{number}/{len(configs)}{leader}")
    if best is None:
        raise _none_left(name, trials)
    latency, kernel, config = best
    reference = _time_reference(kernel, settings, inputs)
    kernel.update_tuner_result(latency, dict(config), reference)
    return AutotuneResult(dict(config), latency, reference, kernel, tuple(trials))


@contextmanager
def _built(
    make: Make, configs: Sequence[Config], settings: Settings
) -> Generator[list[Future[Any]]]:
    """Futures of the kernels. Where there is a GPU, many configs are built by processes and a few
    by threads, of which NVRTC keeps several busy; else building is Python's own work, and one
    thread does it."""
    has_gpu = driver.find() is not None
    workers = _workers() if has_gpu else 1
    farm: Farm | None = None
    if has_gpu and workers > 1 and len(configs) >= FEWEST and can_fork():
        driver.device_info()  # known before the workers start: they touch no GPU
        farm, workers = Farm(make, configs, workers), 1

    def build(number: int, config: Config) -> Any:
        if farm is not None:
            return farm.kernel(config, number, settings.timeout)
        kernel = make(config)
        _ = kernel.cubin if has_gpu else kernel.program
        return kernel

    pool = ThreadPoolExecutor(workers, "tilelab-autotune")
    try:
        yield [pool.submit(build, i, config) for i, config in enumerate(configs)]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if farm is not None:
            farm.close()


def _settle(futures: Sequence[Future[Any]], settings: Settings, progress: Progress) -> None:
    """Wait for all builds: threads that compile would delay the launches that are timed."""
    for number, future in enumerate(futures, 1):
        wait([future], settings.timeout or None)
        progress.update(f"built {number}/{len(futures)}")


def _workers() -> int:
    """TILELANG_AUTO_TUNING_CPU_COUNTS, else a share of the cores (0.9, or
    TILELANG_AUTO_TUNING_CPU_UTILITIES), at most TILELANG_AUTO_TUNING_MAX_CPU_COUNT."""
    cores = os.cpu_count() or 1
    share = float(os.environ.get("TILELANG_AUTO_TUNING_CPU_UTILITIES", "0.9"))
    count = int(os.environ.get("TILELANG_AUTO_TUNING_CPU_COUNTS", "-1"))
    most = int(os.environ.get("TILELANG_AUTO_TUNING_MAX_CPU_COUNT", "-1"))
    wanted = count if count > 0 else int(cores * share)
    return max(min(wanted, most) if most > 0 else wanted, 1)


def _try(
    config: Config, future: Future[Any], settings: Settings, inputs: Inputs,
    best: Milliseconds | None,
) -> tuple[Trial, Any]:  # fmt: skip
    """A config's trial, and its kernel. Whatever goes wrong with it is the trial's problem."""
    try:
        # On a GPU the builds were waited for: what is not done now is late.
        kernel = future.result(settings.timeout or None if driver.find() is None else 0)
        with time_limit(settings.timeout):
            return Trial(config, measure(kernel, settings, inputs.make(kernel), best)), kernel
    except TileError as error:
        return Trial(config, None, f"{error.code}: {error.message}"), None
    except (TooSlow, BuildFailed, AssertionError) as error:
        return Trial(config, None, str(error)), None
    except TimeoutError:
        return Trial(config, None, f"took longer than {settings.timeout or 0:g} s"), None
    except Exception as error:
        return Trial(config, None, f"{type(error).__name__}: {error}"), None


def _time_reference(kernel: Any, settings: Settings, inputs: Inputs) -> Milliseconds | None:
    """The reference's time on inputs of the best kernel; None where it is not to run."""
    if settings.ref_prog is None:
        return None
    reference, tensors = settings.ref_prog, inputs.make(kernel)
    return do_bench(
        lambda: reference(*tensors), settings.warmup, settings.rep, backend=settings.backend
    )


def _none_left(name: str, trials: Sequence[Trial]) -> TileRuntimeError:
    problems = Counter(t.problem for t in trials).most_common(_MOST_SHOWN)
    return TileRuntimeError(
        f"autotune {name}: none of {len(trials)} configs gave a right result in time",
        code="TL1652",
        notes=[f"{count} x {problem}" for problem, count in problems],
        hint="try one config by hand to see its error in full, or raise timeout=",
    )


def _ms(latency: Milliseconds) -> str:
    label = "" if latency.source == "measured" else f" ({latency.source})"
    return f"{float(latency):.4g} ms{label}"


def pinned(configs: Sequence[Config], fixed: Config) -> list[Config]:
    """The configs with some arguments fixed by the caller, each once."""
    found: list[Config] = []
    for config in configs:
        changed = {**config, **fixed}
        if changed not in found:
            found.append(changed)
    return found


def with_settings(settings: Settings, **changes: Any) -> Settings:
    """Settings with those changes that are not None."""
    return replace(settings, **{k: v for k, v in changes.items() if v is not None})
