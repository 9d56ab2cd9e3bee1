"""The CUDA text of programs with atomics, barriers and roles compiles (no GPU is needed)."""

from __future__ import annotations

from typing import Any

import pytest

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops import atomic_programs as atomics
from tests.ops import thread_programs as threads
from tests.thread.nvrtc import compile_cuda, needs_nvrtc
from tilelab.target import SM80, SM90A

target = pytest.mark.parametrize(
    ("target", "chip"), [(HOPPER, SM90A), (AMPERE, SM80)], ids=["hopper", "ampere"]
)


def _machine_code(kernel: Any, chip: Any) -> str:
    return compile_cuda(kernel.get_kernel_source(kernel_only=False), chip)[0]


@needs_nvrtc
@target
def test_atomics(target: Any, chip: Any) -> None:
    for dtype in atomics.DTYPES:
        for op in atomics.UPDATES:
            kernel = atomics.tile_update((24, 60), 3, op, dtype, "shared", "acq_rel", target)
            assert "MEMBAR" in _machine_code(kernel, chip)
    kernel = atomics.tile_update((24, 60), 3, "add", "float16", "fragment", None, target)
    assert ("F16x2" if chip is SM80 else "F16x4") in _machine_code(kernel, chip)


@needs_nvrtc
@target
@pytest.mark.parametrize("style", threads.STYLES)
def test_roles(target: Any, chip: Any, style: str) -> None:
    if style == "tma" and chip is SM80:
        pytest.skip("no TMA")
    kernel = tilelab.compile(threads.ring_gemm(style), target=target)
    assert "SYNCS" in _machine_code(kernel, chip) or chip is SM80


@needs_nvrtc
@target
def test_warp_values(target: Any, chip: Any) -> None:
    kernel = tilelab.compile(threads.warp_values(), target=target)
    sass = _machine_code(kernel, chip)
    assert all(word in sass for word in ("SHFL.BFLY", "SHFL.UP", "SHFL.IDX", "VOTE", "MATCH"))


@needs_nvrtc
@target
def test_elements_and_barriers(target: Any, chip: Any) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64,), "float32"), H: T.Tensor((64,), "bfloat16"), E: T.Tensor((4,), "int64"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            bar = T.alloc_barrier([64, 1])
            T.atomic_addx4(A[t % 2 * 4], A[t // 4 * 4])
            T.atomic_addx2(H[0], H[2])
            T.atomic_or(E[0], 1)
            T.atomic_store(E[1], T.atomic_load(E[2], memory_order="acquire"))
            T.atomic_max(A[0], A[t])
            T.ptx_cp_async(T.access_ptr(s[t], "w"), T.access_ptr(A[t]), 1)
            T.cp_async_barrier_noinc(bar[0])
            T.mbarrier_wait_parity(bar[0], 0)
            A[t] = T.syncthreads_and(s[t] > 0) + T.syncthreads_count(s[t] > 0)
            T.sync_warp()
            T.named_barrier_arrive(3, 128)
            if T.shuffle_elect(64):
                T.barrier_arrive(bar[1])
            T.barrier_wait(bar[1], 0)
            A[t] = T.reinterpret(T.clz(T.popcount(E[3])), "float32")

    assert "ATOM" in _machine_code(tilelab.compile(main, target=target), chip)
