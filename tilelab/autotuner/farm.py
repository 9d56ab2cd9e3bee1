"""Kernels of many configs compiled in worker processes: tracing and lowering are Python's own work,
which threads of one process do one after another.

The workers are forked, so that closures need no pickling; they touch no GPU. Hides processes.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from tilelab.autotuner.settings import Config
from tilelab.errors import TileError
from tilelab.runtime.shipping import Shipment

Make = Callable[[Config], Any]
"""A config -> its kernel."""

FEWEST = 8  # configs below which starting processes costs more than it gains


class BuildFailed(Exception):
    """A worker could not build a config; the text says why."""


@dataclass(frozen=True)
class _Problem:
    text: str


_job: tuple[Make, Sequence[Config]] | None = None  # of the farm being started: children inherit it


def can_fork() -> bool:
    """Whether this system starts processes as copies of this one."""
    return "fork" in multiprocessing.get_all_start_methods()


class Farm:
    """Builds every config in `workers` processes, from its making on."""

    def __init__(self, make: Make, configs: Sequence[Config], workers: int) -> None:
        global _job
        self._make = make
        _job = (make, configs)
        context = multiprocessing.get_context("fork")
        self._futures: list[Future[Shipment | _Problem]]
        self._pool = ProcessPoolExecutor(min(workers, len(configs)), mp_context=context)
        with warnings.catch_warnings():
            # Other threads of this process hold no lock that the workers need: they only compile.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._futures = [self._pool.submit(_build, i) for i in range(len(configs))]

    def kernel(self, config: Config, number: int, timeout: float | None) -> Any:
        """The kernel of one config, traced here and compiled there. TileError where it cannot
        be traced, BuildFailed with the reason where it cannot be compiled; TimeoutError when that
        takes longer than `timeout` seconds."""
        kernel = self._make(config)
        result = self._futures[number].result(timeout)
        if isinstance(result, _Problem):
            raise BuildFailed(result.text)
        kernel.receive(result)
        return kernel

    def close(self) -> None:
        """Start no further builds."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _build(number: int) -> Shipment | _Problem:
    """In a worker: the compiled kernel of one config, or why there is none."""
    assert _job is not None
    make, configs = _job
    try:
        return make(configs[number]).ship()
    except TileError as error:
        return _Problem(f"{error.code}: {error.message}")
    except Exception as error:
        return _Problem(f"{type(error).__name__}: {error}")
