"""utils, testing, env, lower, postproc, tvm, contrib, transform: TileLang's names and meaning."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.host.programs import scale_factory
from tilelab import shim, testing
from tilelab.contrib import nvcc
from tilelab.errors import TileError, TileWarning
from tilelab.language.fp8 import determine_fp8_type, determine_torch_fp8_type
from tilelab.utils.tensor import KernelParam, get_tensor_supply, map_torch_type, torch_assert_close


def code_of(call: Any) -> str:
    with pytest.raises(TileError) as raised:
        call()
    assert raised.value.hint
    return raised.value.code


PATHS = [
    "autotuner", "carver", "carver.arch", "carver.roller.rasterization", "carver.template",
    "contrib.nvcc", "engine", "engine.callback", "env", "language.fp8", "layout", "math",
    "profiler", "testing", "tileop.base", "tools", "tools.cuda", "transform", "tvm", "utils",
    "utils.tensor",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_modules_answer_to_their_paths(path: str) -> None:
    try:
        shim.install()
        module = importlib.import_module(f"tilelang.{path}")
        assert module is importlib.import_module(f"tilelab.{path}")
        assert importlib.import_module("tvm").DataType("float16").bits == 16
        assert importlib.import_module("tvm.tirx") is importlib.import_module("tilelab.tvm.tirx")
    finally:
        shim.uninstall()


def test_top_level_names_exist() -> None:
    for name in tilelab.__all__:
        assert getattr(tilelab, name) is not None
    assert tilelab.cdiv(5, 2) == 3 and tilelab.math.next_power_of_2(5) == 8
    assert tilelab.DataType("bfloat16").bits == 16


# ---- utils --------------------------------------------------------------------------------------


def test_assert_close_allows_a_share() -> None:
    a = torch.zeros(1000)
    b = a.clone()
    b[3] = 1
    assert torch_assert_close(a, b)
    with pytest.raises(AssertionError, match=r"2 of 1000 .* \(3,\)"):
        b[4] = 1
        torch_assert_close(a, b)
    with pytest.raises(AssertionError, match="dtype"):
        torch_assert_close(a, a.half())
    assert torch_assert_close(a, a.half(), check_dtype=False)
    with pytest.raises(AssertionError, match="strides"):
        torch_assert_close(torch.ones(4, 4), torch.ones(4, 4).T, check_stride=True)
    nan = torch.full((4,), torch.nan)
    assert torch_assert_close(nan, nan)
    with pytest.raises(AssertionError, match="NaN"):
        torch_assert_close(nan, nan, equal_nan=False)


def test_supplies_fit_their_types() -> None:
    supply = get_tensor_supply(tilelab.TensorSupplyType.Auto)
    assert supply(KernelParam("x", T.float16, (3, 5))).dtype == torch.float16
    integers = supply(KernelParam("x", T.uint8, (100,)))
    assert integers.dtype == torch.uint8 and int(integers.max()) < 3
    assert map_torch_type("bfloat16") is torch.bfloat16
    assert code_of(lambda: supply(KernelParam("x", T.float16, (T.dynamic("n"),)))) == "TL1644"


def test_fp8_types() -> None:
    assert determine_fp8_type() == T.float8_e4m3fn
    assert determine_torch_fp8_type("e5m2") is torch.float8_e5m2
    assert code_of(lambda: determine_fp8_type("e3m4")) == "TL1643"


# ---- testing ------------------------------------------------------------------------------------


def _skipped(decorate: Any) -> bool:
    """Whether pytest would skip a test so decorated; a direct call runs it in any case."""

    def test() -> int:
        return 1

    marked = decorate(test)
    assert marked() == 1
    (mark,) = marked.pytestmark
    assert mark.name == "skipif" and mark.kwargs["reason"].startswith("needs ")
    return mark.args[0]


def test_requirements_are_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    yes, no = (9, 0), (10, 0)
    assert not _skipped(testing.requires_cuda) and not _skipped(testing.requires_cuda())
    assert not _skipped(testing.requires_cuda_compute_version(*yes))
    assert not _skipped(testing.requires_cuda_compute_version_le(*yes))
    assert _skipped(testing.requires_cuda_compute_version(*no))
    assert _skipped(testing.requires_cuda_compute_version_lt(*yes))
    assert _skipped(testing.requires_package("no_such_package_at_all"))
    assert _skipped(testing.requires_rocm)
    assert code_of(lambda: testing.requires_cuda_compute_version(9, mode="about")) == "TL1643"


def test_seeds() -> None:
    testing.set_random_seed(3)
    first = torch.randn(4)
    testing.set_random_seed(3)
    assert torch.equal(first, torch.randn(4))


def test_main_runs_the_file(tmp_path: Path) -> None:
    script = tmp_path / "test_of_user.py"
    script.write_text(
        "import tilelab\n\n\n@tilelab.testing.requires_rocm\ndef test_skipped():\n    pass\n\n\n"
        "def test_passes():\n    pass\n\n\nif __name__ == '__main__':\n    tilelab.testing.main()\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=Path.cwd()
    )
    assert done.returncode == 0 and "1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr


def regression_of_this_file() -> None:
    testing.process_func(lambda scale: 0.5 * scale, "half", scale=3)


def test_regressions_are_collected(capsys: pytest.CaptureFixture[str]) -> None:
    assert testing.regression() == [("half", 1.5)]
    assert "half: 1.5 ms" in capsys.readouterr().out


# ---- compiling ----------------------------------------------------------------------------------


def test_lower_shows_the_source() -> None:
    artifact = tilelab.lower(scale_factory(), target="sm_80")
    assert "__global__" in artifact.kernel_source and len(artifact.params) == 2
    assert "launch" in artifact.host_source
    assert code_of(lambda: artifact.host_mod) == "TL1654"


def test_postproc_rewrites_the_text() -> None:
    register = tilelab.register_cuda_postproc
    try:
        with pytest.warns(TileWarning, match="only what is shown"):
            register(lambda code, target: code.replace("2.0f", "4.0f"))
        kernel = tilelab.compile(scale_factory(), out_idx=[-1], target="sm_90a")
        assert "4.0f" in kernel.kernel_source and kernel.source.links
        assert code_of(lambda: register(str, override=False)) == "TL1655"
        with pytest.warns(TileWarning):
            register(lambda code, target: f"// {target}\n{code}")
        source = tilelab.compile(scale_factory(), target="sm_80").source
        assert source.text.startswith("// sm_80") and not source.links
        with pytest.warns(TileWarning):
            register(lambda code, target: None)  # type: ignore[arg-type, return-value]
        lowering = lambda: tilelab.compile(scale_factory(), target="sm_80")  # noqa: E731
        assert code_of(lowering) == "TL1655"
    finally:
        register(None)
    assert "4.0f" not in tilelab.compile(scale_factory(), target="sm_90a").kernel_source
    assert code_of(lambda: tilelab.engine.register_hip_postproc(str)) == "TL1654"


def test_par_compile_gives_kernels_in_order() -> None:
    kernels = tilelab.par_compile([scale_factory(128), scale_factory(64)], [-1], num_workers=2)
    assert [k(torch.ones(n)).numel() for k, n in zip(kernels, (128, 64), strict=True)] == [128, 64]
    jitted = tilelab.jit(out_idx=[-1])(scale_factory)
    assert len(jitted.par_compile([{"n": 64}, (128,)])) == 2
    assert jitted.par_compile([{"threads": 0}], ignore_error=True) == [None]


def test_what_a_kernel_cannot_do_says_so() -> None:
    kernel = tilelab.compile(scale_factory(), out_idx=[-1])
    for name in ("export_library", "show_ptx", "export_ptx"):
        assert code_of(lambda name=name: getattr(kernel, name)("path")) == "TL1654"
    assert kernel.run_once().shape == (256,)


def test_old_options_are_mentioned_once(capsys: pytest.CaptureFixture[str]) -> None:
    tilelab.jit(scale_factory, debug_root_path="x")
    tilelab.jit(scale_factory, debug_root_path="x")
    assert capsys.readouterr().err.count("debug_root_path has no effect") <= 1


# ---- small modules ------------------------------------------------------------------------------


def test_env_reads_when_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILELAB_CACHE_DIR", str(tmp_path))
    assert str(tmp_path) == str(Path(tilelab.env.TILELANG_CACHE_DIR).parent)
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    assert not tilelab.env.env.is_cache_enabled()
    assert code_of(lambda: tilelab.env.TILELANG_NO_SUCH) == "TL1654"


def test_the_default_target_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "sm_80")
    assert tilelab.compile(scale_factory(), out_idx=[-1]).target.name == "sm_80"
    assert tilelab.compile(scale_factory(), out_idx=[-1], target="sm_90a").target.name == "sm_90a"
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "auto")
    assert tilelab.parse_target("cuda") is None
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "sm_11")
    assert code_of(lambda: tilelab.parse_target(None)) == "TL1201"


def test_layouts_at_the_top_level() -> None:
    assert tilelab.Layout is T.Layout and tilelab.Fragment is T.Fragment


def test_sources_go_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tilelab.compile(scale_factory(), out_idx=[-1])
    kernel.print_source_code(file=str(tmp_path / "kernel.cu"))
    assert (tmp_path / "kernel.cu").read_text() == kernel.get_kernel_source()
    assert capsys.readouterr().out == ""


def test_nvcc_answers_for_the_target() -> None:
    assert nvcc.parse_compute_version(nvcc.get_target_compute_version("sm_80")) == (8, 0)
    assert nvcc.get_target_arch("9.0") == "90"
    assert nvcc.have_tma("sm_90a") and not nvcc.have_tma("sm_80") and nvcc.have_fp8("9.0")
    assert code_of(lambda: nvcc.parse_compute_version("nine")) == "TL1643"
    assert code_of(lambda: nvcc.get_ptx_from_source("")) == "TL1654"


def test_tvm_names() -> None:
    tvm = tilelab.tvm
    assert tvm.tirx.const(3, "uint16").dtype == T.uint16
    assert tvm.target.Target("cuda") == "auto"
    assert code_of(lambda: tvm.te) == "TL1654"
    assert code_of(lambda: tilelab.transform.PassContext()) == "TL1654"
    assert code_of(lambda: tilelab.transform.LayoutInference) == "TL1654"


def test_simplify_drops_tensors_that_no_kernel_touches() -> None:
    def program(bias: bool) -> Any:
        n, m = T.dynamic("n, m")

        @T.prim_func
        def main(
            A: T.Tensor((n,), "float32"), Bias: T.Tensor((n,), "float32"),
            Like: T.Tensor((m,), "float32"), C: T.Tensor((n,), "float32"),
        ):  # fmt: skip
            with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
                for i in T.Parallel(64):
                    C[bx * 64 + i] = A[bx * 64 + i] + (Bias[bx * 64 + i] if bias else m)

        return main

    a, b, like = torch.randn(70), torch.randn(70), torch.zeros(3)
    simplified = tilelab.transform.simplify_prim_func(program)
    assert [p.name for p in simplified(bias=True).params] == ["A", "Bias", "C"]
    shorter = tilelab.transform.apply_simplify(program(bias=False), inline_let=True)
    assert [p.name for p in shorter.params] == ["A", "Like", "C"]  # Like alone tells m
    for made, second, want in ((simplified(bias=True), b, a + b), (shorter, like, a + 3)):
        c = torch.zeros(70)
        tilelab.JITKernel(made, target="sm_80")(a, second, c)
        assert torch.equal(c, want)
    assert tilelab.transform.apply_simplify(len) is len
    shim.install()
    try:
        from tilelang.transform.simplify import apply_simplify
    finally:
        shim.uninstall()
    assert apply_simplify is tilelab.transform.apply_simplify


def test_numbers_of_a_kernel_are_expressions() -> None:
    assert isinstance(T.dynamic("n") + 1, T.PrimExpr)
    assert not isinstance(1, T.PrimExpr)
    assert code_of(lambda: T.PrimExpr("x")) == "TL1407"


def test_a_target_chosen_by_with() -> None:
    target = tilelab.tvm.target.Target

    @T.prim_func
    def ones(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                A[i] = 1

    with target("sm_80"):
        with target({"kind": "cuda", "arch": "sm_90a"}):
            assert tilelab.compile(ones).target.name == "sm_90a"
        assert tilelab.compile(ones).target.name == "sm_80"
        with target("cuda"):
            assert tilelab.compile(ones, target="sm_90a").target.name == "sm_90a"
        with pytest.raises(ZeroDivisionError), target("sm_90a"):
            _ = 1 // 0
        assert tilelab.compile(ones).target.name == "sm_80"


def test_tirx_expressions_compute() -> None:
    tirx = tilelab.tvm.tirx

    @T.prim_func
    def half_bits(A: T.Tensor((128,), "uint16"), C: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                C[i] = tirx.reinterpret(T.float16, A[i] + tirx.const(1, T.uint16))

    a = torch.arange(128, dtype=torch.int32).to(torch.uint16)
    got = tilelab.compile(half_bits, out_idx=[-1])(a)
    assert torch.equal(got.view(torch.int16), torch.arange(1, 129, dtype=torch.int16))
