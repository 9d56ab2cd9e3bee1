"""Options, budget, doctor, host text, supply and timing, on a machine without a GPU."""

from __future__ import annotations

import enum
import math
import sys
from pathlib import Path

import pytest
import torch

from tilelab import dtypes
from tilelab.errors import TileTypeError, TileValueError
from tilelab.ir import Buffer, Scope, Seq, TensorParam, Var, ceildiv
from tilelab.profiler import Profiler, TensorSupplyType, compare
from tilelab.runtime import doctor, driver, reports
from tilelab.runtime.arguments import Signature
from tilelab.runtime.host import host_text
from tilelab.runtime.launch import MISS, Launcher, row_major
from tilelab.runtime.options import compiler_options, config_map
from tilelab.runtime.supply import fill, make_inputs
from tilelab.runtime.timing import Milliseconds, do_bench
from tilelab.thread.nodes import Alignment, Program, TensorMap, ThreadKernel

# ---- options ---------------------------------------------------------------------------------


def test_flags_in_nvcc_s_spelling() -> None:
    flags = ["-O3", "-Xptxas -v,-warn-spills", "--ptxas-options=-O2", "-D", "X=1", "-std", "c++20"]
    assert compiler_options(flags, {}) == (
        "--ptxas-options=-v", "--ptxas-options=-warn-spills", "--ptxas-options=-O2", "-DX=1",
        "-std=c++20",
    )  # fmt: skip
    of_nvcc = ["-Wno-deprecated-declarations", "--expt-relaxed-constexpr", "-U__CUDA_NO_HALF__"]
    assert compiler_options(of_nvcc, {}) == ("-U__CUDA_NO_HALF__",)
    assert compiler_options("-lineinfo --use_fast_math", {}) == ("-lineinfo", "--use_fast_math")
    assert compiler_options(None, {}) == ()


def test_pass_configs_that_are_flags() -> None:
    class Key(enum.StrEnum):
        FAST = "tl.enable_fast_math"
        LEVEL = "tl.ptxas_register_usage_level"

    configs = config_map({Key.FAST: True, Key.LEVEL: 5, "tl.device_compile_flags": "-lineinfo"})
    assert set(configs) == {
        "tl.enable_fast_math", "tl.ptxas_register_usage_level", "tl.device_compile_flags",
    }  # fmt: skip
    assert compiler_options((), configs) == (
        "--use_fast_math", "--ptxas-options=--register-usage-level=5", "-lineinfo",
    )  # fmt: skip


def test_flags_must_be_text() -> None:
    with pytest.raises(TileTypeError):
        compiler_options([3], {})  # type: ignore[list-item]


# ---- the launcher without a GPU ----------------------------------------------------------------


def test_calls_on_the_cpu_miss_the_quick_path() -> None:
    n = Var("n", lo=0, role="size")
    buffer = Buffer("A", (n,), dtypes.FLOAT32, Scope.GLOBAL)

    def build(device: int, aligned: bool) -> object:
        raise AssertionError("nothing is built for a call that is not bound")

    launcher = Launcher(Signature("k", (TensorParam(buffer),), (n,)), build)  # type: ignore[arg-type]
    for args in ((torch.zeros(4),), (3,), (), (None, None), ("text",), ([1],)):
        assert launcher.quick(args) is MISS


def test_row_major() -> None:
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major(()) == () and row_major((3, 0)) == (1, 1)


def test_host_text() -> None:
    n = Var("n", lo=0, role="size")
    a, c = (Buffer(x, (n, 64), dtypes.FLOAT16, Scope.GLOBAL) for x in "AC")
    spec = TensorMap("A_map", a, (1, 0), (64, 128), 128)
    kernel = ThreadKernel(
        name="copy", maps=(spec,), tensors=(c,), scalars=(n,), grid=(ceildiv(n, 128),),
        threads=(128,), user_threads=(128,), block_vars=(), thread_vars=(), locals=(), shared=(),
        dynamic_bytes=16_384, static_bytes=0, body=Seq(()),
    )  # fmt: skip
    params = (TensorParam(a), TensorParam(c))
    program = Program("copy", params, (n,), (kernel,), (1,), aligned=(Alignment(a, 16),))
    text = host_text(Signature("copy", params, (n,), (1,)), program)
    for part in (
        "check A: float16(n, 64)", "size n from the shapes", "allocate C: float16(n, 64)",
        "box 64x128, swizzle 128 bytes", "launch copy grid=", "shared=16384 (A_map, C, n)",
        "return C",
    ):  # fmt: skip
        assert part in text


# ---- doctor ----------------------------------------------------------------------------------


def test_doctor_never_raises_and_names_remedies() -> None:
    checks = doctor.diagnose()
    names = [c.name for c in checks]
    assert names[-3:] == ["simulate", "compile", "launch"]
    assert all(check.found for check in checks)
    assert all(check.remedy for check in checks if not check.ok)
    text = doctor.to_text(checks)
    assert text.count("\n") + 1 == len(checks) + sum(not c.ok for c in checks)


def test_doctor_survives_a_broken_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("cannot be read")

    monkeypatch.setattr(doctor.wheels, "include_folder", broken)
    checks = {c.name: c for c in doctor.diagnose()}
    assert not checks["CUDA headers"].ok and "cannot be read" in checks["CUDA headers"].found
    assert not checks["compile"].ok


