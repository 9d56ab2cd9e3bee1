"""Branches, logic and other Python inside traced code: what each means."""

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import body_text, caret, expect

N = 8
Vec = T.Tensor((N,), "int32")


def test_if_elif_else() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1) as b:
            t = T.get_thread_binding()
            if t < 4:
                A[t] = 1
            elif t == 5 and A[t] > 0:
                A[t] = 2
            else:
                A[t] = 3

    assert (
        body_text(main)
        == """\
if tx < 4:
  A[tx] = 1
elif tx == 5 and A[tx] > 0:
  A[tx] = 2
else:
  A[tx] = 3"""
    )


def test_trace_time_if() -> None:
    def make(causal: bool, scale):
        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                if causal:
                    A[0] = 1
                if scale is not None:
                    x = scale
                    A[1] = x
                elif not causal:
                    A[2] = undefined_name

        return main

    assert body_text(make(True, None)) == "A[0] = 1"
    assert body_text(make(True, 3)) == "A[0] = 1\nA[1] = 3"


def test_condition_that_is_a_buffer() -> None:
    with expect(TypeError, "TL1452"):

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                if A:
                    A[0] = 1


def test_else_sees_the_values_before_the_branch() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            x = 1
            if A[0] > 0:
                x = 2
                A[1] = x
            else:
                A[2] = x

    assert body_text(main) == "if A[0] > 0:\n  A[1] = 2\nelse:\n  A[2] = 1"


def test_values_do_not_leave_a_run_time_branch() -> None:
    with expect(RuntimeError, "TL1410", "x is used outside its defining region") as caught:

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                x = 1
                if A[0] > 0:
                    x = 2
                A[1] = x + 1

    assert caret(caught.error) == "x + 1"


def test_values_do_not_leave_a_loop() -> None:
    with expect(RuntimeError, "TL1410", "i is used outside"):

        @T.prim_func
        def index(A: Vec):
            with T.Kernel(1):
                for i in T.serial(4):
                    A[i] = i
                A[0] = i

    with expect(RuntimeError, "TL1410", "s is used outside"):

        @T.prim_func
        def buffer(A: Vec):
            with T.Kernel(1):
                for i in T.serial(4):
                    s = T.alloc_local((2,), "int32")
                A[0] = s[0]

    with expect(RuntimeError, "TL1410", "hidden is used outside"):

        @T.prim_func
        def container(A: Vec):
            with T.Kernel(1):
                kept = []
                for i in T.serial(4):
                    hidden = T.max(A[i], 1)
                    kept.append(hidden)
                A[0] = kept[0]


def test_values_do_not_leave_a_kernel() -> None:
    with expect(RuntimeError, "TL1410"):

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(2) as bx:
                A[bx] = 1
            with T.Kernel(1):
                A[bx] = 2


def test_a_value_carried_between_iterations() -> None:
    with expect(RuntimeError, "TL1412", "acc", "alloc_var"):

        @T.prim_func
        def main(A: Vec, B: Vec):
            with T.Kernel(1):
                acc = 0
                for i in T.serial(4):
                    acc = acc + A[i]
                    B[i] = acc

    @T.prim_func
    def fine(A: Vec, B: Vec):
        with T.Kernel(1):
            for i in T.serial(4):
                x = A[i] + 1
                x = x * 2
                B[i] = x
            for i in T.serial(4):
                x = A[i]
                B[i] = x

    assert fine.function.kernels


def test_ternary_and_logic() -> None:
    @T.prim_func
    def main(A: Vec, flag: T.int32):
        with T.Kernel(1):
            A[0] = 1 if A[1] > 0 else 2
            A[1] = 5 if N > 4 else A[99]
            if 0 < A[2] < 5 and not A[3] > 1:
                A[2] = 1
            if A[4] > 0 or flag > 1:
                A[4] = 2
            if N < 0 and A[0] > 0:
                A[5] = 3
            B = A if N else None
            B[6] = N or A[0]

    text = body_text(main)
    assert "A[5]" not in text and "A[6] = 8" in text and " or flag > 1" in text


