"""Host time of a call, beside that of a torch operation: hosts differ, and their load does."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import torch

LIMIT_US = 12.0
# On a slow or busy host torch itself takes longer: then a call may take this much of torch.add,
# which allocates and launches once too.
SLOW_HOST = 1.5


def best_us(call: Callable[[], Any], rounds: int = 15, count: int = 200) -> float:
    """The best round's mean host time of a call; the queue is drained between rounds."""
    call()
    times: list[float] = []
    gc.disable()
    try:
        for _ in range(rounds):
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(count):
                call()
            times.append((time.perf_counter() - started) / count * 1e6)
    finally:
        gc.enable()
        torch.cuda.synchronize()
    return min(times)


def check(what: str, call: Callable[[], Any]) -> None:
    """The host time of `call` keeps the limit, and is printed."""
    x = torch.randn(1024, device="cuda")
    theirs, ours = best_us(lambda: torch.add(x, x)), best_us(call)
    print(f"\nhost time of {what}: {ours:.1f} us (torch.add: {theirs:.1f} us)")
    assert ours <= max(LIMIT_US, SLOW_HOST * theirs)
