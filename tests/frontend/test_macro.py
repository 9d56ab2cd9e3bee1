"""Macros, T.Ref, and helpers that are no macros."""

import tilelab.language as T
from tests.frontend.helpers import body_text, caret, expect, only
from tilelab.ir import Let, Load, Store, walk

Vec = T.Tensor((8,), "float32")


@T.macro
def scaled(src, dst, factor, offset=1.0):
    for i in T.serial(8):
        dst[i] = src[i] * factor + offset


@T.macro
def pair(x, y):
    s = x + y
    return s, x - y


@T.macro
def bump(v: T.Ref, by):
    v = v + by


@T.macro
def countdown(buf, n):
    if n > 0:
        buf[n] = n
        countdown(buf, n - 1)


def test_inline_expansion() -> None:
    @T.prim_func
    def main(A: Vec, B: Vec):
        with T.Kernel(1):
            scaled(A, B, A[0], offset=2.0)

    lines = body_text(main).splitlines()
    assert lines[0] == "factor: float32 = A[0]"
    assert lines[1:] == ["for i in serial(8):", "  B[i] = A[i] * factor + 2.0"]


def test_returned_values() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            p, q = pair(A[0], A[1])
            A[2] = p * q

    lets = [n.var.name for n in walk(main.function) if isinstance(n, Let)]
    assert lets == ["x", "y", "s", "q"]


def test_references() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(2) as b:
            v = T.alloc_var("float32", 0.0)
            bump(v, 1.0)
            bump(A[b + A.shape[0] - 8], 2.0)
            A[0] = v

    assert body_text(main).splitlines()[2:] == ["v = v + 1.0", "A[b] = A[b] + 2.0", "A[0] = v"]
    with expect(ValueError, "TL1471"):

        @T.prim_func
        def number(A: Vec):
            with T.Kernel(1):
                bump(3, 1)


def test_a_value_argument_is_a_copy() -> None:
    @T.macro
    def overwrite(x):
        x = x + 1.0
        return x

    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            v = T.alloc_var("float32", 0.0)
            r = overwrite(v)
            A[0] = v
            A[1] = r

    stores = [n for n in walk(main.function) if isinstance(n, Store)]
    assert [s.buffer.name for s in stores] == ["v", "A", "A"]


def test_recursion_on_compile_time_values() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            countdown(A, 2)

    assert body_text(main) == "A[2] = 2.0\nA[1] = 1.0"


def test_no_return_from_a_run_time_branch() -> None:
    @T.macro
    def early(A):
        if A[0] > 0:
            return 1
        return 2

    with expect(RuntimeError, "TL1448", "called from") as caught:

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                A[1] = early(A)

    assert caught.error.loc.function == "early"
    assert caught.error.loc.caller.function == "main"


def test_macro_outside_a_kernel() -> None:
    with expect(RuntimeError, "TL1401", "scaled"):
        scaled(1, 2, 3)


def plain_helper(a, b):
    T.copy(a, b)


def returning_helper(a, b):
    return T.copy(a, b)


def test_a_copy_in_a_plain_helper() -> None:
    with expect(RuntimeError, "TL1403", "plain_helper", "@T.macro") as caught:

        @T.prim_func
        def lost(A: Vec, B: Vec):
            with T.Kernel(1):
                plain_helper(A, B)
                A[0] = 1.0

    assert caught.error.loc.function == "plain_helper"
    assert caret(caught.error) == "T.copy(a, b)"

    @T.prim_func
    def kept(A: Vec, B: Vec):
        with T.Kernel(1):
            returning_helper(A, B)
            A[0] = 1.0

    assert [line.split("(")[0] for line in body_text(kept).splitlines()] == ["Copy", "A[0] = 1.0"]


def test_helpers_may_compute_and_allocate() -> None:
    def tile(rows):
        return T.alloc_shared((rows, 4), "float32")

    def twice(x):
        return x * 2

    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            s = tile(2)
            A[0] = twice(A[1])
            [T.clear(s) for _ in range(2)]

    assert body_text(main).splitlines()[0] == "s = alloc_shared((2, 4), float32)"
    assert only(main, Store).value.a.buffer.name == "A"
    assert len([n for n in walk(main.function) if isinstance(n, Load)]) == 1


def test_a_macro_may_hold_the_kernel() -> None:
    @T.macro
    def whole(A, n):
        with T.Kernel(n) as b:
            A[b] = 1.0

    @T.prim_func
    def main(A: Vec):
        whole(A, 4)
        whole(A, 8)

    assert [k.grid[0].value for k in main.function.kernels] == [4, 8]
