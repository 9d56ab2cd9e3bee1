"""Counters per source line and kernel. Hides sampling.

Bank conflicts and sectors are worked out for the first executions of a statement in the first
block of a group only (`SAMPLES`); `degree` is the ratio found there. Everything else is exact.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelab.errors import Loc
from tilelab.layout import banks

Array = np.ndarray[Any, Any]
SAMPLES = 4
SECTOR = 32
_WARP = 32


@dataclass
class LineCounters:
    """What one source line did. Wavefronts and sectors are of the sampled accesses."""

    amounts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    shared_wavefronts: int = 0
    shared_ideal: int = 0
    global_sectors: int = 0
    global_ideal: int = 0

    @property
    def bank_conflict_degree(self) -> float:
        """Wavefronts per wavefront without conflicts; 1.0 is free of conflicts."""
        return self.shared_wavefronts / self.shared_ideal if self.shared_ideal else 1.0

    @property
    def sector_ratio(self) -> float:
        """32-byte sectors moved per sector needed; 1.0 is perfectly coalesced."""
        return self.global_sectors / self.global_ideal if self.global_ideal else 1.0

    def add(self, other: LineCounters) -> None:
        for name, amount in other.amounts.items():
            self.amounts[name] += amount
        self.shared_wavefronts += other.shared_wavefronts
        self.shared_ideal += other.shared_ideal
        self.global_sectors += other.global_sectors
        self.global_ideal += other.global_ideal

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = {name: int(v) for name, v in sorted(self.amounts.items())}
        if self.shared_ideal:
            data["bank_conflict_degree"] = round(self.bank_conflict_degree, 3)
        if self.global_ideal:
            data["sector_ratio"] = round(self.sector_ratio, 3)
        return data


@dataclass
class KernelCounters:
    """Counters of one kernel by source line (None: nodes without a place)."""

    kernel: str
    lines: dict[Loc | None, LineCounters] = field(default_factory=dict[Loc | None, LineCounters])
    _by_id: dict[int, LineCounters] = field(default_factory=dict[int, LineCounters])
    _sampled: dict[Any, int] = field(default_factory=lambda: defaultdict(int))

    def line(self, loc: Loc | None) -> LineCounters:
        """The counters of a line; made on first use."""
        found = self._by_id.get(id(loc))
        if found is None:
            found = self._by_id[id(loc)] = self.lines.setdefault(loc, LineCounters())
        return found

    def add(self, loc: Loc | None, name: str, amount: float) -> None:
        self.line(loc).amounts[name] += amount

    def total(self) -> LineCounters:
        """The sum over all lines."""
        total = LineCounters()
        for line in self.lines.values():
            total.add(line)
        return total

    def due(self, what: Any) -> bool:
        """Whether this execution of `what` (a statement and an access) is to be sampled."""
        seen = self._sampled[what]
        self._sampled[what] = seen + 1
        return seen < SAMPLES

    def sample_shared(self, loc: Loc | None, addresses: Array, width: int, active: Any) -> None:
        """Byte addresses (..., lanes) of one access per warp, `width` bytes a lane."""
        rows, alive = _by_warp(addresses, active)
        line = self.line(loc)
        line.shared_wavefronts += int(np.sum(banks.wavefronts(rows, width, alive)))
        line.shared_ideal += int(np.sum(banks.ideal_wavefronts(rows, width, alive)))

    def sample_global(self, loc: Loc | None, addresses: Array, width: int, active: Any) -> None:
        """The same for global memory: sectors touched against sectors' worth of bytes."""
        rows, alive = _by_warp(addresses, active)
        rows, alive = rows.reshape(-1, rows.shape[-1]), alive.reshape(-1, rows.shape[-1])
        line = self.line(loc)
        for lane_addresses, on in zip(rows, alive, strict=True):
            used = np.unique(lane_addresses[on])
            if len(used):
                first, last = used // SECTOR, (used + width - 1) // SECTOR
                line.global_sectors += len(np.union1d(first, last))
                line.global_ideal += -(-len(used) * width // SECTOR)


def _by_warp(addresses: Array, active: Any) -> tuple[Array, Array]:
    """Addresses and activity with the lanes cut into warps; a last part of a warp is padded."""
    mask = np.broadcast_to(True if active is None else active, addresses.shape)
    lanes = addresses.shape[-1]
    padding = [(0, 0)] * (addresses.ndim - 1) + [(0, -lanes % _WARP)]
    if lanes % _WARP:
        addresses, mask = np.pad(addresses, padding), np.pad(mask, padding)
    shape = (*addresses.shape[:-1], -1, _WARP)
    return addresses.reshape(shape), mask.reshape(shape)
