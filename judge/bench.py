"""Time of a kernel against torch, in the same run on one GPU.

Runs in the runner. Hides interleaving, flushing of L2, that every timed call has new values at
another address and is checked afterwards, and what is done against slow moments of chip and host.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from judge.compare import difference, tolerance
from judge.failure import own
from judge.kernels import KernelTask
from judge.memory import Call, Data

FLUSH_BYTES = 256 << 20
SETS = 4
"""Sets of tensors that the timed calls go through in turn."""
WARM_SECONDS = 1.5
"""Rounds of the first seconds are not counted: a chip that was idle raises its clocks slowly, and a
kernel bound by instructions gains from that where one bound by memory does not."""
MOST_SECONDS, LEAST_ROUNDS = 20.0, 5
"""A kernel that is slower by orders of magnitude is timed a few times, and not until a deadline."""
TRIES = 3
"""Measurements of a kernel that is below its target: noise only makes slower, so the best counts.
A chip or a host may be slow for seconds (measured on an H200: one measurement in twelve)."""
MOST_FLUSHES = 16
"""How often L2 is flushed before a call, at most: while the chip does that, the host gets ahead."""
FLOPS_PER_SM_CYCLE = 4096
"""Of dense 16-bit products: Hopper's tensor cores, the most of any chip that tilelab knows."""
MARGIN = 1.2
"""How much faster than its rated figures a chip is believed to be."""


def measure(task: KernelTask, kernel: Any, seed: int) -> dict[str, Any]:
    """The best of up to TRIES measurements, the first that reaches the target: median microseconds
    of kernel and torch, and the median of the rounds' ratios torch / kernel. A code instead where
    an output was wrong, or a time is below what the chip can do."""
    begun = time.monotonic()
    best: dict[str, Any] = {"ratio": 0.0}
    for number in range(TRIES):
        found = _measured(task, kernel, seed + 1000 * number)
        if "code" in found:
            return found
        best = max(best, found, key=lambda one: one["ratio"])
        enough = best["ratio"] >= task.performance.target
        if enough or time.monotonic() - begun > MOST_SECONDS / 2:
            break
    return best


def _measured(task: KernelTask, kernel: Any, seed: int) -> dict[str, Any]:
    """One measurement. The two take turns, so what the chip's clock does meanwhile falls out of
    each ratio."""
    import torch

    plan = task.performance
    with own("preparing the benchmark"):
        bound = _bound(task)
        calls = [Call(task, Data(plan.sizes, seed + i), "cuda", shift=3 * i) for i in range(SETS)]
        timer = Timer(torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda"))
        plan.baseline(*_inputs(task, calls[0]))
    for call in calls:  # loads the code, and packs the parameters for each address
        kernel(*call.tensors)
    torch.cuda.synchronize()
    begun = time.monotonic()
    number, ours, theirs = 0, list[float](), list[float]()
    while len(ours) < plan.rounds:
        seconds = time.monotonic() - begun
        if seconds < WARM_SECONDS:  # the clocks still rise
            ours, theirs = [], []
        if seconds > MOST_SECONDS and len(ours) >= LEAST_ROUNDS:
            break
        call = calls[number % SETS]
        call.fill(Data(plan.sizes, seed + SETS + number))
        number += 1
        ours.append(timer.microseconds(kernel, call.tensors))
        with own("timing torch, and comparing with the reference"):
            theirs.append(timer.microseconds(plan.baseline, _inputs(task, call)))
            if not _right(task, call):
                return {"code": "WRONG_VALUES", "message": "a timed call gave a wrong output"}
        if timer.host_was_late():
            del ours[-1], theirs[-1]
    ratio = statistics.median(slow / fast for fast, slow in zip(ours, theirs, strict=True))
    fast = statistics.median(ours)
    result = {"kernel_us": fast, "torch_us": statistics.median(theirs), "ratio": ratio,
              "bound_us": bound}  # fmt: skip
    if fast < bound:
        result |= {"code": "IMPOSSIBLE_TIME", "message": f"{fast:.1f} us is less than the chip "
                   f"needs to move the bytes and multiply ({bound:.1f} us)"}  # fmt: skip
    return result


def _inputs(task: KernelTask, call: Call) -> list[Any]:
    return [t for t, s in zip(call.tensors, task.tensors, strict=True) if not s.output]


class Timer:
    """Times calls on the GPU, each after a flush of L2.

    A call is queued while the chip still flushes. Where the host comes too late for that, the chip
    waits for it and the time is the host's: such a round is not counted, and from then on L2 is
    flushed twice as often before each call."""

    def __init__(self, flush: Any) -> None:
        self._flush = flush
        self.flushes = 1
        self._late = False

    def microseconds(self, function: Any, tensors: list[Any]) -> float:
        """Of one call of `function`."""
        import torch

        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(self.flushes):
            self._flush.zero_()
        start.record()
        function(*tensors)
        stop.record()
        self._late |= bool(start.query())  # the chip has come by before all was queued
        torch.cuda.synchronize()
        return start.elapsed_time(stop) * 1e3

    def host_was_late(self) -> bool:
        """Whether a call since the last question was queued too late, and more flushes may help."""
        late, self._late = self._late and self.flushes < MOST_FLUSHES, False
        if late:
            self.flushes *= 2
        return late


def _right(task: KernelTask, call: Call) -> bool:
    if call.inputs_changed() or call.fences_broken():
        return False
    reference, magnitude = call.expected()
    sizes = call.data.sizes
    allowed = tolerance(reference, magnitude, task.output.dtype, task.reduction(sizes))
    return difference(call.output, reference, allowed) is None


def _bound(task: KernelTask) -> float:
    """Microseconds below which no kernel can be: the longer of moving the bytes and of the
    arithmetic, at MARGIN times the chip's rated figures.

    L2 holds nothing after the flush, so every input byte comes from memory."""
    import torch

    cuda: Any = torch.cuda  # half typed
    plan, properties = task.performance, cuda.get_device_properties(0)
    memory = 2e3 * properties.memory_clock_rate * properties.memory_bus_width / 8
    cycles = 1e3 * properties.clock_rate * properties.multi_processor_count
    moving = plan.bytes(plan.sizes) / memory
    return 1e6 * max(moving, plan.flops(plan.sizes) / (cycles * FLOPS_PER_SM_CYCLE)) / MARGIN
