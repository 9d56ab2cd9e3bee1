"""fold-clear: which clears of an accumulator disappear, and that results stay right."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER, gemm

M, N, K, STEP = 64, 64, 192, 64
FOLDED = "it needs no zeros"


def _kernel(form: str) -> Any:
    """C = A @ B, or the sum of its partial products over K, cleared as `form` says."""

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float")
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, STEP), "float16")
            b = T.alloc_shared((STEP, N), "float16")
            part = T.alloc_fragment((M, N), "float")
            acc = T.alloc_fragment((M, N), "float")
            T.clear(acc)
            if form != "at the start":
                T.clear(part)
            for k in T.Pipelined(K // STEP, num_stages=2):
                T.copy(A[0, k * STEP], a)
                T.copy(B[k * STEP, 0], b)
                if form == "at the start":
                    T.clear(part)
                T.gemm(a, b, part)
                if form != "before the loop":
                    for i, j in T.Parallel(M, N):
                        acc[i, j] += part[i, j]
                if form not in ("at the start", "before the loop"):
                    T.fill(part, 1 if form == "ones" else 0)
            if form in ("before the loop", "read after"):
                for i, j in T.Parallel(M, N):
                    acc[i, j] += part[i, j]
            T.copy(acc, C)

    return tilelab.compile(kernel, out_idx=[2], target=HOPPER)


def _notes(kernel: Any) -> str:
    return "\n".join(note.text for _, note in kernel.trace.notes())


@pytest.mark.parametrize(
    ("form", "folds"),
    [
        ("at the start", True),
        ("at the end", True),
        ("before the loop", True),
        ("read after", False),  # the zeros are read behind the loop
        ("ones", False),
    ],
)
def test_clears(form: str, folds: bool) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(M, K).half(), torch.randn(K, N).half()
    kernel = _kernel(form)
    want = a.float() @ b.float() + (2 if form == "ones" else 0)
    report = kernel.simulate(a, b)
    assert report.ok, report
    assert torch.allclose(report.outputs[0], want, atol=2e-3)
    assert (FOLDED in _notes(kernel)) is folds
    assert ("part[i] = 0.0f" not in kernel.get_kernel_source()) is folds


def test_mma_keeps_its_clear() -> None:
    """Only wgmma can overwrite."""
    kernel = tilelab.compile(gemm(128, 128, 128), target=AMPERE)
    assert FOLDED not in _notes(kernel)


@pytest.mark.parametrize("where", ["before the gemm", "before the clear"])
def test_an_iteration_that_ends_early_keeps_its_clears(where: str) -> None:
    """It skips the gemm that would overwrite, or the clear that the next one relies on."""
    first = where == "before the gemm"

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float")
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, STEP), "float16")
            b = T.alloc_shared((STEP, N), "float16")
            part = T.alloc_fragment((M, N), "float")
            acc = T.alloc_fragment((M, N), "float")
            T.clear(acc)
            T.clear(part)
            for k in T.serial(K // STEP):
                T.copy(A[0, k * STEP], a)
                T.copy(B[k * STEP, 0], b)
                if first and k == 0:
                    continue
                T.gemm(a, b, part)
                if not first:
                    for i, j in T.Parallel(M, N):
                        acc[i, j] += part[i, j]
                    if k == 0:
                        continue
                    T.clear(part)
            if first:
                T.copy(part, C)
            else:
                T.copy(acc, C)

    made = tilelab.compile(kernel, out_idx=[2], target=HOPPER)
    assert FOLDED not in _notes(made)
    torch.manual_seed(0)
    a, b = torch.randn(M, K).half(), torch.randn(K, N).half()
    parts = [a[:, k : k + STEP].float() @ b[k : k + STEP].float() for k in range(0, K, STEP)]
    want = sum(parts[1:]) if first else sum(parts) + parts[0]  # the second sum holds the first
    report = made.simulate(a, b)
    assert report.ok, report
    assert torch.allclose(report.outputs[0], want, atol=2e-3)
