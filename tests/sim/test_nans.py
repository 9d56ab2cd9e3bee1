"""The check "nan": where a NaN is first produced, from which operands; off unless it is named."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tilelab.sim import SimReport

N = 64
INF, NAN = math.inf, math.nan
NAMED = {"default", "nan"}


def one_line(operation: str) -> Any:
    """B[i] = an operation of A[i] and A[0], on the line marked HERE."""

    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=N):
            for i in T.Parallel(N):
                if operation == "-":
                    B[i] = A[i] - A[0]  # HERE -
                if operation == "*":
                    B[i] = A[i] * 0.0  # HERE *
                if operation == "/":
                    B[i] = A[i] / A[i]  # HERE /
                if operation == "log":
                    B[i] = T.log(A[i])  # HERE log
                if operation == "sqrt":
                    B[i] = T.exp(T.sqrt(A[i]))  # HERE sqrt
                if operation == "guarded":
                    B[i] = T.if_then_else(A[i] < 0.0, 0.0, T.sqrt(A[i]))

    return main


def softmax(guarded: bool) -> Any:
    """Of rows that a mask may empty: infinity minus infinity."""

    @T.prim_func
    def main(A: T.Tensor((4, N), "float32"), B: T.Tensor((4, N), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((4, N), "float32")
            top = T.alloc_fragment((4,), "float32")
            T.copy(A, a)
            T.reduce_max(a, top, dim=1)
            for i, j in T.Parallel(4, N):
                if guarded:
                    a[i, j] = T.exp(a[i, j] - T.if_then_else(top[i] > -INF, top[i], 0.0))
                else:
                    a[i, j] = T.exp(a[i, j] - top[i])  # HERE softmax
            T.copy(a, B)

    return main


def product() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((N, 32), "float16"),
        B: T.Tensor((32, N), "float16"),
        C: T.Tensor((N, N), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((N, 32), "float16")
            b = T.alloc_shared((32, N), "float16")
            c = T.alloc_fragment((N, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)  # HERE product
            T.copy(c, C)

    return main


def found(program: Any, *tensors: Any, target: str = "sm_90a", checks: Any = NAMED) -> SimReport:
    return tilelab.compile(program, target=target).simulate(*tensors, checks=checks)


def values(*first: float) -> Any:
    return torch.tensor([*first, *(1.0,) * (N - len(first))])


@pytest.mark.parametrize(
    ("operation", "first", "said"),
    [
        ("-", (-INF, 3.0), "the operation - makes NaN of -inf and -inf"),
        ("*", (1.0, 2.0, INF), "the operation * makes NaN of inf and 0"),
        ("/", (1.0, 0.0), "the operation / makes NaN of 0 and 0"),
        ("log", (1.0, 2.0, -1.0), "log makes NaN of -1"),
        ("sqrt", (4.0, -4.0), "sqrt makes NaN of -4"),
    ],
)
def test_the_operation_and_its_operands_are_named(operation: str, first: Any, said: str) -> None:
    report = found(one_line(operation), values(*first), torch.empty(N))
    (one,) = report.findings
    assert one.code == "TL2013" and one.message == said and one.hint
    assert one.loc is not None and one.loc.text().rstrip().endswith(f"# HERE {operation}")
    bad = next(i for i, v in enumerate(first) if not math.isfinite(v) or v in (0.0, -1.0, -4.0))
    assert (one.warp, one.lane) == divmod(bad, 32)


def test_it_is_off_unless_it_is_named() -> None:
    tensors = values(-INF), torch.empty(N)
    assert found(one_line("-"), *tensors, checks=True).ok
    assert found(one_line("-"), *tensors, checks={"default"}).ok
    assert found(one_line("-"), *tensors, checks={"nan"}).codes() == ("TL2013",)


@pytest.mark.parametrize("operation", ["-", "*", "/", "log", "sqrt"])
def test_a_nan_that_was_there_is_passed_on(operation: str) -> None:
    assert found(one_line(operation), values(2.0, NAN), torch.empty(N)).ok


def test_a_side_that_is_not_chosen_makes_none() -> None:
    assert found(one_line("guarded"), values(1.0, -4.0), torch.empty(N)).ok


@pytest.mark.parametrize("guarded", [True, False])
def test_the_softmax_of_a_masked_row(guarded: bool) -> None:
    rows = torch.ones(4, N)
    rows[2] = -INF
    report = found(softmax(guarded), rows, torch.empty(4, N))
    assert report.codes() == (() if guarded else ("TL2013",))
    if not guarded:
        loc = report.findings[0].loc
        assert loc is not None and loc.text().rstrip().endswith("# HERE softmax")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_matrix_product_of_infinity_and_zero(target: str) -> None:
    a, b, c = torch.ones(N, 32).half(), torch.ones(32, N).half(), torch.empty(N, N)
    assert found(product(), a, b, c, target=target).ok
    a[5, 3], b[3, 7] = INF, 0.0
    report = found(product(), a, b, c, target=target)
    assert set(report.codes()) == {"TL2013"}
    loc = report.findings[0].loc
    assert loc is not None and loc.text().rstrip().endswith("# HERE product")
