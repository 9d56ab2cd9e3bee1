"""The suites: what is measured, in which unit, against which bound."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab.bench import rows
from tilelab.bench.peers import measure
from tilelab.bench.problems import PROBLEMS, names_of
from tilelab.bench.reference import Reference
from tilelab.bench.rows import Measured
from tilelab.bench.table import Row
from tilelab.errors import TileRuntimeError

Progress = Callable[[str], None]

SHAPE = [1024, 1024, 1024]


@dataclass(frozen=True)
class Beside:
    """What is measured beside tilelab: names of installed peers, and hand-written kernels."""

    peers: Sequence[str] = ()
    references: Sequence[Reference] = ()


Suite = Callable[[Beside, Progress], list[Row]]


def _measured_suite(rows: Sequence[Measured]) -> Suite:
    def suite(beside: Beside, progress: Progress) -> list[Row]:
        return [_row(row, beside, progress) for row in rows]

    return suite


_OWN_COLUMN = ("triton",)
"""Columns that are asked for by their own name; the others but "copy" come with torch."""


def _wanted(row: Measured, peers: Sequence[str]) -> list[str]:
    """The columns of the row's problem that are measured."""
    return [
        c for c in PROBLEMS[row.program].peers
        if c == "copy" or (c if c in _OWN_COLUMN else "torch") in peers
    ]  # fmt: skip


def _row(row: Measured, beside: Beside, progress: Progress) -> Row:
    """One row: tilelab with torch, Triton and hand-written kernels in one process, TileLang in
    another with torch beside it."""
    problem, wanted = PROBLEMS[row.program], _wanted(row, beside.peers)
    names = names_of(problem, row.spec())
    chosen = {f"{r.name}.cu": r for r in beside.references if r.applies(row.program, names)}
    described = [{"column": c, "path": str(r.path.resolve())} for c, r in chosen.items()]
    progress(row.name)
    ours = measure("tilelab", "measured",
                   {**row.spec(), "columns": wanted, "references": described})  # fmt: skip
    values: dict[str, float | None] = {"tilelab": row.rate(ours["ms"]["kernel"][1])}
    spreads: dict[str, tuple[float, float]] = {}
    for c in (*problem.peers, *chosen):
        ratio = ours["ratio"].get(c)
        values[c] = None if ratio is None else row.rate(ours["ms"][c][1])
        values[f"tilelab/{c}"] = None if ratio is None else ratio[1]
        if ratio is not None:
            spreads[f"tilelab/{c}"] = (ratio[0], ratio[2])
    note = f"error {ours['error']:.1e}; {ours['rounds']} rounds"
    values["tilelang"] = values["tilelab/tilelang"] = None
    if "tilelang" in beside.peers:
        note += _beside_tilelang(row, wanted[:1], ours, values, spreads, progress)
    return Row(row.name, row.unit, values, row.bound, note, spreads, row.flops, row.moved)


