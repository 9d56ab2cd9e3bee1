"""The timeline as a Chrome JSON trace, which Perfetto (ui.perfetto.dev) and chrome://tracing load.

Format: "Trace Event Format" of the Chromium project: complete events (ph X) and instants (ph i)
with ts and dur in microseconds, metadata (ph M) that names processes and threads, and flows
(ph s, f) from a copy to the wait that it ends. A process is a block, a thread a role or engine.
Hides how things that are in flight together share a track: slices of one track must not overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelab.sim.timeline import ENGINES, Event

INSTANT = frozenset({"arrive", "expect"})


def tracks(events: Sequence[Event]) -> list[tuple[str, int]]:
    """(track, lane) of each event: lanes of a track hold events that do not overlap."""
    free: dict[str, list[float]] = {}
    out: list[tuple[str, int]] = []
    for event in events:
        lanes = free.setdefault(event.track, [])
        lane = next((n for n, end in enumerate(lanes) if end <= event.start), len(lanes))
        if lane == len(lanes):
            lanes.append(0.0)
        lanes[lane] = event.end
        out.append((event.track, lane))
    return out


def order(event_tracks: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The tracks from top to bottom: roles as they appear, then engines."""
    names = list(dict.fromkeys(track for track, _ in event_tracks))
    names.sort(key=lambda name: ENGINES.index(name) if name in ENGINES else -1)
    return sorted(set(event_tracks), key=lambda t: (names.index(t[0]), t[1]))


def chrome_trace(
    events: Sequence[Event], clock_hz: float, block: int = 0, about: str = ""
) -> dict[str, Any]:
    """Events of one or more kernels, one after another, as the object that a trace file holds."""
    out: list[dict[str, Any]] = []
    offset = 0.0
    kernels = list(dict.fromkeys(e.kernel for e in events))
    for number, kernel in enumerate(kernels):
        part = [e for e in events if e.kernel == kernel]
        pid = block + number * 1_000_000
        out += _kernel(part, pid, f"{kernel}, block {block}", offset, clock_hz)
        offset += max(e.end for e in part)
    return {
        "traceEvents": out,
        "displayTimeUnit": "ns",
        "otherData": {"about": about, "clock_hz": clock_hz, "times": "modelled, not measured"},
    }


def _kernel(
    events: Sequence[Event], pid: int, name: str, offset: float, clock_hz: float
) -> list[dict[str, Any]]:
    placed = sorted(events, key=lambda e: (e.start, e.end))
    lanes = tracks(placed)
    tids = {track: tid for tid, track in enumerate(order(lanes), 1)}
    out: list[dict[str, Any]] = [_meta("process_name", pid, 0, name=name)]
    for (track, lane), tid in tids.items():
        out.append(_meta("thread_name", pid, tid, name=f"{track} {lane + 1}" if lane else track))
        out.append(_meta("thread_sort_index", pid, tid, sort_index=tid))
    flights: dict[int, tuple[float, int]] = {}
    for event, track in zip(placed, lanes, strict=True):
        start, end = ((offset + t) / clock_hz * 1e6 for t in (event.start, event.end))
        tid = tids[track]
        out.append(_slice(event, start, end, pid, tid))
        if event.stage is None:
            continue
        if event.kind in ("tma load", "cp.async"):
            flights[event.stage] = (end, tid)
        elif event.kind == "wait" and event.stage in flights:
            done, source = flights.pop(event.stage)
            out += _flow(len(out), pid, (min(done, end), source), (end, tid))
    return out


def _meta(kind: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "ts": 0, "pid": pid, "tid": tid, "args": args}


def _slice(event: Event, start: float, end: float, pid: int, tid: int) -> dict[str, Any]:
    facts = {"role": event.role, "stage": event.stage, "phase": event.phase, "what": event.name}
    args: dict[str, Any] = {k: v for k, v in facts.items() if v not in (None, "")}
    if event.loc is not None:
        args["line"] = event.loc.line
        args["source"] = event.loc.text().strip()
    name = f"{event.kind} {event.name}".strip()
    common = {"name": name, "cat": event.kind, "ts": start, "pid": pid, "tid": tid, "args": args}
    if event.kind in INSTANT:
        return {**common, "ph": "i", "s": "t"}
    return {**common, "ph": "X", "dur": end - start}


def _flow(
    ident: int, pid: int, source: tuple[float, int], target: tuple[float, int]
) -> list[dict[str, Any]]:
    common = {"name": "arrives", "cat": "copy", "id": ident, "pid": pid}
    return [
        {**common, "ph": "s", "ts": source[0], "tid": source[1]},
        {**common, "ph": "f", "bp": "e", "ts": target[0], "tid": target[1]},
    ]
