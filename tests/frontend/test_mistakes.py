"""Mistakes in a kernel's text: each is a TileError with its code, the user's line and a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tilelab
import tilelab.language as T
from tests.frontend.helpers import caret, expect
from tilelab.frontend import PrimFunc

Body = Callable[[Any, Any, Any], Any]
missing_name: Any


def program(body: Body, blocks: Any = 1, threads: Any = 64) -> PrimFunc:
    """A kernel around a macro."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(blocks, threads=threads) as bx:
            body(A, B, bx)

    return main


@T.macro
def plain(A, B, bx):
    B[0] = abs(A[0])


@pytest.mark.parametrize("threads", [2048, (1024, 2), (1, 1, 65)])
def test_too_many_threads(threads: Any) -> None:
    with expect(ValueError, "TL1431", "at most 1024") as caught:
        program(plain, threads=threads)
    assert caret(caught.error).startswith("T.Kernel(")


def test_too_many_blocks() -> None:
    with expect(ValueError, "TL1430", "along x"):
        tilelab.compile(program(plain, blocks=2**31), target="sm_90a")
    program(plain, blocks=2**31 - 1, threads=1024)

    @T.prim_func
    def tall(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, 65536, threads=32) as (bx, by):
            A[0] = 1.0

    with expect(ValueError, "TL1430", "65535", "along y"):
        tilelab.compile(tall, target="sm_90a")


@T.macro
def float_index(A, B, bx):
    B[0.5] = 1


@T.macro
def loaded_index(A, B, bx):
    B[A[0]] = 1


@T.macro
def past_end(A, B, bx):
    B[200] = 1


@T.macro
def before_start(A, B, bx):
    B[0] = A[-129]


@T.macro
def fragment_end(A, B, bx):
    s = T.alloc_fragment((64,), "float32")
    T.clear(s)
    for i in T.Parallel(128):
        B[i] = s[i]


@T.macro
def local_end(A, B, bx):
    s = T.alloc_local((4,), "float32")
    for i in T.serial(4):
        s[i + 1] = 0


@T.macro
def tile_end(A, B, bx):
    s = T.alloc_shared((8, 8), "float32")
    for i in T.serial(3):
        T.fill(s[i * 3 : i * 3 + 4, 0:8], 0)


@T.macro
def tile_row(A, B, bx):
    s = T.alloc_shared((8, 128), "float32")
    T.copy(A, s[8, 0:128])


@T.macro
def base_point_end(A, B, bx):
    s = T.alloc_shared((8, 8), "float32")
    f = T.alloc_fragment((8, 4), "float32")
    for i in T.serial(3):
        T.copy(s[0, i * 3], f)


@T.macro
def buffer_condition(A, B, bx):
    if A > 0:
        B[0] = 1


@T.macro
def buffer_sum(A, B, bx):
    B[0] = A + 1


@T.macro
def wrong_arguments(A, B, bx):
    B[0] = T.exp(A[0], A[1])


@T.macro
def no_destination(A, B, bx):
    T.copy(A)


@T.macro
def numpy_sine(A, B, bx):
    B[0] = np.sin(A[0])


@T.macro
def torch_exp(A, B, bx):
    B[0] = torch.exp(A[0])


@T.macro
def no_attribute(A, B, bx):
    B[0] = A[0].foo


@T.macro
def undefined(A, B, bx):
    B[0] = missing_name


@T.macro
def rounded(A, B, bx):
    B[0] = round(A[0])


@T.macro
def one_name(A, B, bx):
    for i in T.Parallel(8, 8):
        B[i] = 0


@T.macro
def run_time_shape(A, B, bx):
    T.alloc_shared((bx,), "float32")


@T.macro
def negative_shape(A, B, bx):
    T.alloc_shared((-3,), "float32")


