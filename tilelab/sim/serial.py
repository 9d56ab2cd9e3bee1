"""A report as plain data, and back. Hides how places and records are written.

Schema: `SCHEMA` names it and its version; docs/simulator.md lists the fields. A place is
{"file", "line", "column"}; counters keep the raw amounts, and repeat what follows from them
("total", "units", "ratio") for readers that are not Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from tilelab.errors import Loc, TileValueError
from tilelab.sim.counters import Access, KernelCounters, LaunchFacts, LineCounters
from tilelab.sim.findings import Finding
from tilelab.sim.speech import Printed
from tilelab.sim.timeline import Event

if TYPE_CHECKING:
    from tilelab.sim.report import SimReport

SCHEMA = "tilelab.simreport/2"
_TUPLES = frozenset({"index", "block", "thread", "grid", "limiters"})
_NUMBERS = ("seconds", "blocks", "modelled_ms", "name", "block", "clock_hz", "dropped")


def to_dict(report: SimReport) -> dict[str, Any]:
    """Everything but the outputs."""
    return {
        "schema": SCHEMA,
        "ok": report.ok,
        **{name: getattr(report, name) for name in _NUMBERS},
        "findings": [_record(found) for found in report.findings],
        "notes": [_record(found) for found in report.notes],
        "printed": [_record(line) for line in report.printed],
        "counters": [_counters(kernel) for kernel in report.counters],
        "overlaps": [{**asdict(o), "share": o.share} for o in report.overlaps()],
        "events": [_record(event) for event in report.events],
    }


def fields_of(text: str) -> dict[str, Any]:
    """The fields of the report that `to_dict` described. TileValueError (TL2110) otherwise."""
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise ValueError(f"its schema is {data['schema']!r}")
        return {
            **{name: data[name] for name in _NUMBERS},
            "findings": tuple(_read(Finding, d) for d in data["findings"]),
            "notes": tuple(_read(Finding, d) for d in data["notes"]),
            "printed": tuple(_read(Printed, d) for d in data["printed"]),
            "counters": tuple(_read_counters(d) for d in data["counters"]),
            "events": tuple(_read(Event, d) for d in data["events"]),
        }
    except (ValueError, KeyError, TypeError) as error:
        raise TileValueError(
            f"this is no simulation report: {error}", code="TL2110",
            hint=f"give the text of report.to_json(), schema {SCHEMA}",
        ) from error  # fmt: skip


def _place(loc: Loc | None) -> dict[str, Any] | None:
    return None if loc is None else {"file": loc.file, "line": loc.line, "column": loc.column}


def _read_place(data: Mapping[str, Any] | None) -> Loc | None:
    return None if data is None else Loc(data["file"], data["line"], data["column"])


def _record(record: Any) -> dict[str, Any]:
    """A flat data class; its places as data."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return {k: _place(v) if k in ("loc", "other") else v for k, v in values.items()}


def _read(kind: type[Any], data: Mapping[str, Any]) -> Any:
    def value(name: str) -> Any:
        if name in ("loc", "other"):
            return _read_place(data[name])
        found = data[name]
        return tuple(found) if name in _TUPLES and found is not None else found

    return kind(**{f.name: value(f.name) for f in fields(kind)})


def _counters(kernel: KernelCounters) -> dict[str, Any]:
    return {
        "kernel": kernel.kernel,
        "launch": None if kernel.launch is None else asdict(kernel.launch),
        "total": kernel.total().to_dict(),
        "lines": [
            {"loc": _place(loc), "counts": dict(line.counts),
             "accesses": [{**_record(a), **_derived(a)} for a in line.accesses]}
            for loc, line in kernel.lines.items()
        ],
    }  # fmt: skip


def _derived(access: Access) -> dict[str, Any]:
    return {"units": access.units, "ideal": access.ideal, "ratio": round(access.ratio, 6),
            "estimated": access.estimated}  # fmt: skip


def _read_counters(data: Mapping[str, Any]) -> KernelCounters:
    launch = None if data["launch"] is None else _read(LaunchFacts, data["launch"])
    made = KernelCounters(data["kernel"], launch)
    lines: Sequence[Mapping[str, Any]] = data["lines"]
    for row in lines:
        loc, line = _read_place(row["loc"]), LineCounters()
        line.counts.update(row["counts"])
        line.accesses += [_read(Access, a) for a in row["accesses"]]
        made.lines[loc] = line
    return made
