"""The launcher on a real GPU, with programs written by hand: arguments, descriptors, graphs,
threads, streams, and the host time of a call."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import handmade
import hostwork

from tilelab.errors import TileError, TileRuntimeError, TileTypeError, TileValueError
from tilelab.runtime import doctor, driver, nvrtc
from tilelab.runtime.timing import Milliseconds, do_bench


def cuda(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").to(dtype)


def test_device_facts_agree_with_torch() -> None:
    info, known = driver.device_info(0), torch.cuda.get_device_properties(0)
    assert info.capability == (known.major, known.minor)
    assert info.sms == known.multi_processor_count
    assert info.name == known.name
    assert info.l2_bytes == known.L2_cache_size
    assert info.memory_bytes == known.total_memory
    assert info.shared_per_block == known.shared_memory_per_block_optin


def test_limits_of_the_target_are_the_device_s() -> None:
    info = driver.device_info(0)
    limits = info.target.limits
    if info.target.arch == info.target.name:  # a target of its own, not an older one rebuilt
        assert limits.shared_per_block == info.shared_per_block
        assert limits.shared_per_sm == info.shared_per_sm
        assert limits.shared_reserved_per_block == info.shared_reserved_per_block
        assert limits.registers_per_sm == info.registers_per_sm
        assert limits.threads_per_sm == info.threads_per_sm
        assert limits.blocks_per_sm == info.blocks_per_sm


def test_launch_with_sizes_and_numbers() -> None:
    kernel = handmade.scale()
    for n in (1, 127, 128, 129, 100_000):
        a = cuda(n)
        c = kernel(a, 2.5)
        assert c.shape == (n,) and c.device == a.device
        torch.testing.assert_close(c, a * 2.5)


def test_the_same_number_twice_and_signed_zero() -> None:
    kernel, a = handmade.scale(), torch.ones(4, device="cuda")
    assert not torch.signbit(kernel(a, 0.0)).any()
    assert torch.signbit(kernel(a, -0.0)).all()
    assert torch.isnan(kernel(a, float("nan"))).all()
    torch.testing.assert_close(kernel(a, 3), a * 3)


def test_an_empty_grid_launches_nothing() -> None:
    kernel = handmade.scale()
    assert kernel(torch.empty(0, device="cuda"), 2.0).shape == (0,)
    torch.cuda.synchronize()


def test_workspace_between_two_kernels() -> None:
    kernel = handmade.two_kernels()
    for _ in range(20):
        a = cuda(64)
        torch.testing.assert_close(kernel(a), (a * a).sum().expand(64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("swizzle", [0, 128])
@pytest.mark.parametrize("corner", [(0, 0), (64, 64), (80, 40), (200, 200), (-8, -3)])
def test_tensor_map(swizzle: int, corner: tuple[int, int]) -> None:
    kernel = handmade.tma_tile(swizzle)
    a = cuda(100, 120, dtype=torch.float16)
    x, y = corner
    padded = torch.zeros(600, 600, dtype=torch.float16, device="cuda")
    padded[100:200, 100:220] = a
    expected = padded[100 + y : 164 + y, 100 + x : 164 + x]
    assert torch.equal(kernel(a, x, y), expected)


def test_tensor_map_follows_strides() -> None:
    kernel = handmade.tma_tile(128, dynamic=True, strides=True)
    wide = cuda(70, 256, dtype=torch.float16)
    part = wide[:, 64:200]
    assert torch.equal(kernel(part, 0, 0), part[:64, :64])


def test_tensor_map_of_a_tensor_without_elements_reads_zeros() -> None:
    kernel = handmade.tma_tile(128, dynamic=True)
    a = torch.empty(0, 64, dtype=torch.float16, device="cuda")
    assert torch.count_nonzero(kernel(a, 0, 0)) == 0


def test_tensor_map_of_one_row() -> None:
    kernel = handmade.tma_tile(128, dynamic=True)
    a = cuda(1, 64, dtype=torch.float16)
    expected = torch.zeros(64, 64, dtype=torch.float16, device="cuda")
    expected[0] = a[0]
    assert torch.equal(kernel(a, 0, 0), expected)


def test_a_misaligned_tensor_of_fixed_shape_is_refused() -> None:
    kernel = handmade.tma_tile(128)
    storage = torch.zeros(100 * 120 + 8, dtype=torch.float16, device="cuda")
    with pytest.raises(TileValueError, match=r"argument A .* 2 bytes past a multiple of 16") as e:
        kernel(storage[1 : 1 + 100 * 120].view(100, 120), 0, 0)
    assert e.value.code == "TL1619"


def test_a_misaligned_tensor_of_dynamic_shape_takes_the_general_variant() -> None:
    kernel = handmade.tma_tile(128, dynamic=True)
    aligned, general = kernel.programs[True], kernel.programs[False]
    assert aligned is general  # the same text stands in for both here: only the choice is tested
    kernel.programs[False] = handmade.Program(
        general.name, general.params, general.sizes, (), general.outputs
    )
    kernel(cuda(64, 64, dtype=torch.float16), 0, 0)
    kernel(cuda(64, 63, dtype=torch.float16), 0, 0)
    assert kernel.built == [True, False]


def test_errors_name_the_argument() -> None:
    kernel = handmade.add()
    a, b = cuda(1024), cuda(1024)
    kernel(a, b)
    with pytest.raises(TileTypeError, match="argument B of add has dtype float16"):
        kernel(a, b.half())
    with pytest.raises(TileValueError, match=r"argument A of add has shape \(512,\)"):
        kernel(a[:512], b)
    with pytest.raises(TileValueError, match=r"argument B of add has strides \(2,\)"):
        kernel(a, cuda(2048)[::2])
    with pytest.raises(TileValueError, match="different devices"):
        kernel(a, b.cpu())
    with pytest.raises(TileValueError, match="expected 2 inputs, but 3"):
        kernel(a, b, a)
    torch.testing.assert_close(kernel(a, b), a + b)


def test_it_runs_on_torch_s_current_stream() -> None:
    kernel, side = handmade.add(1 << 20), torch.cuda.Stream()
    with torch.cuda.stream(side):
        a = torch.zeros(1 << 20, device="cuda")
        for _ in range(50):
            a = kernel(a, torch.ones_like(a))
    side.synchronize()
    assert torch.equal(a, torch.full_like(a, 50))


def test_graph_capture() -> None:
    kernel, a, b = handmade.add(), cuda(1024), cuda(1024)
    kernel(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = kernel(a, b)
    for _ in range(3):
        a.normal_()
        graph.replay()
        torch.testing.assert_close(c, a + b)


def test_graph_capture_of_a_kernel_that_was_never_called() -> None:
    kernel, a, b = handmade.add(), cuda(1024), cuda(1024)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = kernel(a, b)
    graph.replay()
    torch.testing.assert_close(c, a + b)


def test_threads_share_a_kernel() -> None:
    kernel, problems = handmade.add(), []

    def work() -> None:
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(200):
                    a, b = cuda(1024), cuda(1024)
                    c = kernel(a, b)
                    if not torch.equal(c, a + b):
                        problems.append("wrong sum")
        except Exception as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems


def test_a_thread_that_has_not_touched_cuda_can_launch() -> None:
    kernel, a, b = handmade.add(), cuda(1024), cuda(1024)
    kernel(a, b)
    results: list[object] = []

    def work() -> None:
        try:
            results.append(kernel(a, b))
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.testing.assert_close(results[0], a + b)


def test_many_addresses_are_forgotten_in_time() -> None:
    kernel = handmade.add(128)
    pool = cuda(1200, 128)
    for row in pool:
        torch.testing.assert_close(kernel(row, row), row + row)


def test_too_much_shared_memory_is_refused_by_the_driver() -> None:
    cubin = nvrtc.compile_cubin(handmade.ADD, driver.device_info(0).target.arch)
    found = driver.require()
    module = found.load(cubin.image, 0)
    with pytest.raises(TileRuntimeError, match="shared memory for add"):
        found.function(module, "add", 1 << 20)
    assert found.occupancy(found.function(module, "add", 0), 128, 0) >= 8


def test_a_missing_kernel_is_named() -> None:
    found = driver.require()
    cubin = nvrtc.compile_cubin(handmade.ADD, driver.device_info(0).target.arch)
    module = found.load(cubin.image, 0)
    with pytest.raises(TileError, match="looking up kernel subtract"):
        found.function(module, "subtract", 0)


def test_registers_of_the_driver_and_of_ptxas_agree() -> None:
    cubin = nvrtc.compile_cubin(handmade.ADD, driver.device_info(0).target.arch)
    found = driver.require()
    loaded = found.function(found.load(cubin.image, 0), "add", 0)
    assert loaded.registers == cubin.resources["add"].registers


def test_host_work_of_a_call() -> None:
    kernel, a, b = handmade.add(), cuda(1024), cuda(1024)
    hostwork.check("a call", lambda: kernel(a, b))
    tma, tile = handmade.tma_tile(128), cuda(100, 120, dtype=torch.float16)
    hostwork.check("a call with a TMA descriptor", lambda: tma(tile, 0, 0))


def test_bench_measures() -> None:
    a = cuda(1 << 24)
    time_ms = do_bench(lambda: a + a, warmup=5, rep=20)
    assert isinstance(time_ms, Milliseconds) and time_ms.source == "measured"
    assert 0.01 < time_ms < 5
    low, high = do_bench(lambda: a + a, warmup=5, rep=20, quantiles=[0.1, 0.9])
    assert low <= high
    assert do_bench(lambda: a + a, warmup=5, rep=20, backend="cudagraph") < 5


def test_doctor_finds_everything() -> None:
    checks = {c.name: c for c in doctor.diagnose()}
    assert checks["driver"].ok and checks["GPU"].ok and checks["launch"].ok
    assert torch.cuda.get_device_name(0) in checks["GPU"].found
