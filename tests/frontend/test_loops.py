"""Loops of Python inside traced code: what each means."""

from typing import Any

import pytest

import tilelab.language as T
from tests.frontend.helpers import body_text, expect, only
from tilelab.ir import For, If, LoopKind, Store, While

N = 8
Vec = T.Tensor((N,), "int32")


def test_serial_loops() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            for i in range(N):
                A[i] = i
            for j in range(2, N, 3):
                A[j] = j
            for k in T.serial(6, 0, -2):
                A[k] = k
            for u in T.unroll(2):
                A[u] = u
            for v in T.vectorized(4):
                A[v] = v

    loops = [s for s in main.function.kernels[0].body.body if isinstance(s, For)]
    assert [(f.var.name, f.start.value, f.extent.value, f.step.value) for f in loops] == [
        ("i", 0, 8, 1), ("j", 2, 2, 3), ("k", 6, 3, -2), ("u", 0, 2, 1), ("v", 0, 4, 1),
    ]  # fmt: skip
    kinds = [f.kind for f in loops]
    assert kinds == [LoopKind.SERIAL] * 3 + [LoopKind.UNROLL, LoopKind.LANES]
    assert [(f.var.lo, f.var.hi) for f in loops[:3]] == [(0, 7), (2, 5), (2, 6)]


def test_variables_bound_loops() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            first = T.alloc_var("int64", init=1)
            step = T.alloc_var("int32", init=2)
            for i in T.serial(first, first + 3):
                A[i] = i
            for j in T.serial(step):
                A[j] = j
            for k in T.serial(0, N, step):
                A[k] = k

    loops = [s for s in main.function.kernels[0].body.body if isinstance(s, For)]
    assert [f.var.name for f in loops] == ["i", "j", "k"]
    assert str(loops[0].var.dtype) == "int64"


def test_step_zero() -> None:
    with expect(ValueError, "TL1441"):

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                for i in T.serial(0, 8, 0):
                    A[i] = i


def test_parallel_grid_and_targets() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32")):
        with T.Kernel(1):
            for i, j in T.Parallel(4, 8):
                A[i, j] = i * 8 + j
            for i in T.Parallel(4):
                A[i, 0] = 1
            for x, y in T.grid(4, 8):
                A[x, y] = 0

    assert (
        body_text(main)
        == """\
for i, j in parallel(4, 8):
  A[i, j] = i * 8 + j
for i_1 in parallel(4):
  A[i_1, 0] = 1
for x in serial(4):
  for y in serial(8):
    A[x, y] = 0"""
    )


def test_persistent_guards_the_last_wave() -> None:
    @T.prim_func
    def main(A: T.Tensor((3, 5), "int32")):
        with T.Kernel(4) as w:
            for bx, by in T.Persistent([3, 5], 4, w):
                A[bx, by] = 1

    loop = only(main, For)
    assert loop.extent.value == 4
    (guard,) = loop.body.body
    assert isinstance(guard, If)


def test_python_loops_are_expanded() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            total = 0
            for i, x in enumerate([5, 6]):
                total += x
                A[i] = total
            for name, value in {"a": 2, "b": 3}.items():
                if name == "b":
                    break
                A[value] = value
            A[7] = sum(i for i in range(3))

    assert body_text(main) == "A[0] = 5\nA[1] = 11\nA[2] = 2\nA[7] = 3"


def test_comprehension_over_a_run_time_range() -> None:
    with expect(TypeError, "TL1440"):

        @T.prim_func
        def main(A: Vec, n: T.int32):
            with T.Kernel(1):
                A[0] = sum(i for i in range(n))


def test_while() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            j = T.alloc_var("int32", init=0)
            while j < A[0]:
                A[j] = j * j
                j += 2

    assert isinstance(only(main, While), While)
    assert (
        body_text(main)
        == """\
j = alloc_var((1,), int32)
j = 0
while j < A[0]:
  A[j] = j * j
  j = j + 2"""
    )


def test_while_of_python_values() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            n = 8
            while n > 1:
                n //= 2
                A[n] = n

    assert body_text(main) == "A[4] = 4\nA[2] = 2\nA[1] = 1"
    with expect(RuntimeError, "TL1443", "Infinite while loop"):

        @T.prim_func
        def forever(A: Vec):
            with T.Kernel(1):
                while True:
                    A[0] = 1


def test_break_and_continue() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            for i in T.serial(N):
                if i == A[0]:
                    break
                if i % 3 == 0:
                    continue
                A[i] = 1

    assert (
        body_text(main)
        == """\
for i in serial(8):
  if i == A[0]:
    break
  if i % 3 == 0:
    continue
  A[i] = 1"""
    )


def test_statements_after_break_are_dropped() -> None:
    with pytest.warns(UserWarning, match="never run"):

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                for i in T.serial(N):
                    break
                    A[i] = 1

    assert not [n for n in only(main, For).body.body if isinstance(n, Store)]


def test_break_that_cannot_be() -> None:
    with expect(NotImplementedError, "TL1445"):

        @T.prim_func
        def parallel(A: Vec):
            with T.Kernel(1):
                for i in T.Parallel(N):
                    if A[i] > 0:
                        break

    with expect(NotImplementedError, "TL1446"):

        @T.prim_func
        def expanded(A: Vec):
            with T.Kernel(1):
                for i in [0, 1]:
                    if A[i] > 0:
                        break


@pytest.mark.parametrize("loop", ["for", "while"])
def test_loop_else(loop: str) -> None:
    with expect(NotImplementedError, "TL1450", f"{loop}..else"):
        if loop == "for":

            @T.prim_func
            def f(A: Vec):
                with T.Kernel(1):
                    for i in range(3):
                        A[i] = 1
                    else:
                        A[0] = 2

        else:

            @T.prim_func
            def w(A: Vec):
                with T.Kernel(1):
                    while A[0] > 1:
                        A[0] = 1
                    else:
                        A[0] = 2


def between(kind: str) -> Any:
    """A T.Parallel loop that cannot be one with the loop around it."""

    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), n: T.int32):
        with T.Kernel(1):
            for i in T.Parallel(4):
                if kind == "value":
                    first = A[i, 0]
                    for j in T.Parallel(8):
                        A[i, j] = first
                elif kind == "extent":
                    for j in T.Parallel(A[n, 0] + i):
                        A[i, j] = 0
                else:
                    for _ in T.serial(i + 1):
                        for j in T.Parallel(8):
                            A[i, j] = 0

    return main


@pytest.mark.parametrize(
    ("kind", "why"),
    [("value", "of a buffer that the loop writes"), ("extent", "no known bound"),
     ("loop", "another length for each point")],
)  # fmt: skip
def test_nested_parallel_loops_that_are_not_one(kind: str, why: str) -> None:
    with expect(NotImplementedError, "TL1714", why):
        _ = between(kind).function
