"""Tile sizes for a kernel that ran out of registers: what its warning says.

By the register formula of suggest_config: a thread holds its share of every fragment, and some
registers beside. Hides how a smaller shape is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from tilelab.ir import Buffer
from tilelab.layout import Fragment
from tilelab.passes.base import CompileTrace
from tilelab.target import REGISTERS_BESIDE_TILES, Limits

REGISTER_BYTES, GRAIN, MOST_THREADS = 4, 8, 512


def smaller_tiles(trace: CompileTrace, threads: int, limits: Limits) -> str:
    """What would keep a kernel's fragments in the registers of its `threads` (those that compute):
    a smaller largest fragment, or more threads. For the warning of a build that spills; empty for
    a kernel without fragments."""
    held = {d.buffer.root.name: d.buffer for d in trace.layouts if type(d.layout) is Fragment}
    if not held:
        return ""
    largest = max(held.values(), key=_bytes)
    room = _room(threads, limits)
    parts = [f"fragments take {_each(held.values(), threads)} registers of a thread, {room} fit"]
    shape = list(largest.static_shape)
    while max(shape) > 1:
        axis = shape.index(max(shape))
        shape[axis] //= 2
        if _each(held.values(), threads, _scaled(largest, shape)) <= room:
            parts.append(f"{_text(shape)} instead of {_text(largest.static_shape)} for "
                         f"{largest.root.name} would")  # fmt: skip
            break
    more = [t for t in (2 * threads, 4 * threads) if t <= MOST_THREADS]
    enough = [t for t in more if _each(held.values(), t) <= _room(t, limits)]
    if enough:
        parts.append(f"so would {enough[0]} threads")
    return "; ".join(parts)


def _room(threads: int, limits: Limits) -> int:
    """Registers that are left for tiles, of a thread of a block that has a multiprocessor."""
    share = limits.registers_per_sm // threads // GRAIN * GRAIN
    return min(limits.registers_per_thread, share) - REGISTERS_BESIDE_TILES


def _bytes(tile: Buffer) -> int:
    return prod(tile.static_shape) * tile.dtype.bytes


def _each(tiles: Iterable[Buffer], threads: int, scale: float = 1) -> int:
    """Registers of a thread that all tiles take, spread evenly, each `scale` times as large."""
    total = sum(max(_bytes(t) * scale, REGISTER_BYTES * threads) for t in tiles)
    return -(-int(total) // (REGISTER_BYTES * threads))


def _scaled(tile: Buffer, shape: Sequence[int]) -> float:
    """How much smaller a tile of another shape is."""
    return prod(shape) / prod(tile.static_shape)


def _text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


__all__ = ["smaller_tiles"]