@pytest.mark.parametrize(
    ("body", "kind", "code", "words"),
    [
        (float_index, IndexError, "TL1110", "0.5"),
        (loaded_index, IndexError, "TL1110", "float32"),
        (past_end, IndexError, "TL1111", "the index 200"),
        (before_start, IndexError, "TL1111", "the index -129"),
        (fragment_end, IndexError, "TL1111", "reaches 127"),
        (local_end, IndexError, "TL1111", "reaches 4"),
        (tile_end, IndexError, "TL1111", "the tile reaches 9"),
        (tile_row, IndexError, "TL1111", "the index 8"),
        (base_point_end, IndexError, "TL1111", "the tile reaches 9"),
        (buffer_condition, TypeError, "TL1407", "a whole buffer"),
        (buffer_sum, TypeError, "TL1407", "a whole buffer"),
        (wrong_arguments, TypeError, "TL1407", "exp()"),
        (no_destination, TypeError, "TL1407", "'dst'"),
        (numpy_sine, TypeError, "TL1407", "write T.sin(...)"),
        (torch_exp, TypeError, "TL1407", "write T.exp(...)"),
        (no_attribute, AttributeError, "TL1408", "foo"),
        (undefined, NameError, "TL1409", "missing_name"),
        (rounded, TypeError, "TL1454", "T.round"),
        (one_name, TypeError, "TL1103", "for i, j in"),
        (run_time_shape, TypeError, "TL1427", "(bx,)"),
        (negative_shape, TypeError, "TL1427", "not positive"),
    ],
)
def test_mistake(body: Body, kind: type[Exception], code: str, words: str) -> None:
    with expect(kind, code, words, "hint:") as caught:
        program(body)
    assert caret(caught.error).strip()


@T.macro
def guarded(A, B, bx):
    s = T.alloc_local((4,), "float32")
    for i in T.serial(8):
        if i < 4:
            s[i] = 0
    for i in T.serial(8):
        if i == 4:
            break
        s[i] = 1
    for i in T.serial(8):
        B[i] = T.if_then_else(i < 4, s[i], T.float32(0))
        s[i % 4] = s[i // 2] + s[i - i]


def test_guarded_accesses_are_not_judged() -> None:
    program(guarded)


def test_overflow_points_at_the_largest_buffer() -> None:
    @T.macro
    def body(A, B, bx):
        small = T.alloc_shared((8,), "float32")
        large = T.alloc_shared((100000,), "float32")
        T.clear(small)
        T.clear(large)
        B[0] = small[0] + large[0]

    with expect(ValueError, "TL1801") as caught:
        tilelab.compile(program(body), target="sm_90a")
    assert "100000" in caret(caught.error)


def test_arguments_of_a_call() -> None:
    kernel = tilelab.compile(program(plain))
    a, b = torch.full((128,), -2.0), torch.zeros(128)
    kernel(B=b, A=a)
    assert b[0] == 2
    for call, code in (
        (lambda: kernel(a, X=b), "TL1611"),
        (lambda: kernel(a, A=a), "TL1611"),
        (lambda: kernel(a.to("meta"), b.to("meta")), "TL1612"),
        (lambda: kernel(a.to_sparse(), b), "TL1612"),
        (lambda: tilelab.compile(program(plain), out_idx="B"), "TL1621"),  # type: ignore[arg-type]
        (lambda: tilelab.compile(program(plain), out_idx=1.5), "TL1621"),  # type: ignore[arg-type]
    ):
        with expect(TypeError, code, "hint:") as caught:
            call()
        assert caught.error.place is not None


def test_compiling_tells_mistakes_of_lowering() -> None:
    """With or without a target, in each form: a kernel that comes back is one that works."""

    @T.macro
    def body(A, B, bx):
        large = T.alloc_shared((1 << 20,), "float32")
        T.copy(A[0], large)

    made = program(body)

    @tilelab.jit
    def lazy() -> Any:
        return made

    for compile in (lambda: tilelab.compile(made), lambda: tilelab.par_compile([made]), lazy):
        with expect(ValueError, "TL1801"):
            compile()
    assert tilelab.par_compile([made, program(plain)], ignore_error=True)[0] is None
    assert lazy.par_compile([()], ignore_error=True) == [None]
