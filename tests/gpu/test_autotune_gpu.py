"""The autotuner and the helpers around it on a real GPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tilelab.autotuner import AutoTuner, set_autotune_inputs
from tilelab.carver import MatmulTemplate
from tilelab.carver.arch import CUDA, driver


def product(M: int, N: int, K: int, bm: int = 64, bn: int = 64, stages: int = 2) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            a = T.alloc_shared((bm, 64), "float16")
            b = T.alloc_shared((bn, 64), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * bm, k * 64], a)
                T.copy(B[bx * bn, k * 64], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * bm, bx * bn])

    return main


CONFIGS = [
    {"bm": 64, "bn": 64, "stages": 2}, {"bm": 128, "bn": 128, "stages": 3},
    {"bm": 128, "bn": 1024, "stages": 8},
]  # fmt: skip


def test_the_best_config_is_measured_and_right() -> None:
    tuned = tilelab.autotune(configs=CONFIGS, ref_prog=lambda a, b: a @ b.T, warmup=3, rep=10)(
        tilelab.jit(out_idx=[-1])(product)
    )
    kernel, result = tuned(512, 512, 256), tuned.tune(512, 512, 256)
    assert kernel.config in CONFIGS[:2] and kernel.latency.source == "measured"
    assert result.trials[2].latency is None and "TL1801" in result.trials[2].problem
    assert kernel.ref_latency is not None and kernel.ref_latency > 0
    a, b = (torch.randn(512, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    torch.testing.assert_close(kernel(a, b), a @ b.T, rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize("backend", ["event", "cudagraph"])
def test_step_by_step_with_early_stop(backend: str) -> None:
    tuner = AutoTuner.from_kernel(lambda **config: product(1024, 1024, 1024, **config), CONFIGS[:2])
    tuner.set_compile_args(out_idx=[-1], target="auto").set_profile_args(backend=backend)
    result = tuner.run(warmup=1, rep=5, early_stop=True, early_stop_factor=1.01)
    assert result.latency is not None and result.config in CONFIGS


def test_given_inputs_keep_their_values() -> None:
    @tilelab.jit
    def double(n, block: int = 128):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(n // block, threads=128) as bx:
                for i in T.Parallel(block):
                    A[bx * block + i] = A[bx * block + i] * 2

        return main

    a = torch.ones(1024, device="cuda")
    with set_autotune_inputs(a):
        tilelab.autotune(configs=[{"block": 128}, {"block": 256}], warmup=1, rep=1)(double)(1024)
    assert bool((a == 1).all())


def test_suggestions_compile_and_run() -> None:
    assert driver.get_num_sms() == torch.cuda.get_device_properties(0).multi_processor_count
    hints = MatmulTemplate(512, 512, 512).with_arch(CUDA("cuda")).recommend_hints(3)
    a, b = (torch.randn(512, 512, device="cuda", dtype=torch.float16) for _ in range(2))
    for hint in hints:
        program = product(512, 512, 512, *hint.block, hint.pipeline_stage)
        c = tilelab.compile(program, out_idx=[-1])(a, b)
        torch.testing.assert_close(c, a @ b.T, rtol=1e-2, atol=1e-1)


def test_rewritten_text_runs() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                A[i] = 1234.0

    try:
        tilelab.register_cuda_postproc(lambda code, target: code.replace("1234", "4321"))
        kernel, a = tilelab.compile(main), torch.zeros(128, device="cuda")
        kernel(a)
    finally:
        tilelab.register_cuda_postproc(None)
    assert bool((a == 4321).all())