def _beside_tilelang(
    row: Measured,
    wanted: Sequence[str],
    ours: dict[str, Any],
    values: dict[str, float | None],
    spreads: dict[str, tuple[float, float]],
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
    # Each process timed the same peer too: comparing shares of it cancels the chip's clock.
    mine, other = ours["ratio"], theirs["ratio"]
    low, middle, high = mine[wanted[0]] if wanted else _inverse(ours["ms"]["kernel"])
    least, median, most = other[wanted[0]] if wanted else _inverse(theirs["ms"]["kernel"])
    values["tilelab/tilelang"] = middle / median
    # Two processes have no pairs of launches: the bracket is the widest that both spreads allow.
    spreads["tilelab/tilelang"] = (low / most, high / least)
    return ""


def _inverse(milliseconds: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = milliseconds
    return 1 / high, 1 / middle, 1 / low


def compile_(beside: Beside, progress: Progress) -> list[Row]:
    """Import and cold compile of the seed's GEMM: caches empty, second kernel of the process."""
    found: dict[str, dict[str, float]] = {}
    for name in ("tilelab", *(p for p in beside.peers if p == "tilelang")):
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


def launch(beside: Beside, progress: Progress) -> list[Row]:
    """Host time of one call of a small GEMM with its output allocated."""
    shape = [128, 128, 64]
    values: dict[str, float | None] = {"tilelab": None, "torch": None, "tilelang": None}
    progress("launch, tilelab")
    ours = measure("tilelab", "launch", {"shape": shape})
    values["tilelab"] = ours["kernel"]
    values["torch"] = ours["torch"] if "torch" in beside.peers else None
    if "tilelang" in beside.peers:
        progress("launch, tilelang")
        values["tilelang"] = measure("tilelang", "launch", {"shape": shape})["kernel"]
    note = "median of 20 rounds of 300 calls"
    return [Row("host time of a call, output allocated", "us", values, note=note)]


def sim(beside: Beside, progress: Progress) -> list[Row]:
    """The seed's GEMM on a CPU: beside other interpreters at 512^3, then its growth."""
    rows: list[Row] = []
    for checks in (True, False):
        found: dict[str, dict[str, float]] = {}
        for name, can_check in (("tilelab", True), *_INTERPRETERS.items()):
            if (name == "tilelab" or name in beside.peers) and (can_check or not checks):
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


def ladder(beside: Beside, progress: Progress) -> list[Row]:
    """What each step of the generated structure gains: switches turned on one by one, all variants
    of a size launched in turn. Columns: the rate, and ratios to the textbook structure, to the
    step before and to torch."""
    return [r for row in rows.LADDER for r in _steps(row, _wanted(row, beside.peers), progress)]


def _steps(row: Measured, wanted: Sequence[str], progress: Progress) -> list[Row]:
    wanted = [c for c in wanted if c == "torch"]
    steps = rows.ladder(row)
    progress(f"ladder, {row.name}")
    found = measure("tilelab", "variants", {**row.spec(), "variants": steps, "columns": wanted})
    ratio = {
        next(iter(steps)): (1.0, 1.0, 1.0),
        **found["ratio"],
    }  # a variant's time over the first's
    note, before = f"{found['rounds']} rounds", 1.0
    made: list[Row] = []
    for label in steps:
        now = ratio[label][1]
        values: dict[str, float | None] = {
            "tilelab": row.rate(found["ms"][label][1]), "to textbook": 1 / now,
            "to step before": before / now,
        }  # fmt: skip
        values.update({f"tilelab/{c}": ratio[c][1] / now for c in wanted})
        made.append(Row(f"{row.name}: {label}", row.unit, values, row.bound, note,
                        flops=row.flops, moved=row.moved))  # fmt: skip
        before = now
    return made


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


_NOTEBOOK = {
    "first picture": ("from the import to a GEMM's first picture", 3.0),
    "svg 128x128": ("SVG of a 128x128 fragment", 0.3),
    "svg 256x256": ("SVG of a 256x256 fragment", 1.0),
    "paint 128x128": ("first paint of a 128x128 fragment's explorer, in chromium", 0.5),
    "paint 256x256": ("first paint of a 256x256 fragment's explorer, in chromium", 1.0),
    "reaction": ("from the slider to the picture of another plan, compiled anew", None),
    "reaction again": ("from the slider to the picture of the kernel's own plan", None),
}
"""Key of widgets.timing -> the row's name, and the most that the notebook's requirements allow."""


def notebook(beside: Beside, progress: Progress) -> list[Row]:
    """How long the notebook's pictures take, in a fresh process; the bound is what is allowed."""
    progress("notebook")
    done = subprocess.run(
        [sys.executable, "-m", "tilelab.widgets.timing"], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return [
        Row(
            name, "s", {"tilelab": found.get(key)}, bound, "least of some rounds; empty: no browser"
        )
        for key, (name, bound) in _NOTEBOOK.items()
    ]


SUITES: dict[str, Suite] = {
    "gemm": _measured_suite(rows.GEMM),
    "ampere": _measured_suite(rows.AMPERE),
    "ladder": ladder,
    "attention": _measured_suite(rows.ATTENTION),
    "rmsnorm": _measured_suite(rows.RMSNORM),
    "softmax": _measured_suite(rows.SOFTMAX),
    "dequant": _measured_suite(rows.DEQUANT),
    "fp8": _measured_suite(rows.FP8),
    "decode": _measured_suite(rows.DECODE),
    "compile": compile_,
    "launch": launch,
    "sim": sim,
    "notebook": notebook,
}
NEEDS_GPU = frozenset(SUITES) - {"compile", "sim", "notebook"}
