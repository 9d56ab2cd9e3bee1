"""Factories called wrongly; launches, loops and shapes that cannot be; parameters, results, races:
each answer has the user's line, the cause, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.errors.told import Body, program, told
from tests.frontend.helpers import expect

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
    with expect(TypeError, code, *words, "test_calls.py, line") as caught:
        call()
    assert caught.error.hint


def test_a_tensor_that_no_line_declares() -> None:
    @tilelab.jit
    def copy(A, B):
        with T.Kernel(1, threads=32):
            B[0] = A[0]

    with expect(TypeError, "TL1425", "a tensor for A", "A: T.Tensor[[M], dtype]"):
        copy(torch.zeros(4), torch.zeros(4))


def test_host_functions() -> None:
    main = program(T.macro(nothing))
    with expect(TypeError, "TL1407", "compile() has no argument 'out_index'", "out_idx="):
        tilelab.compile(main, out_index=[1])
    with expect(TypeError, "TL1407", "jit() has no argument 'out'", "out_idx="):
        tilelab.jit(out=[1])


def test_a_wrong_call_of_a_kernel_names_the_call() -> None:
    kernel = tilelab.compile(program(T.macro(nothing)), target="sm_90a")
    with expect(TypeError, "TL1613", "kernel(torch.zeros(128).half(), torch", "main is defined at"):
        kernel(torch.zeros(128).half(), torch.zeros(128))


def test_a_launch_that_is_not_entered() -> None:
    with expect(RuntimeError, "TL1405", "T.Kernel(1, threads=32)", "write `with T.Kernel"):

        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            T.Kernel(1, threads=32)
            A[0] = 0


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
    with expect(TypeError, "TL1420", *words, "test_calls.py, line"):
        make()


def test_nothing_to_do_is_no_mistake() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(0):
                A[i] = 1.0
            for i in T.serial(0):
                A[i] = 1.0
            for i in T.serial(-3):  # as range(-3)
                A[i] = 1.0
            for i in T.Pipelined(-1, num_stages=2):
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
    with expect(TypeError, "TL1101", 'did you mean "float32"?', "test_calls.py, line"):
        T.Tensor((4,), "flaot32")
    with expect(RuntimeError, "TL1481", "return A", "out_idx"):

        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1) as b:
                A[b] = 1
            return A

    with expect(RuntimeError, "TL1480", "tilelab.compile(main", "test_calls.py, line"):
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
