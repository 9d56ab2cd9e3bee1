"""An NVIDIA chip for the makers of hints: the limits of a target by carver's names."""

from __future__ import annotations

from typing import Any

from tilelab.runtime import driver
from tilelab.target import DEFAULT_TARGET, Target, parse_target


class CUDA:
    """The limits of a target; `CUDA("cuda")` is this machine's GPU, or the default target.

    `reg_cap` registers and `max_smem_usage` bytes of a multiprocessor, `smem_cap` bytes a block
    may have, `compute_max_core` multiprocessors, `bandwidth` in GB/s of device memory.
    """

    platform = "CUDA"
    warp_size = 32
    sm_partition = 4

    def __init__(self, target: Any = "cuda") -> None:
        found = parse_target(target)
        if found is None and driver.find() is not None:
            found = driver.device_info().target
        self.target: Target = found or DEFAULT_TARGET
        limits = self.target.limits
        self.name = self.target.name
        self.compute_capability = "{}{}".format(*self.target.capability)
        self.sm_version = int(self.compute_capability)
        self.compute_max_core = limits.sms
        self.reg_cap = limits.registers_per_sm
        self.smem_cap = limits.shared_per_block
        self.max_smem_usage = limits.shared_per_sm
        self.l2_cache_size_bytes = limits.l2_bytes
        self.bandwidth = [limits.dram_bytes_per_second / 1e9]

    def __repr__(self) -> str:
        return f"CUDA({self.name})"
