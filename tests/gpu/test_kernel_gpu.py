"""JITKernel on a real GPU: where a call runs, variants, targets, profiling, work on the host."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import hostwork

import tilelab
import tilelab.language as T
from tilelab.errors import TileValueError
from tilelab.kernel import JITKernel
from tilelab.runtime import driver


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELAB_CACHE_DIR", str(tmp_path))


def gemm(m: Any, n: Any, k: Any, stages: int = 3) -> Any:
    @T.prim_func
    def matmul(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, 128), T.ceildiv(m, 128), threads=128) as (bx, by):
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((64, 128), "float16")
            C_local = T.alloc_fragment((128, 128), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(k, 64), num_stages=stages):
                T.copy(A[by * 128, ko * 64], A_shared)
                T.copy(B[ko * 64, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 128, bx * 128])

    return matmul


def half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").half()


def close(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    expected = a.float() @ b.float()
    assert float((c.float() - expected).norm() / expected.norm()) < 1e-3


@pytest.mark.parametrize("target", [None, "sm_80", "sm_90a"])
def test_gemm(target: str | None) -> None:
    own = driver.device_info(0).target
    if target == "sm_90a" and target != own.name:
        pytest.skip(f"this GPU is {own}")
    kernel = tilelab.compile(gemm(512, 640, 320), out_idx=[2], target=target)
    a, b = half(512, 320), half(320, 640)
    close(kernel(a, b), a, b)
    assert kernel.target.arch == own.arch  # an older target is built for this GPU


@pytest.fixture(scope="module")
def open_gemm() -> JITKernel:
    m, n, k = T.dynamic("m"), T.dynamic("n"), T.dynamic("k")
    return tilelab.compile(gemm(m, n, k), out_idx=[2])


@pytest.mark.parametrize("shape", [(128, 128, 64), (200, 264, 72), (1, 8, 8), (333, 64, 1000)])
def test_dynamic_sizes(open_gemm: JITKernel, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = half(m, k), half(k, n)
    close(open_gemm(a, b), a, b)


@pytest.mark.parametrize("shape", [(129, 127, 65), (3, 5, 7), (64, 1, 64), (17, 128, 9)])
def test_rows_that_are_not_aligned(open_gemm: JITKernel, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = half(m, k), half(k, n)
    close(open_gemm(a, b), a, b)


def test_an_address_that_is_not_aligned(open_gemm: JITKernel) -> None:
    storage = half(128 * 64 + 1)
    a, b = storage[1:].view(128, 64), half(64, 128)
    close(open_gemm(a, b), a, b)
    fixed = tilelab.compile(gemm(128, 128, 64), out_idx=[2])
    with pytest.raises(TileValueError, match=r"argument A starts at 0x\w+, which is 2 bytes past"):
        fixed(a, b)


def test_no_inner_dimension(open_gemm: JITKernel) -> None:
    c = open_gemm(half(64, 0), half(0, 64))
    assert c.shape == (64, 64) and torch.count_nonzero(c) == 0


def test_the_device_of_the_inputs_decides(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tilelab.compile(gemm(128, 128, 64), out_idx=[2])
    a, b = half(128, 64), half(64, 128)
    on_gpu, on_cpu = kernel(a, b), kernel(a.cpu(), b.cpu())
    assert on_gpu.is_cuda and not on_cpu.is_cuda
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=1e-2, rtol=1e-2)
    kernel(a.cpu(), b.cpu())
    assert capsys.readouterr().err.count("runs on the simulator") == 1
    with pytest.raises(TileValueError, match="A on cuda:0, B on cpu"):
        kernel(a, b.cpu())


def test_without_tensor_inputs_it_runs_on_the_gpu() -> None:
    @T.prim_func
    def sevens(C: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            for i in T.Parallel(128):
                C[bx * 128 + i] = 7.0

    kernel = tilelab.compile(sevens, out_idx=[0])
    for _ in range(3):
        c = kernel()
        assert c.is_cuda and torch.equal(c, torch.full_like(c, 7))


def test_profiler() -> None:
    kernel = tilelab.compile(gemm(1024, 1024, 1024), out_idx=[2])
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda a, b: a @ b)
    time_ms = profiler.do_bench(warmup=5, rep=20)
    assert time_ms.source == "measured" and 0.003 < time_ms < 1


def test_graph_capture_without_a_call_before() -> None:
    kernel, a, b = tilelab.compile(gemm(256, 256, 128), out_idx=[2]), half(256, 128), half(128, 256)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = kernel(a, b)
    a.normal_()
    graph.replay()
    close(c, a, b)


def test_threads_that_call_it_first_at_once() -> None:
    kernel, results = tilelab.compile(gemm(256, 256, 128), out_idx=[2]), []
    a, b = half(256, 128), half(128, 256)
    torch.cuda.synchronize()

    def work() -> None:
        c = kernel(a, b)
        torch.cuda.synchronize()
        results.append(c)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 6
    for c in results:
        close(c, a, b)


def test_host_work_of_a_call() -> None:
    kernel, a, b = tilelab.compile(gemm(128, 128, 64), out_idx=[2]), half(128, 64), half(64, 128)
    hostwork.check("a GEMM call", lambda: kernel(a, b))
