"""Slots that cp.async fills are fenced for wgmma once, wherever the product stands."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER


def product(where: str, dtype: str = "float16") -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((64, 128), dtype), B: T.Tensor((128, 64), dtype),
        Keep: T.Tensor((4,), "int32"), C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 32), dtype)
            b = T.alloc_shared((32, 64), dtype)
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                if where == "branch":
                    if Keep[k] != 0:
                        T.gemm(a, b, c)
                elif where == "loop":
                    for _i in T.serial(2):
                        T.gemm(a, b, c)
                else:
                    T.gemm(a, b, c)
            T.copy(c, C)

    return main


def in_loop(text: str) -> str:
    return text[text.index("for (int k = 0") :]


@pytest.mark.parametrize("where", ["loop's body", "branch", "loop"])
def test_one_fence_stands_between_arrival_and_barrier(where: str) -> None:
    configs = {"tl.disable_warp_specialized": True}
    kernel = tilelab.compile(product(where), target=HOPPER, pass_configs=configs)
    text = in_loop(kernel.get_kernel_source())
    assert text.count("fence_proxy_async") == 1
    assert re.search(r"cp_async_wait<0>\(\);.*\n.*fence_proxy_async\(\);.*\n.*__syncthreads", text)
    report = kernel.simulate(*kernel.get_profiler().make_inputs())
    assert report.ok, report.findings


@pytest.mark.parametrize("target", [HOPPER, AMPERE])
def test_threads_that_read_slots_themselves_need_no_fence(target: Any) -> None:
    configs = {"tl.disable_warp_specialized": True, "tl.disable_wgmma": True}
    kernel = tilelab.compile(product("branch"), target=target, pass_configs=configs)
    assert "fence_proxy_async" not in kernel.get_kernel_source()
    report = kernel.simulate(*kernel.get_profiler().make_inputs())
    assert report.ok, report.findings


def handed_over(loads: str) -> Any:
    """A tensor that one block writes and fences, and another one loads behind a flag."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), F: T.Tensor((1,), "int32"),
        W: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            bar = T.alloc_barrier(128)
            if bx == 0:
                for i, j in T.Parallel(64, 64):
                    W[i, j] = A[i, j]
                T.fence_proxy_async()
                T.sync_threads()
                if T.get_thread_binding() == 0:
                    T.atomic_add(F[0], 1, memory_order="release")
            else:
                if T.get_thread_binding() == 0:
                    while T.atomic_load(F[0]) == 0:
                        T.evaluate(0)
                T.sync_threads()
                T.clear(c)
                if loads == "copy":
                    for _ in T.Pipelined(2, num_stages=2):
                        T.copy(W, s)
                        T.gemm(s, s, c)
                else:
                    T.tma_copy(W if loads == "W" else A, s, barrier=bar)
                    T.barrier_arrive(bar)
                    T.mbarrier_wait_parity(bar, 0)
                    T.gemm(s, s, c)
                T.copy(c, C)

    return main


@pytest.mark.parametrize(("loads", "whole"), [("W", True), ("A", False), ("copy", False)])
def test_a_fence_covers_tensors_that_tma_loads_and_threads_write(loads: str, whole: bool) -> None:
    """T.copy of a tensor that the kernel writes is no TMA load, for the same reason."""
    text = tilelab.compile(handed_over(loads), target=HOPPER).get_kernel_source()
    assert ("fence.proxy.async;" in text) == whole
    assert ("fence.proxy.async.shared::cta;" in text) != whole
    assert ("tma_load" in text) == (loads != "copy")
