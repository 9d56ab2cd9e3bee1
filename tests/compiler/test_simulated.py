"""The compiled GEMM in the simulator: right results, no findings, no bank conflict."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER, build, gemm, inputs

TARGETS = {"hopper": HOPPER, "ampere": AMPERE}
target = pytest.mark.parametrize("target", list(TARGETS))


def _error(got: Any, reference: Any) -> float:
    return float((got.float() - reference).norm() / reference.norm().clamp(min=1e-3))


@target
@pytest.mark.parametrize("stages", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("tails", list(itertools.product([False, True], repeat=3)))
def test_all_tails_and_stages(target: str, stages: int, tails: tuple[bool, bool, bool]) -> None:
    sizes = tuple(64 + 37 * t for t in tails)
    kernel = build(*sizes, target=TARGETS[target], bm=64, bn=64, bk=32, stages=stages)
    a, b, reference = inputs(*sizes)  # type: ignore[arg-type]
    assert _error(kernel(a, b), reference) < 5e-4


@target
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_no_bank_conflict(target: str, dtype: str, ta: bool, tb: bool) -> None:
    kernel = build(256, 256, 128, target=TARGETS[target], ta=ta, tb=tb, dtype=dtype)
    a, b, reference = inputs(256, 256, 128, ta, tb, dtype)
    report = kernel.simulate(a, b)
    assert report.ok, str(report)
    total = report.total()
    assert total.units("shared") == total.ideal("shared")
    assert total.units("global") == total.ideal("global")
    assert _error(kernel(a, b), reference) < 4e-3


@target
def test_epilogue_block_order_and_dynamic_sizes(target: str) -> None:
    M, N, K = (T.dynamic(n) for n in "MNK")
    function = gemm(M, N, K, bm=64, bn=64, bk=32, relu=True, swizzle=2)
    kernel = tilelab.compile(function, out_idx=[2], target=TARGETS[target])
    for sizes in [(128, 64, 64), (200, 136, 72), (77, 99, 33), (1, 1, 1)]:
        a, b, reference = inputs(*sizes)
        assert _error(kernel(a, b), reference.clamp(min=0)) < 5e-4, sizes


@target
@pytest.mark.parametrize("stages", [0, 1, 2, 3])
@pytest.mark.parametrize("loop", [T.serial, T.unroll])
def test_a_pipeline_that_is_entered_again(target: str, stages: int, loop: Any) -> None:
    import torch

    @T.prim_func
    def main(
        A: T.Tensor((2, 64, 96), "float16"),
        B: T.Tensor((96, 64), "float16"),
        C: T.Tensor((2, 64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            for r in loop(2):
                T.clear(c)
                for k in T.Pipelined(3, num_stages=stages):
                    T.copy(A[r, 0:64, k * 32 : (k + 1) * 32], a)
                    T.copy(B[k * 32, 0], b)
                    T.gemm(a, b, c)
                T.copy(c, C[r, 0:64, 0:64])

    kernel = tilelab.compile(main, out_idx=[2], target=TARGETS[target])
    a, b = torch.randn(2, 64, 96).half(), torch.randn(96, 64).half()
    assert _error(kernel(a, b), a.float() @ b.float()) < 5e-4


def test_too_much_shared_memory_says_what_fits() -> None:
    with pytest.raises(ValueError, match="shared memory") as raised:
        build(1024, 1024, 1024, bm=128, bn=256, stages=5)
    message = str(raised.value)
    assert "232448 bytes" in message and "num_stages=4 is the largest" in message
    assert "B_shared: 5 stages of 32768 bytes = 163840 bytes" in message


@pytest.mark.expects_findings
def test_unguarded_accesses_are_found() -> None:
    import torch

    @T.prim_func
    def main(A: T.Tensor((100,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                A[i] = 1.0

    tilelab.compile(main)(torch.zeros(100))  # guarded: writes outside are dropped
    unguarded = tilelab.compile(main, pass_configs={"tl.disable_safe_memory_legalize": True})
    report = unguarded.simulate(torch.zeros(100))
    assert report.codes() == {"TL2001"} or "TL2001" in report.codes()
