"""What an instruction of each class costs in the modelled timeline, with the source of each
figure. Hides nothing: docs/simulator.md prints this table.

A record names its class (`Intrinsic.cost`) and, for products, its operations (`Intrinsic.flops`).
Cycles are of the multiprocessor's clock. Amounts that move (bytes, flops) cost their share of the
target's peak on top: `rates`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelab.target import Limits
from tilelab.thread.intrinsic import Cost

SCHEDULERS = 4
"""Warp schedulers of a multiprocessor, each issuing one instruction of a warp a cycle (CUDA C++
programming guide, compute capabilities 8.x and 9.0)."""
SHARED_BYTES_PER_CYCLE = 128
"""32 banks of 4 bytes (CUDA C++ programming guide, shared memory)."""
L2_FACTOR = 2.0
"""Global traffic runs at this many times the DRAM's bandwidth: tiles are shared through the L2
cache. A round figure, not a measurement."""

_PUBLISHED = "a round figure; published microbenchmarks of Hopper lie near it"
_GUIDE = "CUDA C++ programming guide, arithmetic instructions"


@dataclass(frozen=True)
class ClassCost:
    """`issue`: cycles of its scheduler that one warp's instruction takes. `latency`: cycles until
    its result is there (a statement waits once for the results of all its iterations)."""

    issue: float
    latency: float
    what: str
    source: str


COSTS: dict[Cost, ClassCost] = {
    "free": ClassCost(0, 0, "no instruction", "by definition"),
    "alu": ClassCost(1, 4, "one arithmetic operation", _GUIDE),
    "special": ClassCost(8, 20, "special functions: 4 lanes a cycle and scheduler",
                         _GUIDE + "; the latency is assumed"),
    "shared": ClassCost(1, 30, "shared memory, ldmatrix, stmatrix, shuffles", _PUBLISHED),
    "global": ClassCost(1, 480, "a load from global memory", _PUBLISHED),
    "atomic": ClassCost(1, 480, "an atomic update: as a load from global memory", "assumed"),
    "async": ClassCost(2, 600, "cp.async and TMA: until the bytes are in shared memory", "assumed: "
                       "a load's latency and about 120 cycles of the copy engine"),
    "mma": ClassCost(1, 0, "mma.sync: its operations at the tensor cores' peak", "data sheet"),
    "wgmma": ClassCost(1, 0, "wgmma: its operations at the tensor cores' peak, beside the warps",
                       "data sheet"),
    "sync": ClassCost(1, 20, "barriers, arrivals and fences", "assumed"),
    "wait": ClassCost(1, 20, "a wait whose condition holds already", "assumed"),
}  # fmt: skip
"""Instruction class -> its cost."""


@dataclass(frozen=True)
class Rates:
    """Peaks of one multiprocessor a cycle: 16-bit tensor flops, bytes of global memory."""

    tensor_flops: float
    global_bytes: float
    clock_hz: float

    def product_cycles(self, m: float, n: float, k: float, bits: int) -> float:
        """Cycles of an m x n x k product of operands of `bits` bits at the tensor cores' peak."""
        return 2 * m * n * k / (self.tensor_flops * 16 / bits)


def rates(limits: Limits) -> Rates:
    """The peaks of one multiprocessor of a chip, from its data sheet."""
    cycles = limits.sms * limits.clock_hz
    return Rates(
        limits.tensor_flops_16bit / cycles,
        L2_FACTOR * limits.dram_bytes_per_second / cycles,
        limits.clock_hz,
    )
