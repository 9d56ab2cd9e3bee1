"""The result of a simulation: findings, counters, timeline; as text, JSON and a trace file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tilelab.sim import serial
from tilelab.sim.counters import Access, KernelCounters, LaunchFacts, LineCounters
from tilelab.sim.findings import Finding
from tilelab.sim.global_order import GlobalOrder, Writer
from tilelab.sim.overlap import Overlap, overlaps
from tilelab.sim.speech import Printed
from tilelab.sim.timeline import Event
from tilelab.sim.trace import chrome_trace

_EXACT = ("global_bytes_read", "global_bytes_written", "tma_bytes_read", "tma_bytes_written",
          "shared_bytes_read", "shared_bytes_written")  # fmt: skip


@dataclass(frozen=True, repr=False)
class SimReport:
    """What a simulation found. `outputs` are the tensors that a call returns; other results are
    in the arrays that were given to it.

    counters: one per kernel. events: the modelled timeline of block `block` of every kernel, in
    cycles of `clock_hz` (`dropped`: events too many to keep).
    modelled_ms: `sim.model`'s time on the target, for all kernels together. printed: what T.print
    said. seconds: what the simulation itself took; steps: how many statements of groups of blocks
    it ran. notes: what is right on a GPU and yet seldom meant; a program with notes is `ok`.
    """

    findings: tuple[Finding, ...]
    counters: tuple[KernelCounters, ...]
    events: tuple[Event, ...]
    seconds: float
    blocks: int
    modelled_ms: float = 0.0
    printed: tuple[Printed, ...] = ()
    name: str = ""
    block: int = 0
    clock_hz: float = 1e9
    dropped: int = 0
    outputs: tuple[Any, ...] = field(default=(), compare=False)
    orders: tuple[GlobalOrder, ...] = field(default=(), compare=False)
    steps: int = field(default=0, compare=False)
    notes: tuple[Finding, ...] = ()

    def writer_of(self, tensor: str, index: tuple[int, ...]) -> Writer | None:
        """Which thread wrote an element of a tensor last; None when nothing did, when only
        atomics did, or when the check "races" was off."""
        found = (order.writer(tensor, index) for order in reversed(self.orders))
        return next((w for w in found if w is not None), None)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def codes(self) -> tuple[str, ...]:
        """Codes of the findings, in order."""
        return tuple(found.code for found in self.findings)

    def total(self) -> LineCounters:
        """Counters of all kernels together."""
        total = LineCounters()
        for kernel in self.counters:
            total.add(kernel.total())
        return total

    def overlaps(self) -> tuple[Overlap, ...]:
        """How much of the copies' time in flight the modelled block computes: over all, then for
        each stage of a pipeline."""
        return overlaps(self.events)

    @property
    def cycles(self) -> float:
        """Modelled cycles of the timed block, all kernels one after another."""
        ends: dict[str, float] = {}
        for event in self.events:
            ends[event.kernel] = max(ends.get(event.kernel, 0.0), event.end)
        return sum(ends.values())

    # ---- text ---------------------------------------------------------------------------------

    def headline(self) -> str:
        """One line: what ran, what was found."""
        count = len(self.findings)
        verdict = "no findings" if self.ok else f"{count} finding{'s' if count > 1 else ''}"
        if self.notes:
            verdict += f", {len(self.notes)} note{'s' if len(self.notes) > 1 else ''}"
        name = f"{self.name}: " if self.name else ""
        return (
            f"{name}simulated {_blocks(self.blocks)} in {self.seconds:.2f} s, {verdict}; "
            f"{1e3 * self.modelled_ms:.1f} us modelled"
        )

    def __str__(self) -> str:
        lines = [self.headline(), *map(str, self.findings), *map(str, self.notes)]
        lines += map(str, self.printed)
        for kernel in self.counters:
            lines += _kernel_lines(kernel)
        lines += self._timeline_lines()
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<SimReport {self.headline()}>"

    def _timeline_lines(self) -> Iterator[str]:
        if not self.events:
            return
        more = f", and {self.dropped:,} more events that are not kept" if self.dropped else ""
        yield f"timeline of block {self.block}, modelled: {self.cycles:,.0f} cycles{more}"
        for found in self.overlaps():
            if found.copies:
                where = "all copies" if found.stage is None else f"stage {found.stage}"
                yield (
                    f"  {where}: {found.copies}, {found.in_flight:,.0f} cycles in flight, "
                    f"{found.share:.0%} of them beside compute"
                )

    # ---- data ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data, everything but `outputs`; the schema is in docs/simulator.md."""
        return serial.to_dict(self)

    def to_json(self) -> str:
        """The same as JSON text; `from_json` makes an equal report of it."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The report that `to_json` wrote, without outputs. TileValueError (TL2110) for text that
        is none."""
        return cls(**serial.fields_of(text))

    def write_trace(self, path: str | Path) -> Path:
        """Write the timeline for Perfetto (ui.perfetto.dev) or chrome://tracing; the path."""
        target = Path(path)
        data = chrome_trace(self.events, self.clock_hz, self.block, self.headline())
        target.write_text(json.dumps(data), encoding="utf-8")
        return target


def _kernel_lines(kernel: KernelCounters) -> Iterator[str]:
    launch = f", {_launch(kernel.launch)}" if kernel.launch else ""
    yield f"kernel {kernel.kernel}{launch}"
    places = sorted(kernel.lines.items(), key=lambda item: item[0].line if item[0] else 0)
    for loc, line in places:
        source = "" if loc is None else f"  {loc.text().strip()}"
        yield f"  {'elsewhere' if loc is None else f'line {loc.line}'}{source}"
        amounts = line.amounts
        facts = [f"{name} {int(v):,}" for name, v in sorted(amounts.items())]
        yield f"      {', '.join(facts)}"
        yield from (f"      {_access(a)}" for a in line.accesses)
    yield f"  total: {_totals(kernel.total())}"


def _launch(launch: LaunchFacts) -> str:
    grid = " x ".join(map(str, launch.grid))
    known = launch.registers
    registers = "registers not known" if known is None else f"{known} registers"
    return (
        f"grid {grid}, {launch.threads} threads, {launch.shared_bytes:,} B shared, {registers}: "
        f"{_blocks(launch.blocks_per_sm)} ({launch.warps_per_sm} of {launch.max_warps} warps) fit "
        f"on a multiprocessor of {launch.target}, limited by {' and '.join(launch.limiters)}"
    )


def _blocks(count: int) -> str:
    return f"{count} block{'' if count == 1 else 's'}"


def _access(access: Access) -> str:
    about = "~" if access.estimated else ""
    what = f"{access.space} memory, {access.buffer} {access.what}, {access.width} B a lane"
    if not access.sampled_bytes:
        return f"{what}: not counted"
    if access.space == "shared":
        return (
            f"{what}: {about}{access.units:,} wavefronts, {access.ideal:,} without conflicts "
            f"(degree {access.ratio:.2f}, worst {access.worst}-way)"
        )
    return f"{what}: {about}{access.units:,} sectors, {access.ideal:,} needed ({access.ratio:.2f})"


def _totals(total: LineCounters) -> str:
    amounts = total.amounts
    facts = [f"{name} {int(amounts[name]):,}" for name in _EXACT if amounts.get(name)]
    facts += [f"{n} {int(v):,}" for n, v in sorted(amounts.items()) if n not in _EXACT]
    facts.append(f"bank conflict degree {total.bank_conflict_degree:.2f}")
    facts.append(f"sector ratio {total.sector_ratio:.2f}")
    if total.estimated:
        facts.append("~: estimated from some executions")
    return ", ".join(facts)
