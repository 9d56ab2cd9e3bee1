"""The GEMM slice on a GPU, for both feature sets: tails, stages, transposes, types, sizes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER, build, gemm, inputs

pytestmark = pytest.mark.gpu
TARGETS = {"hopper": HOPPER, "ampere": AMPERE}
target = pytest.mark.parametrize("target", list(TARGETS))


def _error(got: Any, reference: Any) -> float:
    return float((got.float() - reference).norm() / reference.norm())


def _check(target: str, sizes: tuple[int, int, int], configs: Any = None, **config: Any) -> None:
    kernel = build(*sizes, target=TARGETS[target], configs=configs, **config)
    ta, tb = config.get("ta", False), config.get("tb", False)
    dtype = config.get("dtype", "float16")
    a, b, reference = inputs(*sizes, ta, tb, dtype, device="cuda")
    limit = 4e-3 if dtype == "bfloat16" else 5e-4
    assert _error(kernel(a, b), reference) < limit, (sizes, config)


@target
@pytest.mark.parametrize("stages", [0, 1, 2, 3, 4])
def test_stages(target: str, stages: int) -> None:
    _check(target, (256, 384, 320), stages=stages)


@target
@pytest.mark.parametrize("tails", list(itertools.product([False, True], repeat=3)))
def test_tails(target: str, tails: tuple[bool, bool, bool]) -> None:
    sizes = tuple(256 + 40 * t for t in tails)
    _check(target, sizes)  # type: ignore[arg-type]
    odd = tuple(128 + 37 * t for t in tails)
    _check(target, odd, bm=64, bn=64, bk=32, stages=2)  # type: ignore[arg-type]


@target
@pytest.mark.parametrize("sizes", [(1, 1, 65), (33, 47, 29), (1, 8, 8), (127, 129, 65)])
def test_small_and_odd(target: str, sizes: tuple[int, int, int]) -> None:
    for stages in (0, 2, 3):
        _check(target, sizes, bm=32, bn=32, bk=32, stages=stages)


@target
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_transposes_and_types(target: str, ta: bool, tb: bool, dtype: str) -> None:
    _check(target, (256, 192, 128), ta=ta, tb=tb, dtype=dtype, out=dtype)
    _check(target, (96, 80, 72), bm=32, bn=48, bk=16, ta=ta, tb=tb, dtype=dtype, out="float32")


@target
@pytest.mark.parametrize("policy", ["Square", "FullRow", "FullCol"])
@pytest.mark.parametrize("threads", [128, 256])
def test_policies(target: str, policy: str, threads: int) -> None:
    chosen = getattr(T.GemmWarpPolicy, policy)
    _check(target, (256, 256, 128), policy=chosen, threads=threads, stages=2)


@target
def test_epilogue_and_block_order(target: str) -> None:
    sizes = (1024, 640, 256)
    kernel = build(*sizes, target=TARGETS[target], relu=True, swizzle=3)
    a, b, reference = inputs(*sizes, device="cuda")
    assert _error(kernel(a, b), reference.clamp(min=0)) < 5e-4


@pytest.mark.parametrize("option", ["tl.disable_warp_specialized", "tl.disable_wgmma"])
def test_switches(option: str) -> None:
    _check("hopper", (256, 256, 256), configs={option: True})


@target
def test_dynamic_sizes_share_one_kernel(target: str) -> None:
    M, N, K = (T.dynamic(n) for n in "MNK")
    kernel = tilelab.compile(gemm(M, N, K), out_idx=[2], target=TARGETS[target])
    for sizes in [(128, 128, 64), (1000, 1000, 504), (100, 200, 300), (77, 99, 33), (1, 1, 1)]:
        a, b, reference = inputs(*sizes, device="cuda")
        assert _error(kernel(a, b), reference) < 5e-4, sizes


@target
def test_memory_around_the_output_is_untouched(target: str) -> None:
    m, n, k = 200, 136, 72
    kernel = tilelab.compile(gemm(m, n, k), target=TARGETS[target])
    a, b, reference = inputs(m, n, k, device="cuda")
    fence = torch.full((m * n + 2048,), -5.0, device="cuda", dtype=torch.float16)
    c = fence[1024:-1024].view(m, n)
    kernel(a, b, c)
    assert _error(c, reference) < 5e-4
    assert bool((fence[:1024] == -5).all()) and bool((fence[-1024:] == -5).all())


def test_a_misaligned_pointer_is_named() -> None:
    kernel = build(128, 128, 64)
    store = torch.zeros(128 * 64 + 1, device="cuda", dtype=torch.float16)
    a = store[1:].view(128, 64)
    b = torch.zeros(64, 128, device="cuda", dtype=torch.float16)
    with pytest.raises(ValueError, match=r"argument A starts at 0x"):
        kernel(a, b)


def test_eager_style() -> None:
    @tilelab.jit
    def product(A, B, tile: int = 64):  # type: ignore[no-untyped-def]
        M, N, K = T.const("M, N, K")
        A: T.Tensor[[M, K], T.float16]
        B: T.Tensor[[K, N], T.float16]
        C = T.empty((M, N), T.float32)
        with T.Kernel(T.ceildiv(N, tile), T.ceildiv(M, tile), threads=128) as (bx, by):
            a = T.alloc_shared((tile, 32), T.float16)
            b = T.alloc_shared((32, tile), T.float16)
            c = T.alloc_fragment((tile, tile), T.float32)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * tile, k * 32], a)
                T.copy(B[k * 32, bx * tile], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * tile, bx * tile])
        return C

    for sizes in [(256, 256, 256), (100, 104, 96)]:
        a, b, reference = inputs(*sizes, device="cuda")
        assert _error(product(a, b), reference) < 5e-4


def test_same_answer_every_time() -> None:
    kernel = build(1000, 1544, 200)
    a, b, reference = inputs(1000, 1544, 200, device="cuda")
    first = kernel(a, b)
    assert _error(first, reference) < 5e-4
    for _ in range(20):
        assert torch.equal(kernel(a, b), first)


def test_a_graph_replays_the_kernel() -> None:
    kernel = build(256, 256, 256)
    a, b, reference = inputs(256, 256, 256, device="cuda")
    kernel(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = kernel(a, b)
    c.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert _error(c, reference) < 5e-4
