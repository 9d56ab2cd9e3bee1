"""How much of the copies' time in flight the block computes: over the timeline, and per stage.

Hides interval arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilelab.sim.timeline import Event

COPIES = frozenset({"tma load", "cp.async", "load"})
COMPUTES = frozenset({"wgmma", "mma", "simt"})
Span = tuple[float, float]


@dataclass(frozen=True)
class Overlap:
    """Cycles of one stage (None: of all stages together). in_flight: some copy into it is under
    way; hidden: and the block computes at the same time."""

    stage: int | None
    copies: int
    in_flight: float
    hidden: float

    @property
    def share(self) -> float:
        """Hidden cycles per cycle in flight, 0 to 1; 0 without copies."""
        return self.hidden / self.in_flight if self.in_flight else 0.0


def overlaps(events: Sequence[Event]) -> tuple[Overlap, ...]:
    """All copies together first, then each stage that the events name."""
    computing = union((e.start, e.end) for e in events if e.kind in COMPUTES)
    copies = [e for e in events if e.kind in COPIES]
    stages = sorted({e.stage for e in copies if e.stage is not None})
    chosen = [(None, copies), *((s, [e for e in copies if e.stage == s]) for s in stages)]
    found: list[Overlap] = []
    for stage, part in chosen:
        flying = union((e.start, e.end) for e in part)
        found.append(Overlap(stage, len(part), length(flying), length(both(flying, computing))))
    return tuple(found)


def union(spans: Iterable[Span]) -> list[Span]:
    """The spans joined where they touch, in order."""
    out: list[Span] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out


def both(a: Sequence[Span], b: Sequence[Span]) -> list[Span]:
    """Where two unions hold at once."""
    out: list[Span] = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            out.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return out


def length(spans: Iterable[Span]) -> float:
    """Cycles that disjoint spans cover."""
    return sum(end - start for start, end in spans)
