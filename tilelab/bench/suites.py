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
    """The seed's 1024^3 GEMM for sm_90a on the simulator, all checks on."""
    del peers
    progress("sim 1024^3")
    found: dict[str, Any] = measure("tilelab", "sim", {"shape": SHAPE})
    rate = SHAPE[0] * SHAPE[1] * SHAPE[2] / found["seconds"] / 1e6
    note = f"relative error {found['error']:.1e}"
    return [
        Row("simulate the seed's GEMM 1024^3", "s", {"tilelab": found["seconds"]}, note=note),
        Row("million multiply-adds a second", "M/s", {"tilelab": rate}),
        Row("peak memory of the process", "GiB", {"tilelab": found["peak_gib"]}),
    ]


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
