"""The less used names of the language in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.ieee_programs import CHECKS as IEEE
from tests.ops.leaving_programs import CHECKS as LEAVING
from tests.ops.name_programs import CHECKS, Check
from tests.ops.vector_programs import CHECKS as VECTORS
from tests.thread.nvrtc import compile_cuda, needs_nvrtc
from tilelab.errors import TileError
from tilelab.target import SM80, SM90A

EVERY = (*CHECKS, *LEAVING, *VECTORS, *IEEE)
target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("check", EVERY, ids=lambda c: c.__name__)
def test_right_results(target: Any, check: Check) -> None:
    check(target, "cpu")


@needs_nvrtc
@pytest.mark.parametrize("chip", [SM90A, SM80], ids=str)
@pytest.mark.parametrize("check", EVERY, ids=lambda c: c.__name__)
def test_text_compiles(monkeypatch: pytest.MonkeyPatch, chip: Any, check: Check) -> None:
    made: list[Any] = []
    compile = tilelab.compile

    def recorded(*args: Any, **options: Any) -> Any:
        made.append(compile(*args, **options))
        return made[-1]

    monkeypatch.setattr(tilelab, "compile", recorded)
    check({"kind": "cuda", "arch": str(chip)}, "cpu")
    for kernel in made:
        compile_cuda(kernel.get_kernel_source(kernel_only=False), chip)


@pytest.mark.expects_findings
def test_a_false_assumption_is_found() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.assume(T.get_thread_binding() < 63)
            A[T.get_thread_binding()] = 1.0

    report = tilelab.compile(main, target=HOPPER).simulate(torch.zeros(64))
    assert report.codes() == ("TL2020",)


def _in_kernel(statement: Any) -> Any:
    def body(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((64,), "float16")
            statement(A, s)

    return lambda: tilelab.compile(T.prim_func(body), target=HOPPER)


MISTAKES = [
    ("TL1780", lambda A, s: T.annotate_safe_value({s: 1})),
    ("TL1780", lambda A, s: T.annotate_restrict_buffers(s)),
    ("TL1780", lambda A, s: T.annotate_compile_flags([1])),
    ("TL1780", lambda A, s: T.annotate_pass_configs("x")),
    ("TL1780", lambda A, s: T.assume(False)),
    ("TL1780", lambda A, s: T.func_attr({"target": 1})),
    ("TL1781", lambda A, s: T.cluster_wait()),
    ("TL1781", lambda A, s: T.ptx_arrive_cluster_barrier(s, 1)),
    ("TL1782", lambda A, s: T.ieee_add(A[0, 0], A[0, 1], "rz")),
    ("TL1782", lambda A, s: T.ieee_frsqrt(T.cast(A[0, 0], "float64"))),
    ("TL1782", lambda A, s: T.ieee_add(1.0, 2.0, "up")),
    ("TL1782", lambda A, s: getattr(T, "__ffs")(A[0, 0])),
    ("TL1783", lambda A, s: T.ldg128(s[0])),
    ("TL1783", lambda A, s: T.stg64(A[0, 0], 1)),
    ("TL1783", lambda A, s: T.extract_lane(A[0, 0], 1)),
    ("TL1783", lambda A, s: T.float16x4(1, 2, 3)),
    ("TL1783", lambda A, s: T.Ramp(0, 2, 4)),
    ("TL1783", lambda A, s: T.add2(A[0, 0], A[0, 1])),
    ("TL1783", lambda A, s: T.mul2(s[0:2], T.float32x2(1, 2))),
    ("TL1783", lambda A, s: T.reinterpret(s[0:4], T.float32x4)),
    ("TL1783", lambda A, s: T.dp4a(A[0, 0], A[0, 0], A[0, 0])),
    ("TL1783", lambda A, s: getattr(T, "__ldg")(s[0])),
    ("TL1784", lambda A, s: T.rng_rand()),
    ("TL1784", lambda A, s: T.rng_init(1, generator="other")),
    ("TL1784", lambda A, s: (T.rng_init(1), T.rng_rand_float(64))),
]


@pytest.mark.parametrize(("code", "statement"), MISTAKES)
def test_mistakes_are_named(code: str, statement: Any) -> None:
    with pytest.raises(TileError) as raised:
        _in_kernel(statement)()
    assert raised.value.code == code
    assert raised.value.hint


def test_a_cluster_of_several_blocks_is_refused() -> None:
    def body(A: T.Tensor((64,), "float16")):
        with T.Kernel(2, threads=32, cluster_dims=2):
            A[0] = 0

    with pytest.raises(TileError) as raised:
        T.prim_func(body)
    assert raised.value.code == "TL1781"