def test_doctor_looks_at_what_widgets_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = {c.name: c for c in doctor.diagnose()}["widgets"]
    assert found.ok and "anywidget" in found.found
    with monkeypatch.context() as patch:
        patch.setattr(sys, "prefix", str(tmp_path))
        lost = {c.name: c for c in doctor.diagnose()}["widgets"]
        assert not lost.ok and "--force-reinstall anywidget" in lost.remedy
        patch.setitem(sys.modules, "google.colab", sys)
        colab = {c.name: c for c in doctor.diagnose()}["widgets"]
        assert colab.ok and "enable_custom_widget_manager" in colab.found


@pytest.mark.skipif(driver.find() is not None, reason="there is a GPU")
def test_without_a_gpu_the_remedy_is_the_simulator() -> None:
    with pytest.raises(RuntimeError, match="NVIDIA GPU") as caught:
        driver.require()
    assert "simulator" in str(caught.value)


# ---- inputs, timing, comparing ---------------------------------------------------------------


def parameter(dtype: str) -> Buffer:
    return Buffer("x", (5, 7), dtypes.as_dtype(dtype), Scope.GLOBAL)


@pytest.mark.parametrize("supply", TensorSupplyType)
@pytest.mark.parametrize("dtype", sorted(n for n, d in dtypes.DTYPES.items() if d.bits >= 8))
def test_supply(supply: TensorSupplyType, dtype: str) -> None:
    made = fill((5, 7), parameter(dtype), supply, "cpu")
    assert made.dtype is getattr(torch, dtype) and made.shape == (5, 7)
    assert torch.isfinite(made.to(torch.float32)).all()


@pytest.mark.parametrize(("supply", "mean"), [("Normal", -1.0), ("Randn", 0.0)])
def test_means_of_normal_supplies(supply: str, mean: float) -> None:
    torch.manual_seed(0)
    made = fill((64, 256), parameter("float16"), TensorSupplyType[supply], "cpu").double()
    assert abs(made.mean() - mean) < 0.05 and abs(made.std() - 1) < 0.05


def test_inputs_of_a_signature() -> None:
    n, pitch = Var("n", lo=0, role="size"), Var("pitch", lo=0, role="size")
    a = Buffer("A", (n, 8), dtypes.FLOAT32, Scope.GLOBAL, (pitch, 1))
    signature = Signature("k", (TensorParam(a),), (n, pitch))
    (made,) = make_inputs(signature, TensorSupplyType.Auto, "cpu", {"n": 3, pitch: 10})
    assert made.shape == (3, 8) and made.stride() == (10, 1)
    with pytest.raises(TileValueError, match="dynamic_symbolic_constraints") as caught:
        make_inputs(signature, TensorSupplyType.Auto, "cpu")
    assert caught.value.code == "TL1644"


class Doubling:
    """Stands for a kernel: C = 2 * A."""

    def __init__(self) -> None:
        buffers = [Buffer(x, (64,), dtypes.FLOAT32, Scope.GLOBAL) for x in "AC"]
        self.signature = Signature("double", [TensorParam(b) for b in buffers], (), (1,))

    def __call__(self, a: torch.Tensor) -> torch.Tensor:
        return a * 2


def test_profiler_compares() -> None:
    profiler = Profiler(Doubling())
    profiler.assert_allclose(lambda a: a + a)
    profiler.assert_consistent(repeat=2)
    assert profiler.run_once().shape == (64,)
    with pytest.raises(AssertionError, match=r"output 0: 6\d of 64 elements differ"):
        profiler.assert_allclose(lambda a: a * 2 + 1)
    with pytest.raises(TileValueError):
        profiler.manual_assert_close(lambda a: a)


def test_compare_names_the_first_difference() -> None:
    a, b = torch.zeros(4, 4), torch.zeros(4, 4)
    b[2, 3] = 5
    with pytest.raises(AssertionError, match=r"first at \(2, 3\): got 0.0, expected 5.0"):
        compare(a, b)
    compare(a, b, max_mismatched_ratio=0.1)
    nan = torch.full((2,), math.nan)
    compare(nan, nan)
    with pytest.raises(AssertionError, match="shape"):
        compare(a, b[:2])
    with pytest.raises(AssertionError):
        compare(torch.zeros(2), nan)


class Report:
    modelled_ms = 1.5


def test_simulated_time_is_labelled() -> None:
    calls: list[int] = []

    def simulated() -> None:
        calls.append(1)
        reports.announce(Report())

    found = do_bench(simulated)
    assert found == 1.5 and found.source == "modelled" and "(modelled)" in repr(found)
    assert len(calls) == 1  # once: a simulated run is slow, and its time does not vary
    assert do_bench(simulated, quantiles=[0.2, 0.8]) == [1.5, 1.5]


@pytest.mark.skipif(driver.find() is not None, reason="there is a GPU")
def test_time_of_cpu_code_is_labelled() -> None:
    found = do_bench(lambda: sum(range(1000)), rep=1)
    assert isinstance(found, Milliseconds) and found.source == "cpu" and found > 0


def test_wrong_modes_are_refused() -> None:
    with pytest.raises(TileValueError, match="return_mode"):
        do_bench(lambda: None, return_mode="mode")
