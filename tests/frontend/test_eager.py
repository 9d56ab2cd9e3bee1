"""Eager functions: parameters, constants, outputs; through get_tir, so nothing is compiled."""

import typing

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import body_text, expect
from tilelab.frontend import PrimFunc, TensorType


@tilelab.jit
def gemm(A, B, block: int = 32, dtype: T.dtype = T.float16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], dtype]
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), dtype)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        a = T.alloc_shared((block, block), dtype)
        if M > 64:
            T.clear(a)
        T.copy(A[by * block, bx * block], a)
        T.copy(a, C[by * block, bx * block])
    return C


def test_sizes_come_from_the_tensors() -> None:
    program = gemm.get_tir(torch.empty(128, 64), np.empty((64, 32)))
    assert isinstance(program, PrimFunc) and gemm.mode == "eager"
    function = program.function
    assert [(p.name, p.buffer.shape) for p in function.params] == [
        ("A", (128, 64)), ("B", (64, 32)), ("C", (128, 32)),
    ]  # fmt: skip
    assert function.outputs == (2,)
    assert "Fill" in body_text(program)


def test_placeholders_and_keywords() -> None:
    by_type = gemm.get_tir(T.Tensor((8, 4)), T.Tensor((4, 16)), block=4)
    assert by_type.function.params[2].buffer.shape == (8, 16)
    assert "Fill" not in body_text(by_type)
    by_name = gemm.get_tir(M=8, N=16, K=4)
    assert by_name.function.params[2].buffer.shape == (8, 16)
    both = gemm.get_tir(T.Tensor((8, 4)), T.Tensor((4, 16)), M=16)
    assert both.function.params[0].buffer.shape == (16, 4)
    with expect(ValueError, "TL1486", "Cannot find value for constexpr variable `N`"):
        gemm.get_tir(T.Tensor((8, 4)))


def test_a_constant_that_no_tensor_has() -> None:
    @tilelab.jit
    def lonely(A):
        M, N = T.const("M N")
        A: T.Tensor[[M, 2 * N], "float32"]
        with T.Kernel(1):
            A[0, 0] = 1.0

    with expect(RuntimeError, "TL1485", "Constexpr variable `N`", "DIRECT"):
        lonely.get_tir(T.Tensor((4, 4)))


def test_strides_and_scalars() -> None:
    @tilelab.jit
    def strided(A, n: T.int32, x: T.float32, k):
        M, S = T.const("M, S")
        A: T.StridedTensor[[M, 4], [S, 1], "float32"]
        with T.Kernel(M) as b:
            A[b, n] = x * k

    tensor = torch.empty(6, 8)[:, :4]
    function = strided.get_tir(tensor, 1, 2.0, k=3).function
    assert [p.name for p in function.params] == ["A", "n", "x"]
    assert function.params[0].buffer.strides == (8, 1)


def test_outputs_must_match_what_is_returned() -> None:
    def make(which: str):
        @tilelab.jit
        def f(A: T.Tensor[[8], T.float32]):
            C = T.empty((8,), "float32")
            D = T.empty(4, dtype="int32")
            with T.Kernel(1):
                C[0] = A[0]
            if which == "both":
                return D, C
            if which == "one":
                return C
            return A

        return f.get_tir(T.Tensor((8,)))

    assert make("both").function.outputs == (2, 1)
    with expect(RuntimeError, "TL1482", "Not all tensor from `T.empty` are returned"):
        make("one")
    with expect(RuntimeError, "TL1481", "Only tensor allocated from `T.empty` can be returned"):
        make("else")


def test_return_inside_the_kernel_and_outputs_of_macros() -> None:
    @T.macro
    def apply(A, n, act):
        C = T.empty((n,), "float32")
        with T.Kernel(1):
            for i in T.Parallel(n):
                C[i] = act(A[i])
        return C

    @tilelab.jit
    def inside(A, act=lambda x: x * 2):
        n = T.const("n")
        A: T.Tensor[[n], "float32"]
        C = T.empty((n,), "float32")
        with T.Kernel(1):
            C[0] = act(A[0])
            return C

    @tilelab.jit
    def outside(A, act=lambda x: x * 2):
        n = T.const("n")
        A: T.Tensor[[n], "float32"]
        return apply(A, n, act)

    assert inside.get_tir(T.Tensor((4,))).function.outputs == (1,)
    assert outside.get_tir(T.Tensor((4,))).function.outputs == (1,)