def test_a_runtime_condition_chooses_no_buffers() -> None:
    with expect(TypeError, "TL1453"):

        @T.prim_func
        def main(A: Vec, B: Vec):
            with T.Kernel(1):
                C = A if A[0] > 0 else B
                C[0] = 1


def test_membership_is_refused() -> None:
    with expect(TypeError, "TL1455", "x == 0 or x == 1") as caught:

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                x = A[0]
                if x in (0, 1):
                    A[1] = 1

    assert caret(caught.error) == "x in (0, 1)"


def test_builtins_on_traced_values() -> None:
    with expect(TypeError, "TL1454", "T.max"):

        @T.prim_func
        def largest(A: Vec):
            with T.Kernel(1):
                A[0] = max(A[1], A[2])

    with expect(TypeError, "TL1102"):

        @T.prim_func
        def integer(A: Vec):
            with T.Kernel(1):
                A[int(A[0])] = 1

    with expect(RuntimeError, "TL1104"):

        @T.prim_func
        def divide(A: Vec):
            with T.Kernel(1):
                A[0] = A[1] / A[2]


def test_asserts() -> None:
    with pytest.raises(AssertionError, match="too small"):

        @T.prim_func
        def now(A: Vec):
            with T.Kernel(1):
                assert N > 100, "too small"
                A[0] = 1

    with expect(ValueError, "TL1447"):

        @T.prim_func
        def later(A: Vec, n: T.int32):
            with T.Kernel(1):
                A[0] = 1
            assert n > 0

    @T.prim_func
    def main(A: Vec, n: T.int32):
        assert n > 0, "no rows"
        with T.Kernel(1, threads=32):
            A[0] = n

    kernel, a = tilelab.compile(main), torch.zeros(N, dtype=torch.int32)
    kernel(a, 3)
    assert a[0] == 3
    with expect(RuntimeError, "TL1641", "assertion failed: no rows"):
        kernel(a, 0)


def test_plain_python_goes_on() -> None:
    @T.prim_func
    def main(A: Vec):
        """A docstring."""
        with T.Kernel(1):
            try:
                x = len(A.shape) + (1 if isinstance(N, int) else 0)
            finally:
                y = f"{x}"
            match x:
                case 2:
                    A[0] = int(y)
                case _:
                    A[0] = 99
            add = lambda a, b: a + b  # noqa: E731
            A[1] = add(A[0], 2)
            ...

    assert body_text(main) == "A[0] = 2\nA[1] = A[0] + 2"


@pytest.mark.parametrize("what", ["global", "class", "attribute", "starred"])
def test_what_traced_code_cannot_hold(what: str) -> None:
    with expect(NotImplementedError, "TL1450"):
        if what == "global":

            @T.prim_func
            def g(A: Vec):
                global N
                with T.Kernel(1):
                    A[0] = 1

        elif what == "class":

            @T.prim_func
            def c(A: Vec):
                class Inner:
                    pass

        elif what == "attribute":

            @T.prim_func
            def a(A: Vec):
                A.name = "x"

        else:

            @T.prim_func
            def s(A: Vec):
                with T.Kernel(1):
                    a, *b = (1, 2, 3)


def test_a_bool_element_past_the_tensor_counts_as_false() -> None:
    @T.prim_func
    def marked(A: T.Tensor((5,), "bool"), C: T.Tensor((8,), "int32")):
        with T.Kernel(8, threads=32) as bx:
            if A[bx]:
                C[bx] = 1
            else:
                C[bx] = 2

    flags = torch.tensor([True, False, True, True, False])
    found = tilelab.compile(marked, out_idx=-1)(flags)
    assert found.tolist() == [1, 2, 1, 1, 2, 2, 2, 2]
