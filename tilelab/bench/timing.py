"""Times of several implementations of one thing, launch by launch in turn.

Hides the flushing of L2, how many launches are made, and how a ratio with its spread is taken:
from pairs of neighbouring launches, so that a chip that changes its clock slows both.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

FLUSH_BYTES = 256 << 20  # written before every launch: more than any L2
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

    def rounds(count: int) -> dict[str, list[float]]:
        events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
        for number in range(count):
            for name, call in calls.items():
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                flush.zero_()
                pair[0].record()
                call(number)
                pair[1].record()
                events[name].append((pair[0], pair[1]))
        torch.cuda.synchronize()
        return {n: [a.elapsed_time(b) for a, b in pairs] for n, pairs in events.items()}

    rounds(2)  # builds, loads and warms up
    once = sum(statistics.median(times) for times in rounds(3).values())
    count = min(max(int(seconds * 1e3 / once), MIN_ROUNDS), MAX_ROUNDS)
    times = rounds(count)
    first = next(iter(times.values()))
    ratio = {
        name: spread([t / f for t, f in zip(other, first, strict=True)])
        for name, other in list(times.items())[1:]
    }
    return {"ms": {n: spread(t) for n, t in times.items()}, "ratio": ratio, "rounds": count}
