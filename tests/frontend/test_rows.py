"""Rows of the peer's table of Python constructs in traced code: loops and launches.

The simulator runs every program. test_row_values.py holds the other rows, test_mistakes.py and its
neighbours those that are errors.
"""

from __future__ import annotations

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import count, run, zeros

Ints = T.Tensor((8,), "int32")


def test_range_in_all_its_forms() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            for i in range(2):
                A[i] = 1
            for i in range(2, 4):
                A[i] = 2
            for i in range(7, 4, -1):
                A[i] = A[i] + 3
            held = range(4, 5)
            for i in held:
                A[i] = 9

    assert run(main, zeros()) == [1, 1, 2, 2, 9, 3, 3, 3]


def test_a_step_known_only_at_run_time() -> None:
    @T.prim_func
    def main(A: Ints, s: T.int32):
        with T.Kernel(1, threads=1):
            for i in range(0, 8, s):
                A[i] = 1

    a = zeros()
    tilelab.compile(main, target="sm_90a")(a, 3)
    assert a.tolist() == [1, 0, 0, 1, 0, 0, 1, 0]


def test_steps_of_serial_unroll_and_vectorized() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            for i in T.serial(0, 8, 2):
                A[i] = 1
            for i in T.unroll(1, 8, 2):
                A[i] = 2
            for i in T.vectorized(4):
                A[i] = A[i] + 10
            for i in T.serial(7, 5, -1):
                A[i] = 5
            for i in T.unroll(2, 4, explicit=True):
                A[i] = A[i] + 1
            for i in T.unroll(0, 2, unroll_factor=2):
                A[i] = A[i] + 1

    assert run(main, zeros()) == [12, 13, 12, 13, 1, 2, 5, 5]


def test_python_iterables_are_expanded() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            for k, x in enumerate([3, 4]):
                A[k] = x
            for p, q in zip((2, 3), (5, 6), strict=True):
                A[p] = q
            for k, v in {4: 7, 5: 8}.items():
                A[k] = v
            for x in (y * 2 for y in (3,)):
                A[x] = x
            for x in {7}:
                A[x] = 1

    assert run(main, zeros()) == [3, 4, 5, 6, 7, 8, 6, 1]


def test_comprehensions_over_range_and_elements() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            squares = [i * i for i in range(4)]
            some = {i for i in range(2)}
            table = {i: i + 1 for i in range(2)}
            total = sum(i for i in range(4))
            nested = [[i * j for j in range(2)] for i in range(3) if i > 1]
            elements = [A[i] + 1 for i in range(2)]
            A[5] = elements[0] + elements[1]
            A[0] = squares[3]
            A[1] = len(some)
            A[2] = table[1]
            A[3] = total
            A[6] = nested[0][1]

    assert run(main, count()) == [9, 2, 2, 6, 4, 3, 2, 7]


def test_while_with_break_and_continue() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            i = T.alloc_var("int32", init=0)
            while i < 8 and A[7] == 0:
                i += 1
                if i == 2:
                    continue
                if i == 6:
                    break
                A[i - 1] = i

    assert run(main, zeros()) == [1, 0, 3, 4, 5, 0, 0, 0]


def test_a_while_condition_with_a_walrus() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=1):
            while (k := A[2]) < 5:
                if k == 3:
                    A[2] = k + 2
                    continue
                A[2] = k + 1
                A[k] = A[k] + 10

    assert run(main, zeros()) == [10, 10, 13, 0, 0, 0, 0, 0]


def _continued(i: int, j: int) -> int:
    if i == 3 or (j <= 32 and j == 7):
        return 1 if i != 3 else 0
    if j > 32:
        return 2 if i == 5 else 23
    return 24


def test_continue_in_parallel_iterations() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "int32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(64, 64):
                if i == 3:
                    continue
                A[i, j] = 1
                if j > 32:
                    A[i, j] = 2
                    if i == 5:
                        continue
                    A[i, j] = A[i, j] + 1
                elif j == 7:
                    continue
                else:
                    A[i, j] = 4
                for q in T.serial(3):
                    if q == 1:
                        continue
                    A[i, j] = A[i, j] + 10

    a = torch.zeros(64, 64, dtype=torch.int32)
    run(main, a)
    assert a.tolist() == [[_continued(i, j) for j in range(64)] for i in range(64)]


def test_continue_leaves_elements_of_a_fragment_alone() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_fragment((64, 64), "float32")
            T.copy(A, x)
            for i, j in T.Parallel(64, 64):
                if i > j:
                    continue
                x[i, j] = 0
            T.copy(x, B)

    a, b = torch.randn(64, 64), torch.zeros(64, 64)
    run(main, a, b)
    assert torch.equal(b, torch.tril(a, -1))


def test_kernels_of_one_function_run_in_order() -> None:
    dims = (2, 2)
    launch = T.Kernel

    @T.prim_func
    def main(A: Ints):
        with launch(2, threads=1) as bx:
            A[bx] = bx + 1
        with T.Kernel(*dims, threads=1) as (bx, by):
            A[2 + bx + 2 * by] = 5
        with T.Kernel(1, 1, 2, threads=(1, 1, 1)) as (_, _, bz):
            A[6 + bz] = A[0] + A[1]

    assert run(main, zeros()) == [1, 2, 5, 5, 5, 5, 3, 3]


def test_a_launch_by_assignment_lasts_to_the_end() -> None:
    @T.prim_func
    def main(A: Ints):
        bx, by = T.Kernel(4, 2, threads=1)
        A[bx * 2 + by] = bx

    assert run(main, zeros()) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_several_items_of_one_with() -> None:
    @T.prim_func
    def main(A: Ints):
        with T.Kernel(1, threads=256) as _, T.ws(0):
            A[0] = 1

    assert run(main, zeros())[0] == 1


@pytest.mark.parametrize("kind", ["list", "in", "unpack", "for"])
def test_python_does_not_run_over_a_buffer(kind: str) -> None:
    with pytest.raises(TypeError):

        @T.prim_func
        def main(A: Ints):
            with T.Kernel(1, threads=1):
                if kind == "list":
                    list(A)
                elif kind == "in":
                    A[0] = 3 in A
                elif kind == "unpack":
                    _a, _b = A
                else:
                    for _x in A:
                        A[0] = 1
