"""Stamps of a run on a GPU, read back as events: what the simulator models, measured.

Hides where stamps lie in a loaded module and how two of them make the time of a wait.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilelab.errors import TileRuntimeError
from tilelab.passes.plan import Stamp
from tilelab.runtime.module import LoadedVariant
from tilelab.sim import Event
from tilelab.thread.intrinsics.stamp import LIMIT, SYMBOL, entries


def clear(loaded: Sequence[LoadedVariant]) -> None:
    """Forget the stamps of runs so far."""
    for variant in loaded:
        variant.clear_variable(SYMBOL)


def read(loaded: Sequence[LoadedVariant], sites: Sequence[Stamp]) -> list[Event]:
    """The events of the last run of a kernel that was built with `tl.stamp_schedule`, in cycles
    since the first stamp. TileRuntimeError (TL1717) where no stamp was set: the grid has no block
    of that number."""
    for variant in loaded:
        values = np.frombuffer(variant.variable(SYMBOL), np.uint64).reshape(-1, LIMIT)
        if values.any():
            return events_of([[int(v) for v in row] for row in values], sites)
    raise TileRuntimeError(
        "the run set no stamp", code="TL1717",
        hint="time a block that the grid has: blocks are numbered from 0, x fastest",
    )  # fmt: skip


def events_of(rows: Sequence[list[int]], sites: Sequence[Stamp]) -> list[Event]:
    """The events that rows of raw stamps tell of, in order. What happened after the first thread
    ran out of room is left out: its counterpart may be missing."""
    out: list[Event] = []
    stamps = [entries(row) for row in rows]
    full = [own[-1].clock for own, row in zip(stamps, rows, strict=True) if row[-1]]
    end = min(full, default=max((row[-1].clock for row in stamps if row), default=0))
    first = min((row[0].clock for row in stamps if row), default=0)
    for row in stamps:
        opened: dict[tuple[int, int], int] = {}
        for entry in row:
            site, clock = sites[entry.site], entry.clock
            if clock > end:
                break
            if site.edge == "start":
                opened[entry.site, entry.which] = clock
                continue
            # The stamp before a wait has the place before: sites are numbered as they are put.
            start = opened.pop((entry.site - 1, entry.which), clock) if site.edge == "end" else (
                clock
            )  # fmt: skip
            array = site.name.startswith("mbarrier")
            out.append(Event(
                site.kernel, site.role, site.kind, float(start - first), float(clock - first),
                site.role, site.loc, entry.which if array else None, None,
                f"{site.name}[{entry.which}]" if array else site.name,
            ))  # fmt: skip
    return sorted(out, key=lambda e: (e.start, e.end))
