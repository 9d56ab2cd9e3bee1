"""T.reduce_*, T.fill and T.alloc_reducer on a GPU: the programs of tests/ops."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels import AMPERE, HOPPER
from tests.ops.reduce_programs import (
    KINDS,
    WHERE,
    check_fill,
    check_nan,
    check_reduce,
    check_regions,
    check_shared_out,
)
from tests.ops.reducer_programs import check_older_form, check_rows, check_several_loops

pytestmark = pytest.mark.gpu
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])
places = pytest.mark.parametrize(("src", "out"), [(a, b) for a in WHERE for b in WHERE])
SHAPES = [((64, 100), 1), ((100, 24), 0), ((7,), 0), ((3, 5, 33), 1)]


@target
@places
def test_memory(target: Any, src: str, out: str) -> None:
    for shape, dim in SHAPES:
        check_reduce(target, "cuda", shape, dim, src=src, out=out, clear=False)
        check_reduce(target, "cuda", shape, dim, src=src, out=out, kind="max", keep=True)
    check_reduce(target, "cuda", (6, 50), 1, src=src, out=out, threads=48)
    for clear in (True, False):
        check_regions(target, "cuda", src, out, clear)


@target
def test_results_shared_out(target: Any) -> None:
    check_shared_out(target, "cuda")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int64", "float16", "bfloat16"])
def test_kinds(kind: str, dtype: str) -> None:
    if not (kind.startswith("bit") and "float" in dtype):
        check_reduce(HOPPER, "cuda", (5, 96), 1, kind=kind, dtype=dtype)


def test_truth_values() -> None:
    for kind in ("bitand", "bitor", "bitxor"):
        check_reduce(HOPPER, "cuda", (40, 6), 0, kind=kind, dtype="bool")


@target
def test_nan_and_fill(target: Any) -> None:
    check_nan(target, "cuda", True)
    check_nan(target, "cuda", False)
    check_fill(target, "cuda")


@target
@pytest.mark.parametrize("op", ["sum", "max", "min", "bitand", "bitor", "bitxor"])
def test_reducer(target: Any, op: str) -> None:
    check_rows(target, "cuda", op, 128)
    check_rows(target, "cuda", op, 160)


@target
def test_reducer_forms(target: Any) -> None:
    check_older_form(target, "cuda")
    check_several_loops(target, "cuda")
