"""Reductions in several chains: how many, and that the result is the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelab
import tilelab.language as T


def _reduction(rows: int, columns: int, kind: str, threads: int = 128) -> Any:
    source, result = T.Tensor((rows, columns), "float32"), T.Tensor((rows,), "float32")

    @T.prim_func
    def main(A: source, B: result):
        with T.Kernel(1, threads=threads):
            tile = T.alloc_fragment((rows, columns), "float32")
            out = T.alloc_fragment((rows,), "float32")
            T.copy(A, tile)
            T.reduce(tile, out, kind, dim=1)
            T.copy(out, B)

    return main


def _compiled(configs: Any = None, *how: Any) -> Any:
    return tilelab.compile(_reduction(*how), out_idx=[1], target="sm_90a", pass_configs=configs)


def _chains(text: str, rows: int) -> int:
    found = re.search(r"float out_chains\[(\d+)\]", text)
    return 1 if found is None else int(found[1]) // rows


@pytest.mark.parametrize(
    "rows, columns, results, chains",
    [
        (1, 8192, 1, 4),  # 64 registers for one result
        (1, 1024, 1, 2),  # 8: two chains of 4
        (1, 512, 1, 1),  # too short to be worth it
        (128, 64, 1, 1),
    ],
)
def test_enough_chains_to_cover_a_latency(
    rows: int, columns: int, results: int, chains: int
) -> None:
    text = _compiled(None, rows, columns, "max").get_kernel_source()
    assert _chains(text, results) == chains


def test_switches() -> None:
    assert _chains(_compiled({"tl.reduction_chains": False}, 1, 8192, "max").kernel_source, 1) == 1
    exact = {"tl.precise_math": True}
    assert _chains(_compiled(exact, 1, 8192, "sum").kernel_source, 1) == 1  # as written
    assert _chains(_compiled(exact, 1, 8192, "max").kernel_source, 1) == 4  # in any order the same


@pytest.mark.parametrize("kind", ["sum", "max", "min", "abssum", "absmax"])
def test_chains_compute_the_reduction(kind: str) -> None:
    a = np.random.default_rng(0).standard_normal((2, 6144)).astype(np.float32)
    got = _compiled(None, 2, 6144, kind)(a)
    values = np.abs(a) if kind.startswith("abs") else a
    want = getattr(np, kind.removeprefix("abs"))(values.astype(np.float64), axis=1)
    assert np.allclose(got, want, rtol=1e-5, atol=1e-4)
