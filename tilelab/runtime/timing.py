"""Time a callable in milliseconds: CUDA events on a GPU, the model's time on the simulator.

Hides warm-up, the number of repeats and flushing the L2 cache.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilelab.errors import TileValueError, shown
from tilelab.kinds import admits
from tilelab.runtime.reports import collect_reports

_MODES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max,
}  # fmt: skip
_BACKENDS = ("event", "cupti", "cudagraph")


class Milliseconds(float):
    """A time that says where it comes from: "measured", "modelled" (by the simulator) or
    "cpu" (wall clock of code that ran on the CPU)."""

    source: str = "measured"

    def __new__(cls, value: float, source: str = "measured") -> Milliseconds:
        made = super().__new__(cls, value)
        made.source = source
        return made

    def __repr__(self) -> str:
        text = float.__repr__(self)
        return text if self.source == "measured" else f"{text} ({self.source})"


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: str = "event",
    return_mode: str = "mean",
    device: Any = None,
    cache_size: int = 256,
    early_stop_baseline: float | None = None,
) -> Any:
    """Milliseconds of one call of `fn`: for about `warmup` ms calls unmeasured, for about `rep` ms
    measured, with `cache_size` MB written before each so that L2 holds nothing of the last.

    A list when `quantiles` are asked for. Backend "cudagraph" replays `fn` as a graph (no host
    time); "cupti" is taken as "event". When `fn` runs on the simulator it runs once, and the
    result is the model's time, whose `source` is "modelled".
    """
    del fast_flush, early_stop_baseline  # accepted for TileLang's sake; they change no result
    if return_mode not in _MODES or backend not in _BACKENDS:
        raise TileValueError(
            f"do_bench has no return_mode {return_mode!r} or no backend {backend!r}",
            code="TL1645",
            hint=f"return_mode is one of {', '.join(_MODES)}; backend of {', '.join(_BACKENDS)}",
        )
    _check_amounts(warmup=warmup, rep=rep, n_warmup=_n_warmup, n_repeat=_n_repeat)
    for q in quantiles or ():
        _check_amounts(quantile=q)
        if q > 1:
            raise _no_amount("quantile", q, "0 to 1")
    with collect_reports() as reports:
        started = time.perf_counter()
        fn()
        seconds = time.perf_counter() - started
    if reports:
        once = Milliseconds(sum(r.modelled_ms for r in reports), "modelled")
        return [once for _ in quantiles] if quantiles else once
    if not has_cuda():
        times = _wall_clock(fn, seconds * 1e3, rep)
        return _summary(times, quantiles, return_mode, "cpu")
    import torch

    with torch.cuda.device(device):
        timed = _graphed(fn) if backend == "cudagraph" else fn
        times = _events(timed, warmup, rep, _n_warmup, _n_repeat, cache_size)
    return _summary(times, quantiles, return_mode, "measured")


def _check_amounts(**given: Any) -> None:
    for name, value in given.items():
        if not admits(float, value) or not 0 <= value < float("inf"):
            raise _no_amount(name, value, "0 and more")


def _no_amount(name: str, value: Any, allowed: str) -> TileValueError:
    return TileValueError(
        f"do_bench has got {name}={shown(value)}", code="TL1645",
        hint=f"give a number from {allowed}: warmup and rep are milliseconds",
    )  # fmt: skip


def has_cuda() -> bool:
    """Whether torch sees a GPU."""
    import torch

    return torch.cuda.is_available()


def _summary(
    times: Sequence[float], quantiles: Sequence[float] | None, mode: str, source: str
) -> Any:
    if not quantiles:
        return Milliseconds(_MODES[mode](times), source)
    ordered = sorted(times)
    last = len(ordered) - 1
    found: list[Milliseconds] = []
    for q in quantiles:
        low = int(q * last)
        high = min(low + 1, last)
        value = ordered[low] + (ordered[high] - ordered[low]) * (q * last - low)
        found.append(Milliseconds(value, source))
    return found


def _wall_clock(fn: Callable[[], Any], first: float, rep: float) -> list[float]:
    times: list[float] = []
    while not times or (sum(times) < rep and first < rep):
        started = time.perf_counter()
        fn()
        times.append((time.perf_counter() - started) * 1e3)
    return times


def _events(
    fn: Callable[[], Any], warmup: float, rep: float, n_warmup: int, n_repeat: int, cache_mb: int
) -> list[float]:
    import torch

    # Flushing writes through all of L2, so the timed call starts from device memory.
    flush = torch.empty(max(cache_mb, 1) << 18, dtype=torch.int32, device="cuda")

    def timed(count: int) -> list[float]:
        pairs = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(count)
        ]
        for start, stop in pairs:
            flush.zero_()
            start.record()
            fn()
            stop.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(stop) for start, stop in pairs]

    timed(1)
    started = time.perf_counter()
    timed(5)  # with its flush: `warmup` and `rep` are what the user waits for
    estimate = max((time.perf_counter() - started) * 1e3 / 5, 1e-3)
    for _ in range(n_warmup or max(int(warmup / estimate), 1)):
        fn()
    return timed(n_repeat or max(min(int(rep / estimate), 10_000), 1))


def _graphed(fn: Callable[[], Any]) -> Callable[[], Any]:
    """`fn` captured into a CUDA graph; calling the result replays it."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        fn()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fn()
    return graph.replay
