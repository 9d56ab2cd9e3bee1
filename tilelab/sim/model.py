"""A modelled run time: a roofline over the counters, for timing where there is no GPU.

time = launch + waves * max(tensor cores, shared and ordinary memory traffic, SIMT arithmetic)
Each term is an amount divided by the target's peak; global traffic counts at twice the DRAM
bandwidth, since tiles are shared through the L2 cache. `waves` rounds blocks up to whole rounds
of the chip's SMs. It ranks programs roughly and is labelled as modelled wherever it is shown.
"""

from __future__ import annotations

from tilelab.ir import walk
from tilelab.sim.counters import LaunchFacts, LineCounters
from tilelab.target import DEFAULT_TARGET, TARGETS, Target
from tilelab.thread import Invoke, ThreadKernel
from tilelab.thread.costs import L2_FACTOR, SHARED_BYTES_PER_CYCLE
from tilelab.thread.occupancy import occupancy

LAUNCH_SECONDS = 3e-6
_LANES_PER_CYCLE = 128


def target_of(kernel: ThreadKernel) -> Target:
    """The oldest target with every feature that the kernel's instructions need."""
    needs = {n.intrinsic.needs for n in walk(kernel.body) if isinstance(n, Invoke)} - {None}
    if not needs:
        return DEFAULT_TARGET
    fitting = [t for t in TARGETS.values() if needs <= t.features]
    return min(fitting, key=lambda t: len(t.features)) if fitting else DEFAULT_TARGET


def launch_facts(
    kernel: ThreadKernel, target: Target, grid: tuple[int, ...], registers: int | None
) -> LaunchFacts:
    """The launch, and what of it fits on a multiprocessor. registers: a thread's, if known."""
    shared = kernel.dynamic_bytes + kernel.static_bytes
    fits = occupancy(shared, kernel.num_threads, registers, target.limits)
    return LaunchFacts(
        target.name, grid, kernel.num_threads, shared, registers, fits.blocks, fits.warps,
        fits.max_warps, fits.limiters,
    )  # fmt: skip


def kernel_seconds(target: Target, counters: LineCounters, blocks: int) -> float:
    """Modelled seconds of one launch."""
    limits, amounts = target.limits, counters.amounts
    # A part-filled last round of SMs takes as long as a full one.
    waves = -(-blocks // limits.sms) * limits.sms / max(blocks, 1)
    traffic = sum(
        amounts.get(name, 0)
        for name in ("global_bytes_read", "global_bytes_written", "tma_bytes_read",
                     "tma_bytes_written")
    )  # fmt: skip
    shared = amounts.get("shared_bytes_read", 0) + amounts.get("shared_bytes_written", 0)
    shared *= counters.bank_conflict_degree
    cycles = limits.sms * limits.clock_hz
    busiest = max(
        amounts.get("mma_flops", 0) / limits.tensor_flops_16bit,
        traffic / (L2_FACTOR * limits.dram_bytes_per_second),
        amounts.get("simt_flops", 0) / (_LANES_PER_CYCLE * cycles),
        shared / (SHARED_BYTES_PER_CYCLE * cycles),
    )
    return LAUNCH_SECONDS + waves * busiest
