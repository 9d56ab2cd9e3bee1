"""The result of a simulation: findings, counters, events; as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from tilelab.sim.counters import KernelCounters, LineCounters
from tilelab.sim.findings import Finding
from tilelab.sim.group import Event
from tilelab.sim.speech import Printed


@dataclass(frozen=True)
class SimReport:
    """What a simulation found. Outputs are in the arrays that were given to it.

    counters: one per kernel; events: of the first group of blocks of every kernel; modelled_ms:
    `sim.model`'s time on the target, for all kernels together. printed: what T.print said.
    """

    findings: tuple[Finding, ...]
    counters: tuple[KernelCounters, ...]
    events: tuple[Event, ...]
    seconds: float
    blocks: int
    modelled_ms: float = 0.0
    printed: tuple[Printed, ...] = ()

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

    def __str__(self) -> str:
        verdict = "no findings" if self.ok else f"{len(self.findings)} finding(s)"
        lines = [
            f"simulated {self.blocks} blocks in {self.seconds:.2f} s: {verdict}; "
            f"{1e3 * self.modelled_ms:.1f} us modelled"
        ]
        lines += [str(found) for found in self.findings]
        lines += [str(line) for line in self.printed]
        for kernel in self.counters:
            lines.append(f"kernel {kernel.kernel}:")
            for loc, line in kernel.lines.items():
                facts = ", ".join(f"{k} {v:,}" for k, v in line.to_dict().items())
                where = "elsewhere" if loc is None else f"line {loc.line}"
                lines.append(f"  {where}: {facts}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Everything as one JSON object."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "ok": self.ok,
            "seconds": self.seconds,
            "modelled_ms": self.modelled_ms,
            "blocks": self.blocks,
            "findings": [found.to_dict() for found in self.findings],
            "counters": [
                {
                    "kernel": k.kernel,
                    "total": k.total().to_dict(),
                    "lines": [
                        {"line": None if loc is None else loc.line, **c.to_dict()}
                        for loc, c in k.lines.items()
                    ],
                }
                for k in self.counters
            ],
            "printed": [str(line) for line in self.printed],
            "events": [
                {**asdict(e), "loc": None if e.loc is None else e.loc.line} for e in self.events
            ],
        }
