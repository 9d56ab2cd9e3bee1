"""Assignments: lets, variables, swaps, slices, walrus."""

import tilelab.language as T
from tests.frontend.helpers import body_text, expect, only
from tilelab.ir import Let, Load, Store, walk

N = 8
Vec = T.Tensor((N,), "float32")


def test_a_bound_value_is_a_snapshot() -> None:
    @T.prim_func
    def main(A: Vec, B: Vec):
        with T.Kernel(1):
            i = T.get_thread_binding()
            tmp = T.max(A[i], 1.0)
            A[i] = tmp * 2.0
            B[i] = tmp / 2.0

    let = only(main, Let)
    assert let.var.name == "tmp"
    assert body_text(main).splitlines()[1:] == ["A[tx] = tmp * 2.0", "B[tx] = tmp / 2.0"]


def test_index_arithmetic_stays_an_expression() -> None:
    M = T.dynamic("M")

    @T.prim_func
    def main(A: T.Tensor((M,), "float32")):
        half = M // 2
        with T.Kernel(4) as b:
            row = b * 2 + 1
            other = row
            A[other + half] = 1.0

    assert not [n for n in walk(main.function) if isinstance(n, Let)]
    assert only(main, Store).indices[0].bounds[0] is not None


def test_python_values_fold() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            x = 3.5
            x = x + 1
            a = b = x
            A[0] = a + b

    assert body_text(main) == "A[0] = 9.0"


def test_variables() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            v = T.alloc_var("float32", 1.5)
            w = v
            v = A[0]
            v += w
            A[1] = v
            v = A
            v[2] = 0.0

    assert (
        body_text(main)
        == """\
v = alloc_var((1,), float32)
v = 1.5
w: float32 = v
v = A[0]
v = v + w
A[1] = v
A[2] = 0.0"""
    )


def test_swaps_are_two_phase() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            A[0], A[1] = A[1], A[0]
            x, (y, z) = A[2], (A[3], A[4])
            x, y = y, x
            A[2], A[3] = x, y
            p = T.alloc_var("float32", 1.0)
            q = T.alloc_var("float32", 2.0)
            p, q = q, p

    program = main.function.kernels[0].body.body
    lets = [s for s in program if isinstance(s, Let)]
    stores = [s for s in program if isinstance(s, Store)]
    assert stores[0].value is lets[0].var and stores[1].value is lets[1].var
    assert [n.value.indices[0].value for n in lets[:2]] == [1, 0]
    x, y = (n.var for n in lets[2:4])
    assert stores[2].value is y and stores[3].value is x
    assert stores[-2].value is lets[-2].var and isinstance(lets[-2].value, Load)
    assert lets[-2].value.buffer.name == "q" and lets[-1].value.buffer.name == "p"


def test_wrong_number_of_values() -> None:
    with expect(TypeError, "TL1460"):

        @T.prim_func
        def main(A: Vec):
            with T.Kernel(1):
                a, b = A[0], A[1], A[2]


def test_element_updates() -> None:
    @T.prim_func
    def main(A: Vec, B: T.Tensor((N, N), "float16"), C: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            A[-1] += 2
            B[0, 1] *= A[0]
            C[0] //= 2
            C[1] <<= 1
            counts = [1, 2]
            counts[0] += 5
            C[2] = counts[0]

    lines = body_text(main).splitlines()
    assert lines[0] == "A[7] = A[7] + 2.0"
    assert lines[2:5] == ["C[0] = C[0] // 2", "C[1] = C[1] << 1", "C[2] = 6"]
    assert only_store(main, 1).value.dtype == "float16"


def only_store(program, position: int) -> Store:
    return [n for n in walk(program.function) if isinstance(n, Store)][position]


def test_updates_that_are_refused() -> None:
    with expect(RuntimeError, "TL1464"):

        @T.prim_func
        def whole(A: Vec):
            with T.Kernel(1):
                A += 1

    with expect(TypeError, "TL1465"):

        @T.prim_func
        def power(A: Vec):
            with T.Kernel(1):
                A[0] **= 2

    with expect(TypeError, "TL1465"):

        @T.prim_func
        def floor(A: Vec):
            with T.Kernel(1):
                A[0] //= 2.0


def test_slices() -> None:
    @T.prim_func
    def main(A: Vec, B: Vec):
        with T.Kernel(1):
            s = T.alloc_local((4,), "float32")
            s[0:4] = A[4:8]
            x = A[0:4]
            T.copy(x, s)
            A[0:2] = A[1:3]

    lines = body_text(main).splitlines()
    assert lines[1:5] == [f"s[{i}] = A[{i + 4}]" for i in range(4)]
    assert lines[5].startswith("Copy(src=A[0:4], dst=s[0:4]")
    assert len([n for n in walk(main.function) if isinstance(n, Let)]) == 2
    with expect(TypeError, "TL1462", "T.fill"):

        @T.prim_func
        def scalar(A: Vec):
            with T.Kernel(1):
                A[0:4] = 1.0

    with expect(IndexError, "TL1106", "step"):

        @T.prim_func
        def step(A: Vec):
            with T.Kernel(1):
                T.clear(A[0:8:2])

    with expect(IndexError, "TL1105"):

        @T.prim_func
        def rank(A: Vec):
            with T.Kernel(1):
                A[0, 1] = 1.0


def test_walrus_binds_once() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            A[1] = (y := T.exp(A[0])) + 1.0
            A[2] = y

    let = only(main, Let)
    assert let.var.name == "y"
    assert only_store(main, 1).value is let.var


def test_the_annotation_of_an_assignment_means_nothing() -> None:
    @T.prim_func
    def main(A: Vec):
        with T.Kernel(1):
            x: T.int32 = A[0]
            A[1] = x

    assert only(main, Let).var.dtype == "float32"
