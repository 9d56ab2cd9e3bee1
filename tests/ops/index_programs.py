"""One kernel for each way of reaching tensors whose elements 32 bits cannot count: their text is
read, nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tilelab.language as T

LARGE = (70_000, 65_536)
_SIDE = 64


@T.macro
def copy_by_shared(A, B, R, bx, by):
    s = T.alloc_shared((_SIDE, _SIDE), A.dtype)
    T.copy(A[by * _SIDE, bx * _SIDE], s)
    T.copy(s, B[by * _SIDE, bx * _SIDE])


@T.macro
def copy_by_fragment(A, B, R, bx, by):
    f = T.alloc_fragment((_SIDE, _SIDE), A.dtype)
    T.copy(A[by * _SIDE, bx * _SIDE], f)
    T.copy(f, B[by * _SIDE, bx * _SIDE])


@T.macro
def columns(A, B, R, bx, by):
    f = T.alloc_fragment((_SIDE,), A.dtype)
    T.copy(A[by * _SIDE : by * _SIDE + _SIDE, bx], f)
    T.copy(f, B[by * _SIDE : by * _SIDE + _SIDE, bx])


@T.macro
def pipelined(A, B, R, bx, by):
    s = T.alloc_shared((_SIDE, _SIDE), A.dtype)
    f = T.alloc_fragment((_SIDE, _SIDE), A.dtype)
    T.clear(f)
    for k in T.Pipelined(8, num_stages=3):
        T.copy(A[by * _SIDE, k * _SIDE], s)
        for i, j in T.Parallel(_SIDE, _SIDE):
            f[i, j] = T.max(f[i, j], s[i, j])
    T.copy(f, B[by * _SIDE, bx * _SIDE])


@T.macro
def loop(A, B, R, bx, by):
    for i, j in T.Parallel(_SIDE, _SIDE):
        B[by * _SIDE + i, bx * _SIDE + j] = A[by * _SIDE + i, bx * _SIDE + j]


@T.macro
def gathered(A, B, R, bx, by):
    for i, j in T.Parallel(_SIDE, _SIDE):
        B[R[i], bx * _SIDE + j] = A[R[j], bx * _SIDE + i]


@T.macro
def filled(A, B, R, bx, by):
    T.fill(B[by * _SIDE : by * _SIDE + _SIDE, bx * _SIDE : bx * _SIDE + _SIDE], 1)


@T.macro
def by_threads(A, B, R, bx, by):
    t = T.get_thread_binding()
    for i in T.serial(_SIDE):
        B[by * _SIDE + i, bx * _SIDE + t % _SIDE] = A[by * _SIDE + i, bx * _SIDE + t % _SIDE]
    for v in T.vectorized(4):
        B[by * _SIDE + t % _SIDE, bx * _SIDE + v] = A[by * _SIDE + t % _SIDE, bx * _SIDE + v]


@T.macro
def by_words(A, B, R, bx, by):
    row = by * _SIDE + T.get_thread_binding() % _SIDE
    T.stg128(B[row, bx * _SIDE], T.ldg128(A[row, bx * _SIDE]))


@T.macro
def cp_async(A, B, R, bx, by):
    s = T.alloc_shared((_SIDE, _SIDE), A.dtype)
    T.async_copy(A[by * _SIDE, bx * _SIDE], s)
    T.ptx_wait_group(0)
    T.sync_threads()
    T.copy(s, B[by * _SIDE, bx * _SIDE])


@T.macro
def atomics(A, B, R, bx, by):
    f = T.alloc_fragment((_SIDE, _SIDE), A.dtype)
    T.copy(A[by * _SIDE, bx * _SIDE], f)
    T.atomic_add(B[by * _SIDE, bx * _SIDE], f)
    for i, j in T.Parallel(_SIDE, _SIDE):
        T.atomic_add(B[by * _SIDE + i, bx * _SIDE + j], A[by * _SIDE + i, bx * _SIDE + j])


@T.macro
def pointers(A, B, R, bx, by):
    source = T.access_ptr(A[by * _SIDE, bx * _SIDE], "r")
    T.call_extern("handle", "f", source, T.address_of(B[by * _SIDE, bx * _SIDE]))


BODIES = (
    copy_by_shared, copy_by_fragment, columns, pipelined, loop, gathered, filled, by_threads,
    by_words, cp_async, atomics, pointers,
)  # fmt: skip


def kernel(body: Any, shape: Any, dtype: str) -> Any:
    """`body` over tiles of two tensors A and B, with row numbers in R."""

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), R: T.Tensor((128,), "int32")):
        grid = T.ceildiv(shape[1], _SIDE), T.ceildiv(shape[0], _SIDE)
        with T.Kernel(*grid, threads=128) as (bx, by):
            body(A, B, R, bx, by)

    return main


def offsets(text: str) -> Iterator[str]:
    """What CUDA text adds to the pointers A and B, or subscripts them by."""
    body = text[text.index('extern "C"') :]
    for found in re.finditer(r"\b[AB](?:\[| \+ )", body):
        yield _operand(body, found.end())


def _operand(text: str, start: int) -> str:
    """From `start` to the comma or bracket that ends the expression."""
    depth, end = 0, start
    while depth >= 0 and not (depth == 0 and text[end] in ",;"):
        depth += (text[end] in "([") - (text[end] in ")]")
        end += 1
    return text[start:end]
