"""Rows of the peer's table of Python constructs in traced code: values, and Python run now."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from typing import Any

import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import count, run, zeros

Ints = T.Tensor((8,), "int32")
Floats = T.Tensor((8,), "float32")


def test_chained_comparisons_and_not() -> None:
    @T.prim_func
    def main(A: Ints, B: Ints):
        with T.Kernel(1, threads=1):
            for i in range(8):
                if 1 < i <= 5:
                    A[i] = 1
                if 0 <= B[i] < 4 < 5:
                    A[i] = A[i] + 2
                A[i] = A[i] + T.if_then_else(2 <= i < 3 or not i < 7, 10, 0)

    assert run(main, zeros(), count()) == [2, 2, 13, 3, 1, 1, 0, 10]


def test_ternaries_choose_values_and_buffers() -> None:
    first = True

    @T.prim_func
    def main(A: Ints, B: Ints):
        with T.Kernel(1, threads=1):
            chosen = A if first else B
            for i in range(8):
                chosen[i] = i if i < 3 else (7 if i == 5 else -1)

    assert run(main, zeros(), zeros()) == [0, 1, 2, -1, -1, 7, -1, -1]


def test_a_walrus_is_bound_once() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            if (y := A[0]) == 5:
                A[0] = 1
                A[1] = y
            A[3] = (w := A[2] * 2) + w

    a = count()
    a[0] = 5
    assert run(main, a) == [1, 5, 2, 8, 4, 5, 6, 7]


def test_swaps_and_nested_targets() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            A[0], A[1] = A[1], A[0]
            (a, b), c = (A[2], A[3]), A[4]
            A[2], (A[3], A[4]) = c, (a, b)
            x = T.alloc_var("int32", init=1)
            y = T.alloc_var("int32", init=2)
            x, y = y, x
            A[5] = x * 10 + y
            p = q = A[6]
            A[7] = p + q

    assert run(main, count()) == [1, 0, 4, 2, 3, 21, 6, 12]


def test_every_augmented_operator() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            A[0] += 3
            A[1] -= 1
            A[2] *= 5
            A[3] //= 2
            A[4] %= 3
            A[5] <<= 1
            A[6] >>= 1
            A[7] |= 8
            A[7] &= 12
            A[7] ^= 1

    assert run(main, count()) == [3, 0, 10, 1, 1, 10, 3, 13]


def test_unary_operators_and_negative_indices() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            A[0] = +A[1]
            A[1] = -A[2]
            A[2] = ~A[3]
            A[3] = T.if_then_else(not A[4] >= 4, 1, 2)
            A[-1] = A[-2]

    assert run(main, count()) == [1, -2, -4, 2, 4, 5, 6, 6]


def test_python_values_fold_and_types_mix() -> None:
    @T.prim_func
    def main(A: Floats, B: Ints):
        with T.Kernel(1, threads=1):
            x = 3.5
            x = x + 1
            A[0] = x
            A[1] = B[3] * 0.5
            A[2] = B[3] + 1
            A[3] = 2**3
            A[4] = T.float32(B[2]) / 4

    assert run(main, zeros(torch.float32), count())[:5] == [4.5, 1.5, 4, 8, 0.5]


def test_slices_and_regions_bound_to_names() -> None:
    @T.prim_func
    def main(B: Floats, A: Floats):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            x = A[0:4]
            T.copy(x, s[0:4])
            T.copy(A[4:], s[4:8])
            T.copy(s[:], B[:])

    assert run(main, zeros(torch.float32), count(torch.float32)) == list(range(8))


def test_plain_python_runs_while_tracing() -> None:
    said: list[str] = []

    @T.prim_func
    def main(A: Floats):
        """A docstring."""
        with T.Kernel(1, threads=1):
            said.append(f"{len(A.shape)}-{A.shape[0]}-{math.sqrt(16):.0f}")
            assert isinstance(said[0], str), "text"
            table = {"a": 2}
            try:
                k = table["b"]
            except KeyError:
                k = table["a"]
            finally:
                said.append("finally")
            match k:
                case 2:
                    A[0] = k
                case _:
                    A[0] = 9
            del table
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                A[1] = 1

    assert run(main, zeros(torch.float32))[:2] == [2, 1]
    assert said == ["1-8-4", "finally"]


def test_helpers_lambdas_partials_and_keyword_only_arguments() -> None:
    def times(x: Any, *, k: int = 2) -> Any:
        return x * k

    thrice = functools.partial(times, k=3)

    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            A[0] = times(A[1])
            A[1] = thrice(A[3])
            A[2] = (lambda q: q + 1)(A[4])

    assert run(main, count())[:3] == [2, 9, 5]


def test_constants_of_a_dataclass() -> None:
    @dataclasses.dataclass(frozen=True)
    class Config:
        n: int = 3
        dtype: str = "int32"
        values: tuple[int, ...] = (1, 2)

    config = Config()

    @T.prim_func
    def main(A: T.Tensor((8,), config.dtype)):
        with T.Kernel(1, threads=1):
            for i in range(config.n):
                A[i] = config.values[-1]

    assert run(main, zeros()) == [2, 2, 2, 0, 0, 0, 0, 0]


class Adder:
    """Kernels as methods of a class: a factory, and an eager function without self."""

    def __init__(self, n: int) -> None:
        self.n = n

    @tilelab.jit
    def lazy(self, k: int) -> Any:
        n = self.n

        @T.prim_func
        def main(A: T.Tensor((n,), "int32")):
            with T.Kernel(1, threads=1):
                for i in range(n):
                    A[i] = n + k

        return main

    @staticmethod
    @tilelab.jit
    def eager(A: Any, B: Any) -> Any:
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        B: T.Tensor[[N], T.float32]
        C = T.empty((N,), T.float32)
        with T.Kernel(1, threads=32):
            for i in T.Parallel(N):
                C[i] = A[i] + B[i]
        return C


def test_kernels_as_methods() -> None:
    a = torch.zeros(4, dtype=torch.int32)
    Adder(4).lazy(3)(a)
    assert a.tolist() == [7] * 4
    x = count(torch.float32)
    assert torch.equal(Adder.eager(x, x), 2 * x)
