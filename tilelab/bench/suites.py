"""The suites: what is measured, in which unit, against which bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelab.bench.peers import measure
from tilelab.bench.table import Row
from tilelab.target import SM90A

Progress = Callable[[str], None]

SEED = "128x128x64, 3 stages, 128 threads (the seed's)"
SHAPE = [1024, 1024, 1024]


def _teraflops(shape: Sequence[int], milliseconds: float) -> float:
    m, n, k = shape
    return 2 * m * n * k / milliseconds / 1e9


def _roofline(shape: Sequence[int]) -> float:
    """TFLOP/s: the tensor cores' peak, or what memory bandwidth allows for one pass."""
    m, n, k = shape
    flops, moved = 2 * m * n * k, 2 * (m * k + k * n + m * n)
    by_memory = flops / moved * SM90A.limits.dram_bytes_per_second
    return min(SM90A.limits.tensor_flops_16bit, by_memory) / 1e12


def gemm(peers: Sequence[str], progress: Progress) -> list[Row]:
    """The seed's configuration at three sizes, TFLOP/s; every result is checked before timing."""
    rows: list[Row] = []
    for size in (2048, 4096, 8192):
        shape = [size] * 3
        spec = {"shape": shape}
        progress(f"gemm {size}")
        ours = measure("tilelab", "gemm", spec)
        values: dict[str, float | None] = {"tilelab": _teraflops(shape, ours["kernel"])}
        values["torch"] = _teraflops(shape, ours["torch"]) if "torch" in peers else None
        note = f"{SEED}; relative error {ours['error']:.1e}"
        values["tilelang"] = values["tilelab/tilelang"] = None
        values["tilelab/torch"] = ours["torch"] / ours["kernel"]
        if "tilelang" in peers:
            progress(f"gemm {size}, tilelang")
            theirs = measure("tilelang", "gemm", spec)
            values["tilelang"] = _teraflops(shape, theirs["kernel"])
            # Each process timed torch too: comparing shares of it cancels the chip's clock.
            share = (ours["torch"] / ours["kernel"]) / (theirs["torch"] / theirs["kernel"])
            values["tilelab/tilelang"] = share
        rows.append(Row(f"gemm fp16 {size}^3", "TFLOP/s", values, _roofline(shape), note))
    return rows


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
    "gemm": gemm,
    "compile": compile_,
    "launch": launch,
    "sim": sim,
}
NEEDS_GPU = frozenset({"gemm", "launch"})
