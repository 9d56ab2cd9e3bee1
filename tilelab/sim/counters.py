"""Counters per source line, kernel and access. Hides how wavefronts and sectors are estimated.

Bytes, operations and waits are exact. Wavefronts and sectors are worked out, in the first block of
a group, for the first executions of an access and then for ever fewer (`Access.due`); the amounts
found there are scaled by bytes, and marked as estimated unless every execution was looked at.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tilelab.errors import Loc
from tilelab.layout import banks
from tilelab.target import WARP

Array = np.ndarray[Any, Any]
Space = Literal["shared", "global"]
SAMPLES = 8
SECTOR = 32


@dataclass
class Access:
    """One access of the program: a place in the text that reads or writes one buffer.

    num_bytes: by all lanes of all blocks. The `sampled_` fields are of the executions looked at:
    bytes; wavefronts (shared) or 32-byte sectors (global); as many as there would be without
    conflicts, or if every byte moved were needed; warps' requests; the worst phase.
    """

    loc: Loc | None
    space: Space
    what: str  # "read" or "written"
    buffer: str
    width: int  # bytes a lane
    num_bytes: int = 0
    executions: int = 0
    sampled_bytes: int = 0
    sampled_units: int = 0
    sampled_ideal: int = 0
    worst: int = 0
    # Byte addresses of the worst warp's request that was looked at, -1 for idle lanes.
    example: tuple[int, ...] = field(default=(), compare=False)
    merges: bool = field(default=False, compare=False)  # a plain load (see layout.banks)

    def due(self) -> bool:
        """Whether this execution is looked at: the first few, then numbers 8, 16, 32, ..."""
        seen = self.executions
        self.executions += 1
        return seen < SAMPLES or not seen & (seen - 1)

    @property
    def estimated(self) -> bool:
        """Whether some execution was not looked at."""
        return self.sampled_bytes != self.num_bytes

    @property
    def ratio(self) -> float:
        """Bank-conflict degree or sector ratio: units per unit that is needed."""
        return self.sampled_units / self.sampled_ideal if self.sampled_ideal else 1.0

    def scaled(self, sampled: int) -> int:
        """What a sampled amount comes to for all executions."""
        if not self.sampled_bytes:
            return 0
        return round(sampled * self.num_bytes / self.sampled_bytes)

    @property
    def units(self) -> int:
        """Wavefronts or sectors of all executions."""
        return self.scaled(self.sampled_units)

    @property
    def ideal(self) -> int:
        """Wavefronts without conflicts, or the fewest sectors."""
        return self.scaled(self.sampled_ideal)

    def look(self, addresses: Array, active: Any, lanes: Array, merges: bool) -> None:
        """Take one execution into account: byte addresses (..., lanes) of threads `lanes`, where
        `active` (None: everywhere). `merges`: a plain load (see layout.banks)."""
        self.merges = merges
        rows, alive = _by_warp(addresses, active, lanes)
        self.sampled_bytes += int(alive.sum()) * self.width
        if self.space == "shared":
            degrees = banks.phase_degrees(rows, self.width, alive, load=merges)
            self.sampled_units += int(degrees.sum())
            self.sampled_ideal += int((degrees > 0).sum())
            worst = int(degrees.max(initial=0))
            if worst > self.worst:
                row = int(degrees.max(axis=-1).argmax())
                self.example = _request(rows[row], alive[row])
            self.worst = max(self.worst, worst)
            return
        for lane_addresses, on in zip(rows, alive, strict=True):
            used = np.unique(lane_addresses[on])
            if len(used):
                if not self.example:
                    self.example = _request(lane_addresses, on)
                sectors = np.union1d(used // SECTOR, (used + self.width - 1) // SECTOR)
                self.sampled_units += len(sectors)
                self.sampled_ideal += -(-len(used) * self.width // SECTOR)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "line": None if self.loc is None else self.loc.line,
            "space": self.space, "what": self.what, "buffer": self.buffer, "width": self.width,
            "bytes": self.num_bytes, "units": self.units, "ideal": self.ideal,
            "ratio": round(self.ratio, 4), "worst": self.worst, "estimated": self.estimated,
        }  # fmt: skip


@dataclass
class LineCounters:
    """What one source line did: `counts` by name, and its accesses to memory."""

    counts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    accesses: list[Access] = field(default_factory=list[Access])

    @property
    def amounts(self) -> dict[str, float]:
        """Exact amounts by name: `counts`, and the bytes of the accesses."""
        found: dict[str, float] = defaultdict(float, self.counts)
        for access in self.accesses:
            found[f"{access.space}_bytes_{access.what}"] += access.num_bytes
        return found

    def units(self, space: Space, what: str = "") -> int:
        """Wavefronts or sectors of the accesses to `space` (of one kind: "read", "written")."""
        return sum(a.units for a in self._of(space) if what in ("", a.what))

    def ideal(self, space: Space) -> int:
        """As many as there would be without conflicts or unused bytes."""
        return sum(a.ideal for a in self._of(space))

    def _of(self, space: Space) -> list[Access]:
        return [a for a in self.accesses if a.space == space]

    @property
    def bank_conflict_degree(self) -> float:
        """Wavefronts per wavefront without conflicts; 1.0 is free of conflicts."""
        return self._ratio("shared")

    @property
    def sector_ratio(self) -> float:
        """32-byte sectors moved per sector needed; 1.0 is perfectly coalesced."""
        return self._ratio("global")

    def _ratio(self, space: Space) -> float:
        ideal = self.ideal(space)
        return self.units(space) / ideal if ideal else 1.0

    @property
    def estimated(self) -> bool:
        """Whether wavefronts and sectors are estimates."""
        return any(a.estimated for a in self.accesses)

    def add(self, other: LineCounters) -> None:
        for name, amount in other.counts.items():
            self.counts[name] += amount
        self.accesses += other.accesses

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = {name: int(v) for name, v in sorted(self.amounts.items())}
        if self._of("shared"):
            data["shared_wavefronts"] = self.units("shared")
            data["bank_conflict_degree"] = round(self.bank_conflict_degree, 3)
        if self._of("global"):
            data["global_sectors"] = self.units("global")
            data["sector_ratio"] = round(self.sector_ratio, 3)
        return data


@dataclass(frozen=True)
class LaunchFacts:
    """How a kernel was launched, and how much of it a multiprocessor of `target` holds at once.

    registers: a thread's, when the kernel has been compiled; None: not known, and then no limit.
    limiters: the resources that allow no more than `blocks_per_sm`.
    """

    target: str
    grid: tuple[int, ...]
    threads: int
    shared_bytes: int
    registers: int | None
    blocks_per_sm: int
    warps_per_sm: int
    max_warps: int
    limiters: tuple[str, ...]


@dataclass
class KernelCounters:
    """Counters of one kernel by source line (None: nodes without a place)."""

    kernel: str
    launch: LaunchFacts | None = None
    lines: dict[Loc | None, LineCounters] = field(default_factory=dict[Loc | None, LineCounters])
    _by_id: dict[int, LineCounters] = field(default_factory=dict[int, LineCounters])
    _accesses: dict[Any, Access] = field(default_factory=dict[Any, Access])

    def line(self, loc: Loc | None) -> LineCounters:
        """The counters of a line; made on first use."""
        found = self._by_id.get(id(loc))
        if found is None:
            found = self._by_id[id(loc)] = self.lines.setdefault(loc, LineCounters())
        return found

    def add(self, loc: Loc | None, name: str, amount: float) -> None:
        self.line(loc).counts[name] += amount

    def total(self) -> LineCounters:
        """The sum over all lines."""
        total = LineCounters()
        for line in self.lines.values():
            total.add(line)
        return total

    def access(
        self, site: Any, loc: Loc | None, space: Space, what: str, buffer: str, width: int
    ) -> Access:
        """The record of the access at `site` (a node of the kernel); made on first use."""
        key = (id(site), what, buffer, width)
        found = self._accesses.get(key)
        if found is None:
            found = self._accesses[key] = Access(loc, space, what, buffer, width)
            self.line(loc).accesses.append(found)
        return found


def _request(addresses: Array, active: Array) -> tuple[int, ...]:
    return tuple(np.where(active, addresses, -1).tolist())


def _by_warp(addresses: Array, active: Any, lanes: Array) -> tuple[Array, Array]:
    """(warp accesses, 32) addresses and activity; threads that do not run are inactive."""
    mask = np.broadcast_to(True if active is None else active, addresses.shape)
    warps, which = np.unique(lanes // WARP, return_inverse=True)
    at = which.reshape(-1) * WARP + lanes % WARP
    shape = (*addresses.shape[:-1], len(warps) * WARP)
    rows, alive = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    rows[..., at], alive[..., at] = addresses, mask
    return rows.reshape(-1, WARP), alive.reshape(-1, WARP)
