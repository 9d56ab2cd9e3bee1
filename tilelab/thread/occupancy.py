"""How many blocks of a kernel one multiprocessor holds, and which resource decides it.

Hides the granularities in which registers and shared memory are handed out.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelab.target import WARP, Limits

REGISTER_GRAIN = 256  # registers are handed to a warp in units of this many
REGISTER_FILES = 4  # a multiprocessor's registers lie in four parts; a warp's in one of them
SHARED_GRAIN = 128


@dataclass(frozen=True)
class Bound:
    """One resource: what a block takes of it, what a multiprocessor has, blocks that fit.

    `blocks` is None when what a block takes is not known yet.
    """

    resource: str
    per_block: int | None
    per_sm: int
    blocks: int | None


@dataclass(frozen=True)
class Occupancy:
    """Blocks per multiprocessor and the resources that allow no more."""

    bounds: tuple[Bound, ...]
    blocks: int
    limiters: tuple[str, ...]
    warps: int
    max_warps: int


def round_up(value: int, grain: int) -> int:
    """The next multiple of `grain`."""
    return -(-value // grain) * grain


def shared_bound(shared_bytes: int, limits: Limits) -> Bound:
    """Blocks by shared memory alone; each block also pays the chip's reserve."""
    taken = round_up(shared_bytes + limits.shared_reserved_per_block, SHARED_GRAIN)
    blocks = limits.shared_per_sm // taken if shared_bytes <= limits.shared_per_block else 0
    return Bound("shared memory", taken, limits.shared_per_sm, blocks)


def register_bound(registers: int | None, threads: int, limits: Limits) -> Bound:
    """Blocks by registers alone, with the registers each thread starts with."""
    if registers is None:
        return Bound("registers", None, limits.registers_per_sm, None)
    warps = round_up(threads, WARP) // WARP
    per_warp = round_up(max(registers, 1) * WARP, REGISTER_GRAIN)
    warps_per_file = limits.registers_per_sm // REGISTER_FILES // per_warp
    blocks = warps_per_file * REGISTER_FILES // warps
    return Bound("registers", per_warp * warps, limits.registers_per_sm, blocks)


def occupancy(shared_bytes: int, threads: int, registers: int | None, limits: Limits) -> Occupancy:
    """What fits on one multiprocessor; registers that are not known do not limit."""
    warps = round_up(threads, WARP) // WARP
    in_block = warps * WARP
    bounds = (
        shared_bound(shared_bytes, limits),
        register_bound(registers, threads, limits),
        Bound("threads", in_block, limits.threads_per_sm, limits.threads_per_sm // in_block),
        Bound("block slots", 1, limits.blocks_per_sm, limits.blocks_per_sm),
    )
    fits = [b.blocks for b in bounds if b.blocks is not None]
    blocks = min(fits)
    limiters = tuple(b.resource for b in bounds if b.blocks == blocks)
    return Occupancy(bounds, blocks, limiters, blocks * warps, limits.threads_per_sm // WARP)
