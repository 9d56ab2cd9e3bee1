"""Facts about one compiled kernel: what its code is made of, and whether its result is right.

Hides how instructions are counted, and the difference between a GPU and the simulator.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tilelab.ir import Scope, walk
from tilelab.kernel import JITKernel
from tilelab.profiler import do_bench
from tilelab.runtime import driver
from tilelab.target import Target
from tilelab.thread.nodes import Invoke
from tilelab.views import source_view

TOLERANCE = 2e-3  # of the norm; half-precision results of float32 sums reach about 2e-4
SIZES = {"cuda": 4096, "cpu": 256}  # where the check runs -> size of its matrices

COUNTED = {
    "TMA loads": ("tma_load",),
    "cp.async copies": ("cp_async_1", "cp_async_4", "cp_async_8", "cp_async_zfill"),
    "ldmatrix": ("ldmatrix",),
    "wgmma": ("wgmma_ss", "wgmma_rs"),
    "mma.sync": ("mma_sync", "mma_m"),
}
"""Row of the table -> how the names of its instructions begin."""


@dataclass(frozen=True)
class Facts:
    """What the compiler made of the kernel. `instructions` counts them as they stand in the
    text, loops not unrolled."""

    cuda_lines: int
    python_lines: int
    instructions: dict[str, int]
    mbarriers: int
    dynamic_bytes: int
    registers: int | None
    spill_bytes: int | None
    threads: int


@dataclass(frozen=True)
class Outcome:
    """One checked run. `milliseconds` is the GPU's time of one call; on the simulator it is None,
    and `seconds` says how long simulating the call took."""

    size: int
    error: float
    milliseconds: float | None
    where: str
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the result agrees with torch."""
        return self.error <= TOLERANCE

    def time_text(self) -> str:
        """The kernel's time and where it is from."""
        if self.milliseconds is None:
            return f"{self.seconds:.1f} s to simulate"
        tera = 2 * self.size**3 / self.milliseconds / 1e9
        return f"{self.milliseconds:.3f} ms ({tera:.0f} TFLOP/s)"


def facts(kernel: JITKernel) -> Facts:
    """Counts and resources of a kernel with one `__global__` function."""
    part = kernel.program.kernels[0]
    names = Counter(n.intrinsic.name for n in walk(part.body) if isinstance(n, Invoke))
    span = kernel.source.kernels[0]
    used = kernel.resources.get(span.name)
    return Facts(
        cuda_lines=span.last - span.first + 1,
        python_lines=len(source_view(kernel.source, kernel.prim_func.loc).python),
        instructions={
            row: sum(c for name, c in names.items() if name.startswith(starts))
            for row, starts in COUNTED.items()
        },
        mbarriers=sum(s.num_bytes // 8 for s in part.shared if s.buffer.scope is Scope.BARRIER),
        dynamic_bytes=part.dynamic_bytes,
        registers=used.registers if used else None,
        spill_bytes=used.spill_stores if used else None,
        threads=part.num_threads,
    )


def place(target: Target) -> str:
    """Where kernels of `target` can run here: "cuda" on a GPU that has all its features, else
    "cpu", the simulator."""
    if driver.find() is None:
        return "cpu"
    import torch

    able = target.features <= driver.device_info().target.features
    return "cuda" if able and torch.cuda.is_available() else "cpu"


def operands(size: int, on: str) -> tuple[Any, Any, Any]:
    """Two random matrices on the GPU or the CPU, and their product in float32."""
    import torch

    made = torch.Generator().manual_seed(7)
    a, b = (torch.randn(size, size, generator=made).half().to(on) for _ in range(2))
    return a, b, a.float() @ b.float()


def check(kernel: JITKernel, size: int, on: str) -> Outcome:
    """Run the kernel on random matrices, compare with torch, and take its time."""
    import torch

    a, b, expected = operands(size, on)
    started = time.perf_counter()
    found = kernel(a, b).float()
    seconds = time.perf_counter() - started
    error = float((found - expected).norm() / expected.norm())
    if on == "cpu":
        return Outcome(size, error, None, "simulator", seconds)
    measured = float(do_bench(lambda: kernel(a, b)))
    return Outcome(size, error, measured, torch.cuda.get_device_name(a.device), seconds)
