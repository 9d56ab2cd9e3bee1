"""Stamps of time: when a thread of one block reached a place, kept in the module's own memory.

Hides the clock register and the form of the array: for each thread that stamps a row of LIMIT
entries, each the clock (cycles of the multiprocessor) above the number of the place and, lowest, a
small number of what the place was about. An entry of 0 was not written: a thread that stamps two
rows (before its role and in it) counts on, so that the second does not begin at its start.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE

SYMBOL = "tl_stamps"
LIMIT = 4096
BITS = 8
MOST = 1 << BITS
"""Places of a kernel, and numbers of what one is about."""


@recorded
def stamp(rows: int, block: int) -> Intrinsic:
    """Thread `first` of block number `block` notes in its `row` that it is at `site`, about
    `which` (both below MOST). `count`, a register, is how often it did; after LIMIT times nothing
    is noted any more."""
    helper = f"""
extern "C" __device__ u64 {SYMBOL}[{rows * LIMIT}];
{INLINE} void stamp(u32 row, u32 first, u32 site, u32 which, u32* count) {{
  u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  if (block != {block} || thread != first || *count >= {LIMIT}) return;
  u64 now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) :: "memory");
  {SYMBOL}[row * {LIMIT} + *count] = now << {2 * BITS} | site << {BITS} | which;
  ++*count;
}}"""

    def meaning(
        m: Machine, row: Array, first: Array, site: Array, which: Array, count: Array
    ) -> None:
        """The simulator has a clock of its own."""

    names = ("row", "first", "site", "which")
    return Intrinsic(
        "stamp", (*(Param(n, "value") for n in names), Param("count", "updates")),
        "tl::stamp({row}, {first}, {site}, {which}, {count})", helper, meaning, cost="free",
        source="PTX ISA, %clock64",
    )  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One stamp, taken apart."""

    clock: int
    site: int
    which: int


def entries(row: list[int]) -> list[Entry]:
    """The stamps of one row of the array, in order."""
    return [
        Entry(value >> 2 * BITS, value >> BITS & (MOST - 1), value & (MOST - 1))
        for value in row
        if value
    ]
