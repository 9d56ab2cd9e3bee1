"""Time of a kernel against torch, in the same run on one GPU.

Runs in the runner. Hides interleaving, flushing of L2, and that every timed call has new values at
another address and is checked afterwards.
"""

from __future__ import annotations

import statistics
from typing import Any

from judge.compare import difference, tolerance
from judge.kernels import KernelTask
from judge.memory import Call, Data

FLUSH_BYTES = 256 << 20
SETS = 4
"""Sets of tensors that the timed calls go through in turn."""


def measure(task: KernelTask, kernel: Any, seed: int) -> dict[str, Any]:
    """Median microseconds of kernel and torch, their ratio, and whether every output was right."""
    import torch

    plan = task.performance
    calls = [Call(task, Data(plan.sizes, seed + i), "cuda", shift=3 * i) for i in range(SETS)]
    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    for call in calls:  # loads the code, and packs the parameters for each address
        kernel(*call.tensors)
        plan.baseline(*_inputs(task, call))
    torch.cuda.synchronize()
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(plan.rounds):
        call = calls[number % SETS]
        call.fill(Data(plan.sizes, seed + SETS + number))
        inputs = _inputs(task, call)
        ours.append(_timed(kernel, call.tensors, flush))
        theirs.append(_timed(plan.baseline, inputs, flush))
        if not _right(task, call):
            return {"code": "WRONG_VALUES", "message": "a timed call gave a wrong output"}
    fast, slow = statistics.median(ours), statistics.median(theirs)
    bound = _bound(task)
    result = {"kernel_us": fast, "torch_us": slow, "ratio": slow / fast, "bound_us": bound}
    if fast < bound:
        result |= {"code": "IMPOSSIBLE_TIME", "message": f"{fast:.1f} us is less than the chip "
                   f"needs to move the bytes ({bound:.1f} us)"}  # fmt: skip
    return result


def _inputs(task: KernelTask, call: Call) -> list[Any]:
    return [t for t, s in zip(call.tensors, task.tensors, strict=True) if not s.output]


def _timed(function: Any, tensors: list[Any], flush: Any) -> float:
    import torch

    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    flush.zero_()
    start.record()
    function(*tensors)
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) * 1e3


def _right(task: KernelTask, call: Call) -> bool:
    if call.inputs_changed() or call.fences_broken():
        return False
    reference, magnitude = call.expected()
    sizes = call.data.sizes
    allowed = tolerance(reference, magnitude, task.output.dtype, task.reduction(sizes))
    return difference(call.output, reference, allowed) is None


def _bound(task: KernelTask) -> float:
    """Microseconds below which no kernel can be: bytes at 1.2 times the memory's rated speed.

    L2 holds nothing after the flush, so every input byte comes from memory."""
    import torch

    cuda: Any = torch.cuda  # half typed
    properties = cuda.get_device_properties(0)
    clock = getattr(properties, "memory_clock_rate", 0) * 1e3
    rate = 2 * clock * getattr(properties, "memory_bus_width", 0) / 8
    return 1e6 * task.performance.bytes(task.performance.sizes) / (1.2 * rate) if rate else 0.0
