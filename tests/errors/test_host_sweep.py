"""Every public function of the host side called wrongly."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.errors.sweep import complaints
from tilelab.autotuner import AutoTuner

PACKAGES = (
    "plot", "testing", "profiler", "views", "widgets", "artifact", "layout", "utils", "tools",
    "autotuner", "engine", "env", "transform", "math",
)  # fmt: skip
LEAVES = {
    "testing.main", "testing.regression", "testing.process_func",  # pytest, the caller's file
    "tilelab.register_cuda_postproc", "engine.register_cuda_postproc",  # kept for other tests
    "engine.register_cuda_postproc_callback", "tilelab.disable_cache", "env.disable_cache",
    "tilelab.set_log_level", "tilelab.register_extern",
}  # fmt: skip
METHODS = {
    "simulate", "export_sources", "show_source", "get_kernel_source", "export_sass",
    "print_source_code", "get_profiler", "get_host_source", "get_sass", "compile", "get_tir",
    "par_compile", "with_pass_configs", "set_compile_args", "set_profile_args", "from_kernel",
}  # fmt: skip
CALLS_BACK = {"run_once", "assert_allclose", "manual_assert_close", "assert_consistent", "do_bench"}
"""They call a function that they are given, or repeat: it is called with what is no function."""
CONTENT = (AssertionError,)
"""What a comparison of results raises."""


@T.prim_func
def copied(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i]


@tilelab.jit(out_idx=[1])
def factory(N, block=64):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i]

    return main


def functions() -> dict[str, Callable[..., Any]]:
    """Public functions by the name that a user writes."""
    kernel = tilelab.compile(copied, target="sm_90a", out_idx=[1])
    tuner = AutoTuner.from_kernel(factory, [{"N": 64}])
    found: dict[str, Callable[..., Any]] = {
        f"tilelab.{n}": getattr(tilelab, n)
        for n in tilelab.__all__
        if inspect.isfunction(getattr(tilelab, n)) and "ipython" not in n
    }
    for package in PACKAGES:
        module = importlib.import_module(f"tilelab.{package}")
        for name in getattr(module, "__all__", None) or vars(module):
            if name.startswith("_"):
                continue
            value = getattr(module, name)
            own = getattr(value, "__module__", "").startswith(module.__name__)
            if inspect.isfunction(value) and (own or hasattr(module, "__all__")):
                found[f"{package}.{name}"] = value
    for owner, value in (("kernel", kernel), ("jit", factory), ("tuner", tuner)):
        for name, method in inspect.getmembers(value, inspect.ismethod):
            if name in METHODS:
                found[f"{owner}.{name}"] = method
    found["kernel()"] = kernel
    return {name: fn for name, fn in found.items() if name not in LEAVES}


FUNCTIONS = functions()


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n.split(".")[-1] not in CALLS_BACK])
@pytest.mark.filterwarnings("ignore")
def test_wrong_calls_are_answered(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    kernel = FUNCTIONS["kernel()"]
    assert not complaints(FUNCTIONS[name], (kernel, torch.zeros(64)), CONTENT)


@pytest.mark.parametrize("name", sorted(CALLS_BACK))
def test_methods_of_a_profiler(name: str) -> None:
    kernel: Any = FUNCTIONS["kernel()"]
    method = getattr(kernel.get_profiler(), name)
    for args, kwargs in (((), {"nonsense": 1}), ((1,) * 15, {}), (("text", "text"), {})):
        with pytest.raises(tilelab.TileError):
            method(*args, **kwargs)
