"""The suites: what is measured, in which unit, against which bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelab.bench import rows
from tilelab.bench.peers import measure
from tilelab.bench.problems import PROBLEMS
from tilelab.bench.rows import Measured
from tilelab.bench.table import Row
from tilelab.errors import TileRuntimeError

Progress = Callable[[str], None]

SHAPE = [1024, 1024, 1024]


def _measured_suite(rows: Sequence[Measured]) -> Callable[[Sequence[str], Progress], list[Row]]:
    def suite(peers: Sequence[str], progress: Progress) -> list[Row]:
        return [_row(row, peers, progress) for row in rows]

    return suite


def _row(row: Measured, peers: Sequence[str], progress: Progress) -> Row:
    """One row, each implementation in a process of its own with torch beside it."""
    columns = tuple(PROBLEMS[row.program].peers)
    wanted = [c for c in columns if c == "copy" or "torch" in peers]
    spec = {**row.spec(), "columns": wanted}
    progress(row.name)
    ours = measure("tilelab", "measured", spec)
    values: dict[str, float | None] = {"tilelab": row.rate(ours["ms"]["kernel"][1])}
    spreads: dict[str, tuple[float, float]] = {}
    for c in columns:
        values[c] = row.rate(ours["ms"][c][1]) if c in wanted else None
        ratio = ours["ratio"].get(c)
        values[f"tilelab/{c}"] = None if ratio is None else ratio[1]
        if ratio is not None:
            spreads[f"tilelab/{c}"] = (ratio[0], ratio[2])
    note = f"error {ours['error']:.1e}; {ours['rounds']} rounds"
    values["tilelang"] = values["tilelab/tilelang"] = None
    if "tilelang" in peers:
        note += _beside_tilelang(row, wanted, ours, values, progress)
    return Row(row.name, row.unit, values, row.bound, note, spreads)


def _beside_tilelang(
    row: Measured,
    wanted: Sequence[str],
    ours: dict[str, Any],
    values: dict[str, float | None],
    progress: Progress,
) -> str:
    """Fill TileLang's columns; what to remark when it cannot run the program."""
    progress(f"{row.name}, tilelang")
    try:
        theirs = measure("tilelang", "measured", {**row.spec(), "columns": wanted})
    except TileRuntimeError as error:
        last = str(error).strip().splitlines()[-1].strip()
        return f"; TileLang: {last[:80]}"
    values["tilelang"] = row.rate(theirs["ms"]["kernel"][1])
    share = theirs["ms"]["kernel"][1] / ours["ms"]["kernel"][1]
    for c in wanted[:1]:
        # Each process timed the same peer too: comparing shares of it cancels the chip's clock.
        share = ours["ratio"][c][1] / theirs["ratio"][c][1]
    values["tilelab/tilelang"] = share
    return ""


def compile_(peers: Sequence[str], progress: Progress) -> list[Row]:
    """Import and cold compile of the seed's GEMM: caches empty, second kernel of the process."""
    found: dict[str, dict[str, float]] = {}
    for name in ("tilelab", *(p for p in peers if p == "tilelang")):
        progress(f"compile, {name}")
        runs = [measure(name, "compile", {"shape": SHAPE}) for _ in range(3)]
        found[name] = {key: min(r[key] for r in runs) for key in runs[0]}
    return [
        Row(label, "s", {n: found.get(n, {}).get(key) for n in ("tilelab", "tilelang")}, note=note)
        for label, key, note in (
            ("import", "import", "least of 3 processes"),
            ("compile the seed's GEMM", "compile", "to machine code; least of 3 processes"),
        )
    ]


def launch(peers: Sequence[str], progress: Progress) -> list[Row]:
    """Host time of one call of a small GEMM with its output allocated."""
    shape = [128, 128, 64]
    values: dict[str, float | None] = {"tilelab": None, "torch": None, "tilelang": None}
    progress("launch, tilelab")
    ours = measure("tilelab", "launch", {"shape": shape})
    values["tilelab"] = ours["kernel"]
    values["torch"] = ours["torch"] if "torch" in peers else None
    if "tilelang" in peers:
        progress("launch, tilelang")
        values["tilelang"] = measure("tilelang", "launch", {"shape": shape})["kernel"]
    note = "median of 20 rounds of 300 calls"
    return [Row("host time of a call, output allocated", "us", values, note=note)]


def sim(peers: Sequence[str], progress: Progress) -> list[Row]:
    """The seed's GEMM on a CPU: beside other interpreters at 512^3, then its growth."""
    rows: list[Row] = []
    for checks in (True, False):
        found: dict[str, dict[str, float]] = {}
        for name, can_check in (("tilelab", True), *_INTERPRETERS.items()):
            if (name == "tilelab" or name in peers) and (can_check or not checks):
                found[name] = _simulated(name, 512, checks, progress)
        values = {n: _rate(512, found[n]) if n in found else None for n in _COLUMNS}
        what = f"512^3, {'all' if checks else 'no'} checks"
        note = "pallas: its TPU interpreter" + (" with the race detector" if checks else "")
        rows.append(Row(f"gemm fp16 {what}", _RATE, values, note=note))
        cpu = {n: found[n]["processor"] if n in found else None for n in _COLUMNS}
        rows.append(Row(f"processor time of it, {what}", "s", cpu, note="all threads together"))
    peak = 0.0
    for size in (256, 1024, 2048):
        made = _simulated("tilelab", size, True, progress)
        rate, note = _rate(size, made), f"{made['processor']:.2f} s of processor time"
        rows.append(Row(f"gemm fp16 {size}^3, all checks", _RATE, {"tilelab": rate}, note=note))
        peak = made["peak_gib"]
    rows.append(Row("peak memory of the 2048^3 process", "GiB", {"tilelab": peak}))
    return rows


_INTERPRETERS = {"triton": False, "pallas": True}
"""Peers that run a tile program on a CPU -> whether they can check it while they do."""
_COLUMNS = ("tilelab", *_INTERPRETERS)
_RATE = "M MAC/s"


def _simulated(name: str, size: int, checks: bool, progress: Progress) -> dict[str, float]:
    progress(f"sim {size}^3, {name}, checks {'on' if checks else 'off'}")
    spec = {"shape": [size] * 3, "checks": checks, "rounds": 1 if size > 1024 else 5}
    return measure(name, "sim", spec)


def _rate(size: int, found: dict[str, float]) -> float:
    """Million multiply-adds a second."""
    return size**3 / found["seconds"] / 1e6


SUITES: dict[str, Callable[[Sequence[str], Progress], list[Row]]] = {
    "gemm": _measured_suite(rows.GEMM),
    "attention": _measured_suite(rows.ATTENTION),
    "rmsnorm": _measured_suite(rows.RMSNORM),
    "softmax": _measured_suite(rows.SOFTMAX),
    "dequant": _measured_suite(rows.DEQUANT),
    "fp8": _measured_suite(rows.FP8),
    "decode": _measured_suite(rows.DECODE),
    "compile": compile_,
    "launch": launch,
    "sim": sim,
}
NEEDS_GPU = frozenset(SUITES) - {"compile", "sim"}
