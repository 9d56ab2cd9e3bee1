"""Programs for single threads in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops import thread_programs as p
from tilelab.errors import TileError

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
def test_warp_and_block(target: Any) -> None:
    p.check_warp_values(target, "cpu")
    p.check_block_barriers(target, "cpu")
    p.check_bits(target, "cpu")


@target
@pytest.mark.parametrize("style", p.STYLES[:3])
def test_roles(target: Any, style: str) -> None:
    p.check_roles(target, "cpu", style)


def test_tma() -> None:
    p.check_roles(HOPPER, "cpu", "tma")
    p.check_tma(HOPPER, "cpu")


@target
def test_async_copy(target: Any) -> None:
    p.check_async_copy(target, "cpu")


@target
@pytest.mark.parametrize(("threads", "rows"), [(32, 4), (8, 4), (8, 3), (48, 2), (1, 32)])
def test_thread_reduction(target: Any, threads: int, rows: int) -> None:
    p.check_thread_reduction(target, "cpu", threads, rows)


@target
def test_workspace(target: Any) -> None:
    p.check_workspace(target, "cpu")


@pytest.mark.parametrize("count", [1, 16, 32, 64])
def test_divergent_barriers(count: int) -> None:
    p.check_divergent(HOPPER, "cpu", count)


def test_c_functions_need_a_twin() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.import_source("__device__ float thrice(float x) { return 3 * x; }")
            T.import_source("__device__ void bump(float* p, float v) { *p += v; }")
            t = T.get_thread_binding()
            own = T.alloc_local((2,), "float32")
            own[1] = 0.5
            T.evaluate(T.call_extern("handle", "bump", T.address_of(own[1]), 1.0))
            B[t] = T.call_extern("float32", "thrice", A[t]) + own[1]

    kernel = tilelab.compile(main, target=HOPPER)
    assert "return 3 * x;" in kernel.get_kernel_source()
    a, b = torch.randn(64), torch.zeros(64)
    with pytest.raises(TileError, match="C function bump") as raised:
        kernel(a, b)
    assert raised.value.code == "TL1761"
    tilelab.register_extern("thrice", lambda x: 3 * x)
    tilelab.register_extern("bump", lambda place, v: place.store(place.load() + v))
    kernel(a, b)
    assert torch.equal(b, 3 * a + 1.5)


def test_registers_of_own_roles() -> None:
    def gemm(change: Any) -> str:
        @T.prim_func
        def main(A: T.Tensor((128, 256), "float16"), C: T.Tensor((128, 128), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((128, 64), "float16")
                c = T.alloc_fragment((128, 128), "float32")
                change()
                T.clear(c)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[0, k * 64], a)
                    T.gemm(a, a, c, transpose_B=True)
                T.copy(c, C)

        return tilelab.compile(main, target=HOPPER).get_kernel_source()

    assert "reg_alloc" not in gemm(T.disable_warp_group_reg_alloc)
    assert "warpgroup_reg_dealloc<40>" in gemm(lambda: T.annotate_producer_reg_dealloc(40))
    assert "warpgroup_reg_alloc<200>" in gemm(lambda: T.annotate_consumer_reg_alloc(200))


def test_barriers_of_roles_join_their_threads_only() -> None:
    @T.prim_func
    def main(A: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((256,), "float32")
            with T.ws(1):
                for i in T.Parallel(128):
                    s[i] = A[i]
                for i in T.Parallel(128):
                    A[i] = s[127 - i]
                T.sync_threads()

    text = tilelab.compile(main, target=HOPPER).get_kernel_source()
    assert "__syncthreads" not in text
    assert text.count("tl::named_barrier_sync(1, 128);") == 2
    a = torch.randn(256)
    want = torch.cat([a[:128].flip(0), a[128:]])
    tilelab.compile(main, target=HOPPER)(a)
    assert torch.equal(a, want)
