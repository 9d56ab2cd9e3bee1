"""Programs of the kinds that people bring, in the simulator, for both feature sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE, HOPPER
from tests.ops.brought_programs import CHECKS
from tests.thread.nvrtc import compile_cuda, needs_nvrtc
from tilelab.errors import TileError
from tilelab.target import SM80, SM90A
from tilelab.tvm import tirx

target = pytest.mark.parametrize("target", [HOPPER, AMPERE], ids=["hopper", "ampere"])


@target
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_programs(target: Any, check: Any) -> None:
    torch.manual_seed(0)
    check(target, "cpu")


@pytest.mark.parametrize("name", ["__exp", "__log2", "__sin"])
def test_fast_functions_are_of_floats(name: str) -> None:
    fast = getattr(T, name)
    with pytest.raises(TypeError, match=rf"TL1782: T\.{name} only supports .* but got int32"):
        fast(tirx.Var("value", "int32"))
    made = fast(tirx.Var("value", "float16"))
    assert isinstance(made, tirx.Call)
    assert made.dtype == "float16"


def test_variables_and_numbers_by_their_class() -> None:
    n = T.dynamic("n")
    assert isinstance(n, T.Var)
    assert not isinstance(n + 1, T.Var)
    assert isinstance(tirx.IntImm("int32", 3), tirx.IntImm)
    assert isinstance(tirx.FloatImm("float32", 0.5), tirx.FloatImm)
    assert not isinstance(tirx.IntImm("int32", 3), tirx.FloatImm)
    assert isinstance(T.uint64() & T.uint64(2**64 - 1), tirx.PrimExpr)


def test_let_of_what_has_a_value() -> None:
    with pytest.raises(TileError, match="TL1466"):

        @T.prim_func
        def main(A: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32) as bx:
                T.let(bx, 3)
                A[0] = bx


def test_round_away_from_zero() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = T.round(A[i], "ties-away-from-zero")

    a = torch.tensor([0.5, 1.5, -2.5, 2.4])
    b = tilelab.compile(main, out_idx=[1], target=HOPPER)(a)
    assert b.tolist() == [1, 2, -3, 2]


@needs_nvrtc
@target
def test_cuda_text_compiles(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC takes what the checks compile, which the simulator then runs."""
    made: list[Any] = []
    plain = tilelab.compile

    def compile_and_keep(*args: Any, **options: Any) -> Any:
        made.append(plain(*args, **options))
        return made[-1]

    monkeypatch.setattr(tilelab, "compile", compile_and_keep)
    for check in CHECKS:
        check(target, "cpu")
    chip = SM90A if target is HOPPER else SM80
    for kernel in made:
        assert compile_cuda(kernel.get_kernel_source(kernel_only=False), chip)[0]
    assert len(made) >= len(CHECKS)


def _summing(start: int | None) -> Any:
    @T.prim_func
    def main(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1) as _:
            total = T.alloc_var("int32") if start is None else T.alloc_var("int32", start)
            steps = T.alloc_var("int32")
            steps = 3
            for k in T.serial(steps):
                total += k
            A[0] = total

    return tilelab.compile(main, out_idx=[0], target=HOPPER)


@pytest.mark.expects_findings
def test_variables_without_a_first_value() -> None:
    """They are 0 on a GPU, as with TileLang, and the simulator reports the read."""
    text = _summing(None).get_kernel_source()
    assert "int total = 0;" in text
    assert "int steps;" in text
    with pytest.raises(TileError, match=r"TL2002: total .* is read before it is written"):
        _summing(None)()
    assert "int total;" in _summing(5).get_kernel_source()
    assert _summing(5)().item() == 8


def test_a_tensor_that_is_left_out_and_needed() -> None:
    rows = T.dynamic("rows")

    @T.prim_func
    def main(A: T.Tensor((rows,), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(4):
                B[i] = rows

    kernel = tilelab.compile(main, target=HOPPER)
    b = torch.zeros(4, dtype=torch.int32)
    with pytest.raises(TypeError, match=r"TL1612: argument A .* nothing tells the size rows"):
        kernel(None, b, None)
    with pytest.raises(TypeError, match="TL1612: argument B of main is a tensor, got None"):
        kernel(torch.zeros(7, dtype=torch.int32), None, None)
    kernel(torch.zeros(7, dtype=torch.int32), b, None)
    assert b.tolist() == [7] * 4


def test_arrays_and_tiles_do_not_mix() -> None:
    with pytest.raises(TileError, match="TL1522"):

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=32) as _:
                own = T.alloc_local((4,), "int32")
                tile = T.alloc_fragment((1,), "int32")
                T.reduce_sum(own, tile, dim=0)


def test_tables_of_addresses() -> None:
    for kind in (T.Tensor([4], T.ptr), T.Tensor[[4], T.ptr]):
        assert (kind.shape, kind.dtype.name) == ((4,), "int64")


VOTES = ("any_sync", "all_sync", "ballot", "syncthreads_count", "syncthreads_and", "syncthreads_or")


@pytest.mark.parametrize("name", VOTES)
def test_votes_are_on_whole_numbers(name: str) -> None:
    with pytest.raises(TypeError, match=rf"TL1782: T\.{name}.* integer or boolean predicate"):

        @T.prim_func
        def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32) as _:
                tx = T.get_thread_binding()
                B[tx] = getattr(T, name)(A[tx])
