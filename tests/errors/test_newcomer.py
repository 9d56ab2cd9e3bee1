"""A newcomer's mistakes: what NumPy, PyTorch and Python habits meet in a kernel, and calls that do
not fit. Each answer has the user's line, the cause, and what to write instead."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tilelab.language as T
from tests.errors.told import Body, program, told
from tests.frontend.helpers import expect
from tilelab.errors import TileWarning

# -- functions that compute now ------------------------------------------------------------------


def math_exp(A, B, bx):
    B[0] = math.exp(A[0])


def math_isnan(A, B, bx):
    B[0] = math.isnan(A[0])


def math_gcd(A, B, bx):
    B[0] = math.gcd(bx, 2)


def numpy_tile(A, B, bx):
    f = T.alloc_fragment((64,), "float32")
    np.exp(f)


def numpy_sum(A, B, bx):
    f = T.alloc_fragment((64,), "float32")
    np.sum(f)


def numpy_maximum(A, B, bx):
    B[0] = np.maximum(A[0], 0)


def torch_relu(A, B, bx):
    B[0] = torch.relu(A[0])


def torch_sum(A, B, bx):
    torch.sum(A)


def python_int(A, B, bx):
    B[int(A[0])] = 1


def numpy_read(A, B, bx):
    table = np.zeros(64)
    B[bx] = table[bx]


def numpy_store(A, B, bx):
    table = np.zeros(64)
    table[bx] = A[bx]


def list_read(A, B, bx):
    table = [1, 2, 3]
    B[bx] = table[bx]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (math_exp, "TL1102", ("math.exp computes now", "write T.exp(")),
        (math_isnan, "TL1102", ("math.isnan computes now", "write T.isnan(")),
        (math_gcd, "TL1102", ("math.gcd computes now",)),
        (numpy_tile, "TL1407", ("np.exp computes now", "write T.exp(")),
        (numpy_sum, "TL1407", ("np.sum computes now", "T.reduce_sum(")),
        (numpy_maximum, "TL1407", ("np.maximum computes now", "T.max(a, b)")),
        (torch_relu, "TL1407", ("torch.relu computes now", "T.max(x, 0)")),
        (torch_sum, "TL1407", ("torch.sum computes now", "T.reduce_sum(")),
        (python_int, "TL1102", ("int computes now", 'T.cast(x, "int32")')),
        (numpy_read, "TL1407", ("table is Python's", "tensor parameter")),
        (numpy_store, "TL1407", ("table is Python's", "tensor parameter")),
        (list_read, "TL1102", ("table is Python's", "tensor parameter")),
    ],
)
def test_computes_now(body: Body, code: str, words: tuple[str, ...]) -> None:
    told(body, code, *words)


def test_numpy_numbers_stay_operands() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1) as b:
            A[b] = np.float32(2) * A[b + np.int64(1)]

    assert "A[b] = 2.0 * A[b + 1]" in main.script()


def python_len(A, B, bx):
    for i in T.Parallel(len(A)):
        B[i] = A[i]


def method_size(A, B, bx):
    for i in T.Parallel(A.size(0)):
        B[i] = A[i]


def method_half(A, B, bx):
    B[0] = A[0].half()


def method_add(A, B, bx):
    A.add_(1)


def formatted(A, B, bx):
    return f"{A[0]:.2f}"


def bare_type(A, B, bx):
    T.alloc_shared((128,), dtype=float32)


def loose_shape(A, B, bx):
    T.alloc_shared(128, 64, "float32")


def relu(x):
    if x > 0:
        return x
    return 0


def plain_helper(A, B, bx):
    B[0] = relu(A[0])


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (python_len, "TL1407", ("len computes now", "A.shape[0]")),
        (method_size, "TL1408", ("A.shape",)),
        (method_half, "TL1408", ('T.cast(x, "float16")',)),
        (method_add, "TL1408", ("A[i] += x",)),
        (formatted, "TL1407", ("T.print(x)",)),
        (bare_type, "TL1409", ("write T.float32",)),
        (loose_shape, "TL1101", ("in brackets",)),
        (plain_helper, "TL1102", ("if x > 0", "put @T.macro above relu")),
    ],
)
def test_habits_of_torch(body: Body, code: str, words: tuple[str, ...]) -> None:
    told(body, code, *words)


def printed_value(A, B, bx):
    print(A[0])
    B[0] = A[0]


def printed_text(A, B, bx):
    print("of", f"block {2 * bx}")
    B[0] = A[0]


@pytest.mark.parametrize(("body", "shown"), [(printed_value, "A[0]"), (printed_text, "bx * 2")])
def test_print_shows_an_expression(
    body: Body, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(TileWarning, match=r"T.print\(x\) shows its value") as caught:
        program(T.macro(body))
    assert shown in capsys.readouterr().out and caught[0].filename == __file__


def test_print_of_what_python_knows_is_pythons(recwarn: pytest.WarningsRecorder) -> None:
    def body(A, B, bx):
        size = 64
        print(f"{size} elements")
        B[0] = A[0]

    program(T.macro(body))
    assert not recwarn.list


# -- names of other languages, loops in the wrong place ------------------------------------------


def cuda_thread(A, B, bx):
    B[threadIdx.x] = A[threadIdx.x]


def bare_infinity(A, B, bx):
    B[0] = -inf


def triton_cdiv(A, B, bx):
    for i in range(cdiv(64, 4)):
        B[i] = A[i]


def untraced(A, B):
    for i in T.Parallel(64):
        B[i] = A[i]


def looping_helper(A, B, bx):
    untraced(A, B)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (cuda_thread, "TL1409", ("T.get_thread_binding()",)),
        (bare_infinity, "TL1409", ("T.infinity(dtype)",)),
        (triton_cdiv, "TL1409", ("write T.ceildiv",)),
        (looping_helper, "TL1440", ("put @T.macro above untraced",)),
    ],
)
def test_habits_of_other_languages(body: Body, code: str, words: tuple[str, ...]) -> None:
    told(body, code, *words)


# -- operators and names -------------------------------------------------------------------------


def power(A, B, bx):
    B[0] = A[0] ** 2


def power_of_two(A, B, bx):
    B[0] = 2**bx


def power_in_place(A, B, bx):
    B[0] **= 2


def matrix(A, B, bx):
    A @ B


def equal(A, B, bx):
    if T.EQ(bx, 0):
        B[0] = 1


def matmul(A, B, bx):
    T.matmul(A, B)


def where(A, B, bx):
    B[0] = T.where(A[0] > 0, A[0], 0)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (power, "TL1407", ("x * x", "T.pow(x, y)")),
        (power_of_two, "TL1407", ("1 << n",)),
        (power_in_place, "TL1465", ("x * x",)),
        (matrix, "TL1407", ("T.gemm(A, B, C)",)),
        (equal, "TL1005", ("write `a == b`",)),
        (matmul, "TL1007", ("T.gemm(A, B, C)",)),
        (where, "TL1005", ("T.if_then_else(condition, a, b)",)),
    ],
)
def test_operators_and_names(body: Body, code: str, words: tuple[str, ...]) -> None:
    told(body, code, *words)


# -- calls that do not fit -----------------------------------------------------------------------


def copy_keyword(A, B, bx):
    T.copy(A, B, coalescedwidth=2)


def gemm_keyword(A, B, bx):
    T.gemm(A, B, B, trans_b=True)


def select_few(A, B, bx):
    B[0] = T.Select(A[0] > 0, A[0])


def select_many(A, B, bx):
    B[0] = T.Select(A[0] > 0, A[0], 1, 2)


def stages(A, B, bx):
    for i in T.Pipelined(4, stages=2):
        B[i] = A[i]


def no_type(A, B, bx):
    T.alloc_shared((64,))


def own_macro(A, B, bx):
    helper(A, count=2)


@T.macro
def helper(A, number):
    A[0] = number


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (copy_keyword, "TL1407", ("T.copy() has no argument", "coalesced_width=")),
        (gemm_keyword, "TL1512", ("trans_b", "transpose_B=")),
        (select_few, "TL1407", ("T.Select() lacks its argument 'false_value'",)),
        (select_many, "TL1407", ("at most 3 arguments by position, and got 4",)),
        (stages, "TL1407", ("'stages'", "did you mean num_stages=")),
        (no_type, "TL1407", ("lacks its argument 'dtype'", "T.alloc_shared(shape, dtype")),
        (own_macro, "TL1407", ("helper() has no argument 'count'", "helper(A, number)")),
    ],
)
def test_call(body: Body, code: str, words: tuple[str, ...]) -> None:
    told(body, code, *words)


def test_thread_for_threads() -> None:
    with expect(TypeError, "TL1407", "T.Kernel() has no argument 'thread'", "threads="):

        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, thread=64) as b:
                A[b] = 1


def test_calls_outside_of_a_kernel() -> None:
    with expect(TypeError, "TL1407", "T.ceildiv() lacks its argument 'rhs'", "T.ceildiv(lhs, rhs)"):
        T.ceildiv(3)
    with expect(TypeError, "TL1407", "T.dynamic()", "dtype="):
        T.dynamic("M", dtyp="int64")
