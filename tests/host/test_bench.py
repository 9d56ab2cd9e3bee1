"""tilelab bench: the measured programs are right on the simulator; rows, bounds and spreads."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest
import torch

import tilelab.shim
from tilelab.bench import SUITES, Row, Table, suites
from tilelab.bench.peers import measure
from tilelab.bench.problems import PROBLEMS
from tilelab.bench.rows import ATTENTION, DECODE, DEQUANT, FP8, GEMM, RMSNORM, SOFTMAX
from tilelab.bench.timing import spread
from tilelab.errors import TileRuntimeError

SMALL: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "gemm": ((128, 128, 128), {}),
    "fp8_gemm": ((128, 256, 256), {}),
    "dequant_gemm": ((128, 128, 256), {}),
    "rmsnorm": ((3, 1024), {"threads": 128}),
    "softmax": ((3, 1024), {"threads": 128}),
    "attention": ((1, 2, 128, 64), {"causal": True, "tile_m": 64, "tile_n": 64, "threads": 128}),
    "decode": ((1, 8, 2, 256, 64, 2), {}),
}


@pytest.mark.parametrize("program", SMALL)
def test_programs(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program against the reference that the benchmark checks with."""
    tilelab.shim.install()
    problem, (sizes, config) = PROBLEMS[program], SMALL[program]
    spec = {"program": program, "sizes": sizes, "config": config}
    drawn, filled, ones = torch.randn, torch.empty, torch.ones
    on_cpu = {"randn": drawn, "empty": filled, "ones": ones,
              "randint": torch.randint, "rand": torch.rand}  # fmt: skip
    for name, make in on_cpu.items():
        monkeypatch.setattr(torch, name, _without_device(make))
    torch.manual_seed(0)
    inputs = problem.inputs(spec)
    kernel = importlib.import_module(f"tilelab.bench.programs.{program}").build(*sizes, **config)
    want = problem.reference(spec, *inputs)
    got = kernel(*inputs)
    assert (got.float() - want).norm() / want.norm() < problem.tolerance


def _without_device(make: Any) -> Any:
    def made(*args: Any, device: str = "cpu", **kwargs: Any) -> Any:
        del device
        return make(*args, **kwargs)

    return made


def test_two_levels() -> None:
    tilelab.shim.install()
    build = importlib.import_module("tilelab.bench.programs.fp8_gemm").build
    torch.manual_seed(0)
    a, b = (torch.randn(128, 256).to(torch.float8_e4m3fn) for _ in range(2))
    two = build(128, 128, 256, tile_n=128, two_levels=True)(a, b).float()
    want = a.float() @ b.float().T
    assert (two - want).norm() / want.norm() < 4e-3
    assert "acc[i] += part[i]" in build(128, 128, 256, two_levels=True).get_kernel_source()


@pytest.mark.parametrize("row", [*GEMM, *ATTENTION, *FP8, *DEQUANT, *RMSNORM, *SOFTMAX, *DECODE])
def test_rows(row: Any) -> None:
    """A row's rate at its bound is the bound; its name says the sizes; its problem is known."""
    assert row.program in PROBLEMS and row.spec()["sizes"] == row.sizes
    seconds = max(row.moved / 4.8e12, row.flops / (989e12 * (2 if row.fp8 else 1)))
    assert math.isclose(row.rate(seconds * 1e3), row.bound, rel_tol=0.02)


def test_suites() -> None:
    wanted = {"gemm", "attention", "rmsnorm", "softmax", "dequant", "fp8", "decode"}
    assert wanted | {"compile", "launch", "sim"} <= set(SUITES)


def test_spread_in_tables() -> None:
    low, middle, high = spread([float(n) for n in range(1, 12)])
    assert (low, middle, high) == (2.0, 6.0, 10.0)
    row = Row("r", "TB/s", {"a": 4.0, "a/b": 0.95, "c": None}, spreads={"a/b": (0.9, 1.0)})
    text = Table("s", "c", "d", "m", [row]).to_markdown()
    assert "| 4.00 | 0.950 [0.90-1.00] |  |" in text


def test_interpreters_run_the_gemm_in_processes_of_their_own() -> None:
    spec = {"shape": [128, 128, 128], "checks": True, "rounds": 1}
    found = measure("tilelab", "sim", spec)
    assert found["error"] < 1e-3 and 0 < found["peak_gib"] < 6
    assert found["seconds"] > 0 and found["processor"] > 0
    with pytest.raises(TileRuntimeError, match="no checks"):
        measure("triton", "sim", spec)


def test_sim_rows_leave_peers_out_that_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int, bool]] = []

    def fake(name: str, task: str, spec: dict[str, Any]) -> dict[str, float]:
        asked.append((name, spec["shape"][0], spec["checks"]))
        return {"seconds": 1.0, "processor": 1.0, "peak_gib": 1.0}

    monkeypatch.setattr(suites, "measure", fake)
    rows = {row.name: row.values for row in suites.sim(suites.Beside(), lambda text: None)}
    assert {name for name, _, _ in asked} == {"tilelab"}
    assert rows["gemm fp16 512^3, all checks"] == {
        "tilelab": 512**3 / 1e6, "triton": None, "pallas": None,
    }  # fmt: skip
    asked.clear()
    suites.sim(suites.Beside(("triton", "pallas")), lambda text: None)
    assert ("pallas", 512, True) in asked and ("triton", 512, False) in asked
    assert ("triton", 512, True) not in asked  # its interpreter has no checks