def test_dynamic_sizes_are_no_constants() -> None:
    @tilelab.jit
    def dyn(A):
        n = T.dynamic("n")
        A: T.Tensor[[n], "float32"]
        with T.Kernel(T.ceildiv(n, 8)):
            A[0] = 1.0

    function = dyn.get_tir(T.Tensor((5,))).function
    assert [v.name for v in function.sizes] == ["n"]


def test_const_belongs_to_eager_functions() -> None:
    with expect(RuntimeError, "TL1490"):

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            M = T.const("M")
            with T.Kernel(M):
                A[0] = 1.0


@tilelab.jit
def halves(A, block=32):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    assert N % block == 0, "whole blocks"
    assert tuple(A.shape) == (M, N)
    if N > 48:
        block = 64
    rows, half = min(M, 4), N // 2 if N > 48 else N
    C = T.empty((rows, half), "float32")
    with T.Kernel(rows, threads=block) as bx:
        for j in T.Parallel(half):
            C[bx, j] = A[bx, j]
    return C


def test_constants_are_numbers_before_the_kernel() -> None:
    """Asserts, branches and Python functions of T.const work once the tensors are declared."""
    for m, n in ((3, 64), (5, 32)):
        a = torch.randn(m, n)
        assert torch.equal(halves(a), a[:4, : n // 2 if n > 48 else n])
    with pytest.raises(AssertionError, match="whole blocks"):
        halves(torch.randn(3, 33))

    @tilelab.jit
    def late(A):
        M = T.const("M")
        A: T.Tensor[[M], "float32"]
        rows = max(M, 4)
        K = T.const("K")
        with T.Kernel(rows):
            A[0] = K

    with expect(RuntimeError, "TL1485", "`K`"):
        late(torch.zeros(8))


def test_layouts_are_arguments() -> None:
    @tilelab.jit
    def moved(A, order):
        M, N = T.const("M, N")
        A: T.Tensor[[M, N], "float32"]
        C = T.empty((M, N), "float32")
        with T.Kernel(1, threads=128):
            for i, j in T.Parallel(M, N, loop_layout=order):
                C[i, j] = A[i, j]
        return C

    order = T.Fragment((128, 4), lambda i, j: (i, j))
    a = torch.randn(128, 4)
    assert torch.equal(moved(a, order), a)
    with expect(TypeError, "TL1425", "order"):
        moved(a, a)


def test_use_before_declaration() -> None:
    @tilelab.jit
    def early(A):
        M = T.const("M")
        x = A.shape[0]
        A: T.Tensor[[M], "float32"]
        with T.Kernel(x):
            A[0] = 1.0

    with expect(RuntimeError, "TL1425", "A"):
        early.get_tir(T.Tensor((8,)))


def test_placeholder_type() -> None:
    assert isinstance(T.Tensor((4, 4)), TensorType)
    with pytest.raises(TypeError):
        T.StridedTensor((4, 4), (1,))


def test_compile_time_arguments_may_have_generic_annotations() -> None:
    @tilelab.jit
    def scaled(A, factor: float | None = None, blocks: tuple[int, ...] = (32,)):
        n = T.const("n")
        A: T.Tensor[[n], "float32"]
        C = T.empty((n,), "float32")
        with T.Kernel(1, threads=blocks[0]):
            for i in T.Parallel(n):
                C[i] = A[i] * (2.0 if factor is None else factor)
        return C

    x = torch.ones(8)
    assert torch.equal(scaled(x), 2 * x) and torch.equal(scaled(x, factor=3.0), 3 * x)
    scaled_too = tilelab.jit(annotated_by_typing)
    assert torch.equal(scaled_too(x), 2 * x)


def annotated_by_typing(A, factor: typing.Optional[float] = None):  # noqa: UP045 - what is tested
    n = T.const("n")
    A: T.Tensor[[n], "float32"]
    C = T.empty((n,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(n):
            C[i] = A[i] * (2.0 if factor is None else factor)
    return C
