"""What CUDA and Python habits meet at launches, votes, shuffles and products: each answer says
what to write."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import tilelab
import tilelab.language as T
from tests.errors.told import Body, program, told
from tests.frontend.helpers import expect
from tilelab.errors import TileWarning

# -- launches without `with` ---------------------------------------------------------------------


def test_a_launch_that_is_kept_and_never_entered() -> None:
    with expect(RuntimeError, "TL1405", "T.Kernel(1, threads=32)", "never entered", "with T.Ker"):

        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            kept = [T.Kernel(1, threads=32)]


def test_a_launch_that_has_a_name_first() -> None:
    with expect(RuntimeError, "TL1405", "with k as bx", "with T.Kernel(...) as bx:"):

        @T.prim_func
        def one(A: T.Tensor((4,), "float32")):
            k = T.Kernel(4, threads=32)
            with k as bx:
                A[bx] = 0

    with expect(RuntimeError, "TL1405", "with k as (bx, by)", "with T.Kernel(...) as bx:"):

        @T.prim_func
        def two(A: T.Tensor((4,), "float32")):
            k = T.Kernel(2, 2, threads=32)
            with k as (bx, by):
                A[bx] = by


def test_a_launch_without_brackets() -> None:
    with expect(TypeError, "TL1407", "does not call it", "with T.Kernel(...):"):

        @T.prim_func
        def main(A: T.Tensor((4,), "float32")):
            with T.Kernel as bx:
                A[bx] = 0


def test_an_assignment_opens_a_launch() -> None:
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        bx = T.Kernel(4, threads=1)
        A[bx] = bx

    a = torch.zeros(4, dtype=torch.int32)
    tilelab.compile(main, target="sm_90a")(a)
    assert a.tolist() == [0, 1, 2, 3]


# -- votes and shuffles with the mask first ------------------------------------------------------


@pytest.mark.parametrize("name", ["any_sync", "all_sync", "ballot_sync"])
def test_a_vote_in_the_order_of_cuda(name: str) -> None:
    vote = getattr(T, name)

    def constant(A, B, bx):
        vote(0xFFFFFFFF, A[0] > 0)

    def held(A, B, bx):
        vote(T.activemask(), A[0] > 0)

    def integer(A, B, bx):
        vote(0xFF, T.cast(A[0], "int32"))

    for body in (constant, held, integer):
        told(body, "TL1785", f"write T.{name}(predicate, mask=0xFFFFFFFF)", "mask comes first")


@pytest.mark.parametrize("name", ["match_any_sync", "match_all_sync"])
def test_a_match_in_the_order_of_cuda(name: str) -> None:
    match = getattr(T, name)

    def body(A, B, bx):
        match(0xFFFFFFFF, bx)

    told(body, "TL1785", f"write T.{name}(value, mask=0xFFFFFFFF)")


@pytest.mark.parametrize("name", ["shfl_sync", "shfl_xor", "shfl_up", "shfl_down"])
def test_a_shuffle_in_the_order_of_cuda(name: str) -> None:
    shuffle = getattr(T, name)

    def constant(A, B, bx):
        shuffle(0xFFFFFFFF, A[0], 1)

    def part(A, B, bx):
        shuffle(0xFFFF, A[0], bx)

    def held(A, B, bx):
        shuffle(T.activemask(), A[0], 0)

    for body in (constant, part, held):
        told(body, "TL1785", f"T.{name} has its mask behind", "width=32, mask=0xFFFFFFFF")


@pytest.mark.parametrize("mask", [0xFFFFFFFF, None])
def test_the_order_of_the_language_is_right(mask: Any) -> None:
    more = {} if mask is None else {"mask": mask}

    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), B: T.Tensor((32, 3), "int32")):
        with T.Kernel(1, threads=32):
            lane = T.get_thread_binding()
            B[lane, 0] = T.shfl_xor(A[lane], 1, 8, **more)
            B[lane, 1] = T.cast(T.ballot_sync(A[lane] > 3, **more), "int32")
            B[lane, 2] = T.cast(T.any_sync(1, **more), "int32")

    a, b = torch.arange(32, dtype=torch.int32), torch.zeros(32, 3, dtype=torch.int32)
    tilelab.compile(main, target="sm_90a")(a, b)
    assert b[:, 0].tolist() == [i ^ 1 for i in range(32)]
    assert b[0, 1].item() == ~0xF and b[0, 2].item() == 1


def shuffled(A, B, bx):
    B[0] = __shfl_down_sync(0xFFFFFFFF, A[0], 1)


def voted(A, B, bx):
    B[0] = __ballot_sync(0xFFFFFFFF, A[0] > 0)


def sized(A, B, bx):
    B[0] = blockDim.x


def halved(A, B, bx):
    for i in range(64 / 2):
        B[i] = A[i]


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (shuffled, "TL1409", "write T.shfl_down(value, delta)"),
        (voted, "TL1409", "write T.ballot_sync(predicate)"),
        (sized, "TL1409", "threads= of T.Kernel"),
        (halved, "TL1407", "`/` makes a float"),
    ],
)
def test_names_and_numbers_of_elsewhere(body: Body, code: str, words: str) -> None:
    told(body, code, words)


# -- products and tiles --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a_type", "b_type"),
    [("float16", "bfloat16"), ("float16", "float32"), ("int16", "uint8"), ("int8", "float16")],
)
def test_a_product_of_two_types(a_type: str, b_type: str) -> None:
    def body(A, B, bx):
        a, b = T.alloc_shared((64, 64), a_type), T.alloc_shared((64, 64), b_type)
        c = T.alloc_fragment((64, 64), "float32")
        T.gemm(a, b, c)

    says = rf"A = a \({a_type}\) and B = b \({b_type}\).*into a tile of {a_type}"
    with pytest.warns(TileWarning, match=says):
        program(T.macro(body))


def test_a_slice_assignment_that_should_be_a_copy() -> None:
    def body(A, B, bx):
        s = T.alloc_shared((128, 4), "float32")
        t = T.alloc_shared((128, 4), "float32")
        s[:, :] = t[:, :]

    with pytest.warns(TileWarning, match=r"512 assignments.*T\.copy\(t\[\.\.\.\], s\[\.\.\.\]\)"):
        program(T.macro(body))


def test_one_axis_and_one_index() -> None:
    def body(A, B, bx):
        B[0] = A[0, 0]

    told(body, "TL1105", "A has 1 axis, 2 indices were given")


def test_a_fraction_that_is_no_extent() -> None:
    with expect(TypeError, "TL1420", "2.5 is no extent", "T.ceildiv(n, tile) rounds up") as caught:
        T.Tensor((2.5,), "float32")
    assert "write 2.5" not in caught.error.hint


def test_the_shape_of_a_parameter_in_brackets() -> None:
    with expect(TypeError, "TL1531", "T.Tensor((M, N), dtype)"):
        T.Tensor(64, 64, "float16")


def test_kinds_have_their_article() -> None:
    def body(A, B, bx):
        T.copy(0, A)

    told(body, "TL1501", "src is 0, an int")


def test_a_name_of_the_package_that_is_nearly_right() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = tilelab.sugest_config
    assert caught.value.name == "sugest_config" and caught.value.obj is tilelab


def test_a_factory_that_forgot_the_decorator_inside() -> None:
    @tilelab.jit
    def factory(N):
        def main(A: T.Tensor((N,), "float32")):
            pass

        return main

    with expect(TypeError, "TL1497", "put @T.prim_func above main"):
        factory(4)


def test_an_f_string_in_a_print_of_the_kernel() -> None:
    def body(A, B, bx):
        T.print(A[0], msg=f"block {bx}")

    def alone(A, B, bx):
        T.print(f"block {bx}")

    for each in (body, alone):
        with pytest.warns(TileWarning, match="f-string is made while the kernel is traced"):
            program(T.macro(each))


def test_an_f_string_of_what_is_known_now() -> None:
    def known(A, B, bx):
        stage = 3
        T.print(A[0], msg=f"stage {stage}")

    with warnings.catch_warnings():
        warnings.simplefilter("error", TileWarning)
        program(T.macro(known))
