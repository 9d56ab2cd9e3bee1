"""A newcomer's mistakes: what NumPy, PyTorch and Python habits meet in a kernel, and calls that do
not fit. Each answer has the user's line, the cause, and what to write instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import expect

Body = Callable[[Any, Any, Any], Any]


def program(body: Body) -> Any:
    """A kernel around a macro."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            body(A, B, bx)

    return main


def told(body: Body, code: str, *words: str) -> None:
    """Tracing `body` is refused with these words, at a line of this file."""
    with expect(Exception, code, *words) as caught:
        program(T.macro(body))
    place = caught.error.place
    assert place is not None and place.file == __file__
    assert caught.error.hint


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


# -- operators and names -------------------------------------------------------------------------


def power(A, B, bx):
    B[0] = A[0] ** 2


def power_of_two(A, B, bx):
    B[0] = 2**bx


def power_in_place(A, B, bx):
    B[0] **= 2


def matrix(A, B, bx):
    A @ B


def both(A, B, bx):
    if T.And(bx > 0, bx < 2):
        B[0] = 1


def negation(A, B, bx):
    if T.Not(bx > 0):
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
        (both, "TL1005", ("write `a and b`",)),
        (negation, "TL1005", ("write `not a`",)),
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


# -- factories -----------------------------------------------------------------------------------


@tilelab.jit(out_idx=[1])
def factory(N, block=64):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i]

    return main


@tilelab.jit(out_idx=[1])
def forgetful(N):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            A[bx] = 0.0


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda: factory(), "TL1498", ("factory() lacks its argument 'N'", "(N, block=64)")),
        (lambda: factory(M=128), "TL1498", ("factory() has no argument 'M'", "(N, block=64)")),
        (lambda: factory(128, blok=3), "TL1498", ("'blok'", "did you mean block=")),
        (lambda: factory(128, 64, 3), "TL1498", ("at most 2 arguments by position, and got 3",)),
        (lambda: factory(128, N=3), "TL1498", ("'N' twice",)),
        (lambda: factory(torch.zeros(128)), "TL1495", ("a tensor for N", "call twice")),
        (lambda: forgetful(128), "TL1497", ("forgetful returns nothing", "return main")),
        (lambda: tilelab.compile(None), "TL1493", ("got None", "return main")),
        (lambda: tilelab.compile(factory), "TL1493", ("factory.compile(...)",)),
        (lambda: tilelab.compile(factory(128)), "TL1493", ("it is compiled",)),
        (lambda: tilelab.compile(program), "TL1493", ("put @T.prim_func above program",)),
    ],
)
def test_factory(call: Callable[[], Any], code: str, words: tuple[str, ...]) -> None:
    with expect(TypeError, code, *words, "test_newcomer.py, line") as caught:
        call()
    assert caught.error.hint


def test_keyword_of_no_parameter_is_told() -> None:
    """It only tells kernels apart, as in TileLang."""
    with pytest.warns(tilelab.errors.TileWarning, match="no argument 'version'"):
        assert factory(256, version=3) is not factory(256)


# -- loops, launches and shapes ------------------------------------------------------------------


def test_names_of_a_launch() -> None:
    with expect(TypeError, "TL1460", "1 grid extent", "2 names", "as bx"):

        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1) as (a, b):
                A[a] = b

    with expect(TypeError, "TL1103", "(b, by) are 2 values", "with T.Kernel(...) as (b, by):"):

        @T.prim_func
        def other(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, 2) as b:
                A[b] = 1


def two_names(A, B, bx):
    for i, j in T.Parallel(64):
        B[i] = A[j]


def three_names(A, B, bx):
    for i, j, k in T.Parallel(8, 8):
        B[i] = A[j + k]


def negative(A, B, bx):
    for i in T.Parallel(-1):
        B[i] = A[i]


def negative_serial(A, B, bx):
    for i in T.serial(-1):
        B[i] = A[i]


def fraction(A, B, bx):
    for i in T.serial(64 / 2):
        B[i] = A[i]


def truth_stages(A, B, bx):
    for i in T.Pipelined(4, num_stages=True):
        B[i] = A[i]


def truth(A, B, bx):
    T.alloc_shared((True,), "float32")


def listed(A, B, bx):
    for i, j in T.Parallel([8, 8]):
        B[i] = A[j]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (two_names, "TL1460", ("1 extent", "2 names", "T.Parallel(n, m)")),
        (three_names, "TL1460", ("2 extents", "3 names")),
        (negative, "TL1435", ("T.Parallel is -1",)),
        (negative_serial, "TL1435", ("T.serial is -1",)),
        (fraction, "TL1435", ("32.0", "T.ceildiv")),
        (truth_stages, "TL1434", ("num_stages=True",)),
        (truth, "TL1420", ("True is no extent",)),
        (listed, "TL1435", ("not in a list",)),
    ],
)
def test_extents(body: Body, code: str, words: tuple[str, ...]) -> None:
    told(body, code, *words)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: T.Tensor((-1,), "float32"), ("-1 is no extent of a tensor",)),
        (lambda: T.Tensor((True,), "float32"), ("True is no extent",)),
        (lambda: T.Tensor((4.0,), "float32"), ("write 4;",)),
        (lambda: T.Tensor(("M",), "float32"), ("T.dynamic('M')",)),
        (lambda: T.Tensor((1 << 70,), "float32"), ("is no extent",)),
    ],
)
def test_shapes(make: Callable[[], Any], words: tuple[str, ...]) -> None:
    with expect(TypeError, "TL1420", *words, "test_newcomer.py, line"):
        make()


def test_nothing_to_do_is_no_mistake() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(0):
                A[i] = 1.0
            for i in T.serial(0):
                A[i] = 1.0

    a = torch.zeros(128)
    tilelab.compile(main, target="sm_90a")(a)
    assert not a.any()


# -- parameters, types and results: the line and a suggestion ------------------------------------


def test_parameters() -> None:
    with expect(ValueError, "TL1423", "def main(A, B", "write A: T.Tensor"):

        @T.prim_func
        def main(A, B: T.Tensor((128,), "float32")):
            with T.Kernel(1) as b:
                A[b] = 1

    with expect(TypeError, "TL1421", "A: torch.Tensor", "write A: T.Tensor"):

        @T.prim_func
        def other(A: torch.Tensor):
            with T.Kernel(1) as b:
                A[b] = 1

    with expect(TypeError, "TL1421", "write n: T.int32"):

        @T.prim_func
        def third(n: int):
            with T.Kernel(1) as b:
                pass


def test_types_and_results() -> None:
    with expect(TypeError, "TL1101", 'did you mean "float32"?', "test_newcomer.py, line"):
        T.Tensor((4,), "flaot32")
    with expect(RuntimeError, "TL1481", "return A", "out_idx"):

        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1) as b:
                A[b] = 1
            return A

    with expect(RuntimeError, "TL1480", "tilelab.compile(main", "test_newcomer.py, line"):
        program(T.macro(nothing))(torch.zeros(128))


def nothing(A, B, bx) -> None:
    """A body that does nothing."""


# -- races ---------------------------------------------------------------------------------------


@pytest.mark.expects_findings
def test_race_of_an_update() -> None:
    @T.prim_func
    def main(X: T.Tensor((128,), "int32"), H: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(128):
                H[X[i]] += 1

    kernel = tilelab.compile(main, target="sm_90a")
    report = kernel.simulate(torch.zeros(128, dtype=torch.int32), torch.zeros(8, dtype=torch.int32))
    assert any("write T.atomic_add(H[X[i]], 1)" in f.hint for f in report.findings)
