"""What a person is told who measures, compares or simulates with wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import expect


@T.prim_func
def doubled(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i] * 2


KERNEL = tilelab.compile(doubled, target="sm_90a", out_idx=[1])
PROFILER = KERNEL.get_profiler()


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda: PROFILER.do_bench(warmup=-1), "TL1645", ("warmup=-1", "milliseconds")),
        (lambda: PROFILER.do_bench(rep="long"), "TL1645", ("rep='long'",)),
        (lambda: PROFILER.do_bench(rep=float("nan")), "TL1645", ("rep=nan",)),
        (lambda: PROFILER.do_bench(quantiles=[2.0]), "TL1645", ("quantile=2.0", "0 to 1")),
        (lambda: PROFILER.assert_allclose(lambda a: None), "TL1645", ("1 outputs", "reference 0")),
        (lambda: PROFILER.assert_allclose(lambda a: (a, a)), "TL1645", ("the reference 2",)),
        (lambda: KERNEL.get_profiler("Zero"), "TL1645", ("TensorSupplyType.Zero",)),
        (lambda: KERNEL.simulate(torch.zeros(64), check="all"), "TL1407", ("checks=",)),
        (lambda: KERNEL.simulate(torch.zeros(64), seed="x"), "TL1002", ("seed='x'",)),
        (lambda: tilelab.par_compile([doubled], num_workers=float("nan")), "TL1643", ("nan",)),
    ],
)
def test_told(call: Callable[[], Any], code: str, words: tuple[str, ...]) -> None:
    with expect(Exception, code, *words, "test_measuring.py, line") as caught:
        call()
    assert caught.error.hint


def test_right_calls_measure() -> None:
    PROFILER.assert_allclose(lambda a: a * 2)
    assert len(PROFILER.do_bench(quantiles=[0.5, 1])) == 2
