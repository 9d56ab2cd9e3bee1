"""Times of several implementations of one thing, launch by launch in turn.

Hides the flushing of L2, how many launches are made, and how a ratio with its spread is taken:
from pairs of neighbouring launches, so that a chip that changes its clock slows both. L2 is flushed
for as long as the host needs to make a call: a chip that waits for the host would time the host.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

FLUSH_BYTES = 256 << 20  # written before every launch: more than any L2
FLUSH_MS = 0.05  # no chip writes them faster: 5.4 TB/s
MIN_ROUNDS, MAX_ROUNDS = 15, 200

Spread = tuple[float, float, float]
"""Tenth percentile, median, ninetieth percentile."""


def spread(values: Sequence[float]) -> Spread:
    """The percentiles of a sample of at least two values."""
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return (tenths[0], statistics.median(values), tenths[-1])


def in_turn(calls: Mapping[str, Callable[[int], Any]], seconds: float = 0.5) -> dict[str, Any]:
    """Milliseconds of each call and ratios to the first one.

    `calls`: functions of the launch's number, which choose their inputs by it (rotated inputs).
    Each is launched once a round with L2 flushed before, for about `seconds` of device time in
    all. Gives {"ms": {name: Spread}, "ratio": {name: Spread}, "rounds": n}; a ratio is the other's
    time over that of the first name in the same round: above 1, the first is faster.
    """
    import torch

    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def rounds(count: int, flushes: int) -> tuple[dict[str, list[float]], float]:
        """Milliseconds of every launch, and of the host for the slowest call and its events."""
        events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
        host = 0.0
        for number in range(count):
            for name, call in calls.items():
                begun = time.perf_counter()
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                for _ in range(flushes):
                    flush.zero_()
                pair[0].record()
                call(number)
                pair[1].record()
                events[name].append((pair[0], pair[1]))
                host = max(host, (time.perf_counter() - begun) * 1e3)
        torch.cuda.synchronize()
        return {n: [a.elapsed_time(b) for a, b in pairs] for n, pairs in events.items()}, host

    rounds(2, 1)  # builds, loads and warms up
    short, host = rounds(3, 1)
    once = sum(statistics.median(times) for times in short.values())
    count = min(max(int(seconds * 1e3 / once), MIN_ROUNDS), MAX_ROUNDS)
    times, _ = rounds(count, 1 + math.ceil(host / FLUSH_MS))
    first = next(iter(times.values()))
    ratio = {
        name: spread([t / f for t, f in zip(other, first, strict=True)])
        for name, other in list(times.items())[1:]
    }
    return {"ms": {n: spread(t) for n, t in times.items()}, "ratio": ratio, "rounds": count}
