"""The time that a simulated call would take on its target at best: a roofline over its counters.

The simulator counts work and knows no chip; this puts the target's rates to it. It is a bound and
says "modelled" wherever it is shown: instruction latency, L2 and shared memory are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil, prod
from typing import Any

from tilelab.sim import KernelCounters, SimReport
from tilelab.target import Limits

LAUNCH_MS = 2e-3  # from one kernel's start to the next one's: about two microseconds


@dataclass(frozen=True)
class TimedReport(SimReport):
    """A simulation's report with the time that the model gives it."""

    modelled_ms: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**super().to_dict(), "modelled_ms": self.modelled_ms}


def timed(
    report: SimReport, grids: Sequence[Sequence[int]], tensor_bytes: int, limits: Limits
) -> TimedReport:
    """The report with its modelled time. `grids` are the blocks of its kernels; `tensor_bytes`
    those of the call's tensors."""
    pairs = zip(report.counters, grids, strict=True)
    total = sum(kernel_ms(c, prod(grid), tensor_bytes, limits) for c, grid in pairs)
    facts = {f.name: getattr(report, f.name) for f in fields(SimReport)}
    return TimedReport(**facts, modelled_ms=total)


def kernel_ms(counters: KernelCounters, blocks: int, tensor_bytes: int, limits: Limits) -> float:
    """The longer of moving the bytes and doing the matrix work, and the launch.

    Bytes read again come from L2 and are taken as free: at most `tensor_bytes` come from memory.
    Matrix work runs on as many SMs as there are blocks, in whole waves.
    """
    if not blocks:
        return 0.0
    line = counters.total()
    moved = min(_traffic(line.amounts, line.sector_ratio), tensor_bytes)
    waves = ceil(blocks / limits.sms) * limits.sms / blocks
    memory = moved / limits.dram_bytes_per_second
    matrix = line.amounts.get("mma_flops", 0.0) / limits.tensor_flops_16bit * waves
    return max(memory, matrix) * 1e3 + LAUNCH_MS


def _traffic(amounts: Mapping[str, float], sector_ratio: float) -> float:
    """Bytes between the SMs and memory, in whole sectors."""
    plain = sum(v for name, v in amounts.items() if name.startswith("global_bytes_"))
    bulk = sum(v for name, v in amounts.items() if name.startswith("tma_bytes_"))
    return plain * sector_ratio + bulk
