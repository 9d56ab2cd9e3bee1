"""JITKernel on a machine without a GPU: the simulator, variants, caching, looking inside."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tilelab.errors import TileError, TileRuntimeError, TileValueError
from tilelab.kernel import JITKernel
from tilelab.profiler import Profiler
from tilelab.runtime import cache, driver, nvrtc, wheels
from tilelab.runtime.reports import collect_reports
from tilelab.runtime.timing import do_bench

needs_nvrtc = pytest.mark.skipif(wheels.nvrtc_library() is None, reason="NVRTC is not installed")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELAB_CACHE_DIR", str(tmp_path))


def add(n: Any = 256, dtype: str = "float32", block: int = 128) -> Any:
    @T.prim_func
    def add_kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return add_kernel


def compiled(program: Any, **options: Any) -> JITKernel:
    return tilelab.compile(program, **options)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_call_on_the_cpu_is_simulated(target: str, dtype: str) -> None:
    kernel = compiled(add(dtype=dtype), out_idx=[2], target=target)
    a, b = (torch.randn(256).to(getattr(torch, dtype)) for _ in range(2))
    c = kernel(a, b)
    assert c.dtype == a.dtype and torch.equal(c, a + b)


def test_outputs_that_are_passed_are_written_in_place() -> None:
    kernel, a, c = compiled(add()), torch.ones(256), torch.zeros(256)
    assert kernel(a, a, c) is None
    assert torch.equal(c, a + a)


def test_numpy_arrays_give_numpy_arrays() -> None:
    c = compiled(add(), out_idx=[2])(np.ones(256, np.float32), np.ones(256, np.float32))
    assert isinstance(c, np.ndarray) and (c == 2).all()


def test_dynamic_sizes_and_an_empty_tensor() -> None:
    n = T.dynamic("n")
    kernel = compiled(add(n), out_idx=[2])
    for size in (1, 127, 128, 129, 1000, 0):
        a, b = torch.randn(size), torch.randn(size)
        assert torch.equal(kernel(a, b), a + b)


def test_the_general_variant_serves_rows_that_are_not_aligned() -> None:
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def copy(A: T.Tensor((m, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, 64), T.ceildiv(m, 64), threads=128) as (bx, by):
            tile = T.alloc_shared((64, 64), "float16")
            T.copy(A[by * 64, bx * 64], tile)
            T.copy(tile, C[by * 64, bx * 64])

    kernel = compiled(copy, out_idx=[1])
    for shape in ((64, 64), (100, 72), (65, 63), (3, 1)):
        a = torch.randn(*shape).half()
        assert torch.equal(kernel(a), a)


@pytest.mark.skipif(driver.find() is not None, reason="there is a GPU")
def test_without_tensor_inputs_and_without_a_gpu_it_is_simulated() -> None:
    @T.prim_func
    def sevens(C: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            for i in T.Parallel(128):
                C[bx * 128 + i] = 7.0

    c = compiled(sevens, out_idx=[0])()
    assert torch.equal(c, torch.full((256,), 7.0))


@pytest.mark.expects_findings
def test_findings_are_an_error_and_a_report() -> None:
    @T.prim_func
    def reads_garbage(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            tile = T.alloc_shared((128,), "float32")
            for i in T.Parallel(128):
                A[i] = tile[i]

    kernel = compiled(reads_garbage)
    report = kernel.simulate(torch.zeros(128))
    assert not report.ok
    with pytest.raises(TileRuntimeError, match="the simulator found") as caught:
        kernel(torch.zeros(128))
    assert caught.value.code == "TL1641" and caught.value.notes


def test_wrong_inputs_are_refused_before_anything_runs() -> None:
    kernel = compiled(add(), out_idx=[2])
    with collect_reports() as heard:
        with pytest.raises(TileError, match="argument B of add_kernel has dtype float16"):
            kernel(torch.zeros(256), torch.zeros(256).half())
        with pytest.raises(ValueError, match="expected 2 inputs, but 1"):
            kernel(torch.zeros(256))
    assert heard == []


def test_modelled_time() -> None:
    kernel = compiled(add(1 << 12), out_idx=[2], target="sm_90a")
    a = torch.randn(1 << 12)
    report = kernel.simulate(a, a)
    assert report.ok and 0 < report.modelled_ms < 0.1
    assert report.to_dict()["modelled_ms"] == report.modelled_ms
    time = do_bench(lambda: kernel(a, a))
    assert time == report.modelled_ms and time.source == "modelled"
    profiler = kernel.get_profiler()
    assert isinstance(profiler, Profiler)
    if driver.find() is None:
        assert profiler.do_bench().source == "modelled"
        profiler.assert_allclose(torch.add)


def test_targets() -> None:
    program = add()
    assert compiled(program, target="sm_80").target.name == "sm_80"
    assert compiled(program, target={"kind": "cuda", "arch": "sm_90"}).target.name == "sm_90a"
    if driver.find() is None:
        assert compiled(program).target.name == "sm_90a"
    with pytest.raises(TileValueError):
        compiled(program, target="sm_9000")


def test_out_idx() -> None:
    kernel = compiled(add(), out_idx=-1)
    assert kernel.out_idx == [2] and [p.name for p in kernel.params] == ["A", "B", "C"]
    with pytest.raises(TileValueError, match="names no parameter"):
        compiled(add(), out_idx=[3])


def test_too_much_shared_memory_is_refused_when_the_target_is_given() -> None:
    def build(**options: Any) -> JITKernel:
        @T.prim_func
        def large(A: T.Tensor((512, 1024), "float16"), C: T.Tensor((512, 1024), "float16")):
            with T.Kernel(1, threads=128) as bx:
                tile = T.alloc_shared((512, 1024), "float16")
                T.copy(A, tile)
                T.copy(tile, C)

        return compiled(large, out_idx=[1], **options)

    with pytest.raises(TileValueError, match="shared memory") as caught:
        build(target="sm_90a")
    assert "1048576" in str(caught.value)
    with pytest.raises(TileValueError, match="shared memory"):
        build()(torch.zeros(512, 1024).half())


@needs_nvrtc
def test_machine_code_is_cached_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compile_cubin = nvrtc.compile_cubin

    def counted(source: str, arch: str, **options: Any) -> nvrtc.Cubin:
        made.append(arch)
        return compile_cubin(source, arch, **options)

    monkeypatch.setattr(nvrtc, "compile_cubin", counted)
    first = compiled(add(), target="sm_80").cubin
    assert compiled(add(), target="sm_80").cubin == first and made == ["sm_80"]
    assert compiled(add(), target="sm_90a").cubin.arch == "sm_90a"
    fast = compiled(add(), target="sm_80", pass_configs={"tl.enable_fast_math": True})
    assert fast.cubin.arch == "sm_80"
    assert made == ["sm_80", "sm_90a", "sm_80"]
    assert cache.clear_cache() == 3
    assert compiled(add(), target="sm_80").cubin.image == first.image and len(made) == 4


@needs_nvrtc
def test_looking_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = compiled(add(), out_idx=[2], target="sm_90a")
    assert "__global__" in kernel.get_kernel_source() == kernel.kernel_source == kernel.source.text
    assert "launch" in kernel.get_host_source() == kernel.host_source
    both = kernel.get_kernel_source(kernel_only=False)
    assert both.startswith(kernel.kernel_source) and kernel.host_source in both
    kernel.show_source("both")
    shown = capsys.readouterr().out
    assert "__global__" in shown and "launch" in shown
    with pytest.raises(TileValueError, match="no source 'ptx'"):
        kernel.show_source("ptx")
    kernel.export_sources(tmp_path / "k.cu", tmp_path / "host.txt")
    assert (tmp_path / "k.cu").read_text() == kernel.kernel_source
    assert kernel.n_regs > 0 and kernel.n_spills == 0
    assert "EXIT" in kernel.get_sass()
    assert kernel.trace.steps and kernel.program.kernels
    assert "add_kernel(A: float32(256,), B: float32(256,)) for sm_90a" in repr(kernel)
    assert set(kernel._repr_mimebundle_()) >= {"text/plain", "text/html"}


def test_an_error_of_the_compiler_names_the_python_line(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compiled(add(), target="sm_80")
    build = kernel._builds.build()
    broken = build.lowered.cuda.text.replace("A[", "nothing[", 1)
    if wheels.nvrtc_library() is None or broken == build.lowered.cuda.text:
        pytest.skip("NVRTC is not installed")
    object.__setattr__(build.lowered.cuda, "text", broken)
    with pytest.raises(TileRuntimeError, match="nothing") as caught:
        _ = kernel.cubin
    assert caught.value.loc is not None and caught.value.loc.file == __file__


def test_threads_that_call_it_first_at_once() -> None:
    kernel, a = compiled(add(), out_idx=[2]), torch.randn(256)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: kernel(a, a), range(8)))
    assert all(torch.equal(c, a + a) for c in results)
