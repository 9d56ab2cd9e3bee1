"""Elementwise kernels whose tiles reach past the end of their tensors, guarded in every spelling.

Each maker takes sizes that divide nothing; `want` is what C holds afterwards, given what it held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import tilelab.language as T


@dataclass(frozen=True)
class Shape:
    """N elements (rows of N for the forms of two axes), `limit` of them wanted, by tiles of `block`
    elements and `threads` threads."""

    N: int
    limit: int
    block: int
    threads: int
    dtype: str = "float32"
    rows: int = 5
    dynamic: bool = False


Want = Callable[[Any, Any, Any, Shape], Any]
"""(A, B, C before, shape) -> C after."""


def _size(s: Shape) -> Any:
    return T.dynamic("N") if s.dynamic else s.N


def guard(s: Shape) -> Any:
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                if bx * s.block + i < N:
                    C[bx * s.block + i] = A[bx * s.block + i] + B[bx * s.block + i]

    return main


def bare(s: Shape) -> Any:
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                C[bx * s.block + i] = A[bx * s.block + i] + B[bx * s.block + i]

    return main


def choice(s: Shape) -> Any:
    """Elements from `limit` on are not read."""
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                v = T.if_then_else(bx * s.block + i < s.limit, A[bx * s.block + i], 0.0)
                C[bx * s.block + i] = v + B[bx * s.block + i]

    return main


def limited(s: Shape) -> Any:
    """A guard that ends before the tensor does, and one that begins behind its start."""
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                p = bx * s.block + i
                if p < s.limit:  # noqa: SIM102
                    if s.limit // 3 <= p:
                        C[p] = A[p] + B[p]

    return main


def two_ways(s: Shape) -> Any:
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                if bx * s.block + i < s.limit:
                    C[bx * s.block + i] = A[bx * s.block + i] + B[bx * s.block + i]
                else:
                    C[bx * s.block + i] = B[bx * s.block + i]

    return main


def neighbours(s: Shape) -> Any:
    """The last element has no right neighbour."""
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                if bx * s.block + i + 1 < N:
                    C[bx * s.block + i] = A[bx * s.block + i + 1] + B[bx * s.block + i]

    return main


def in_place(s: Shape) -> Any:
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                if bx * s.block + i < N:
                    C[bx * s.block + i] += A[bx * s.block + i] + B[bx * s.block + i]

    return main


def twice(s: Shape) -> Any:
    """What is written is read again: those accesses stay where they are."""
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            for i in T.Parallel(s.block):
                if bx * s.block + i < N:
                    C[bx * s.block + i] += A[bx * s.block + i]
                    C[bx * s.block + i] = C[bx * s.block + i] + B[bx * s.block + i]

    return main


def _by_thread(s: Shape, kind: str) -> Any:
    N, dtype, loop, each = _size(s), s.dtype, getattr(T, kind), 8
    block = s.threads * each

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=s.threads) as bx:
            tx = T.get_thread_binding()
            for i in loop(each):
                p = bx * block + tx * each + i
                if p < s.limit:
                    C[p] = A[p] + B[p]

    return main


def scanned(s: Shape) -> Any:
    """Sums of a thread's own elements: iterations depend on each other, loads do not."""
    N, dtype, each = _size(s), s.dtype, 8
    block = s.threads * each

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block), threads=s.threads) as bx:
            tx = T.get_thread_binding()
            total = T.alloc_local((1,), dtype)
            total[0] = 0
            for i in T.serial(each):
                p = bx * block + tx * each + i
                if p < N:
                    total[0] += A[p]
                    C[p] = total[0] + B[p]

    return main


def _of_rows(s: Shape, rows: bool, columns: bool) -> Any:
    M, N, dtype, high = s.rows, _size(s), s.dtype, 4

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), T.ceildiv(M, high), threads=s.threads) as (bx, by):
            for i, j in T.Parallel(high, s.block):
                r, c = by * high + i, bx * s.block + j
                if (r < M or not rows) and (c < N or not columns):
                    C[r, c] = A[r, c] + B[r, c]

    return main


def copied(s: Shape, shared: bool) -> Any:
    """Tiles by T.copy, through registers or shared memory."""
    N, dtype = _size(s), s.dtype

    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, s.block), threads=s.threads) as bx:
            a, b = T.alloc_fragment((s.block,), dtype), T.alloc_fragment((s.block,), dtype)
            T.copy(A[bx * s.block], a)
            if shared:
                tile = T.alloc_shared((s.block,), dtype)
                T.copy(B[bx * s.block], tile)
                T.copy(tile, b)
            else:
                T.copy(B[bx * s.block], b)
            for i in T.Parallel(s.block):
                a[i] += b[i]
            T.copy(a, C[bx * s.block])

    return main


def padded_rows(s: Shape) -> Any:
    """Rows of any length that begin at multiples of 16 elements."""
    M, N, dtype, high = s.rows, s.N, s.dtype, 4
    pitch = -(-N // 16) * 16

    @T.prim_func
    def main(
        A: T.StridedTensor((M, N), (pitch, 1), dtype),
        B: T.StridedTensor((M, N), (pitch, 1), dtype),
        C: T.StridedTensor((M, N), (pitch, 1), dtype),
    ):
        with T.Kernel(T.ceildiv(N, s.block), T.ceildiv(M, high), threads=s.threads) as (bx, by):
            for i, j in T.Parallel(high, s.block):
                if by * high + i < M and bx * s.block + j < N:
                    r, c = by * high + i, bx * s.block + j
                    C[r, c] = A[r, c] + B[r, c]

    return main


def _plain(a: Any, b: Any, c: Any, s: Shape) -> Any:
    return a + b


def _limited(a: Any, b: Any, c: Any, s: Shape) -> Any:
    out = c.clone()
    out[s.limit // 3 : s.limit] = (a + b)[s.limit // 3 : s.limit]
    return out


def _begun(a: Any, b: Any, c: Any, s: Shape) -> Any:
    out = c.clone()
    out[: s.limit] = (a + b)[: s.limit]
    return out


def _chosen(a: Any, b: Any, c: Any, s: Shape) -> Any:
    out = b.clone()
    out[: s.limit] += a[: s.limit]
    return out


def _neighbours(a: Any, b: Any, c: Any, s: Shape) -> Any:
    out = c.clone()
    out[:-1] = a[1:] + b[:-1]
    return out


def _scanned(a: Any, b: Any, c: Any, s: Shape) -> Any:
    parts = [part.float().cumsum(0) for part in a.split(8)]
    return torch.cat(parts).to(a.dtype) + b


@dataclass(frozen=True)
class Form:
    """A kernel's maker and its result; `axes` of its tensors."""

    make: Callable[[Shape], Any]
    want: Want
    axes: int = 1
    static: bool = False


FORMS: dict[str, Form] = {
    "guard": Form(guard, _plain),
    "bare": Form(bare, _plain),
    "choice": Form(choice, _chosen),
    "limited": Form(limited, _limited),
    "two_ways": Form(two_ways, _chosen),
    "neighbours": Form(neighbours, _neighbours),
    "in_place": Form(in_place, lambda a, b, c, s: c + a + b),
    "twice": Form(twice, lambda a, b, c, s: c + a + b),
    "vectorized": Form(lambda s: _by_thread(s, "vectorized"), _begun),
    "unroll": Form(lambda s: _by_thread(s, "unroll"), _begun),
    "serial": Form(lambda s: _by_thread(s, "serial"), _begun),
    "scanned": Form(scanned, _scanned),
    "copied": Form(lambda s: copied(s, shared=False), _plain),
    "copied_shared": Form(lambda s: copied(s, shared=True), _plain),
    "rows": Form(lambda s: _of_rows(s, True, False), _plain, 2),
    "columns": Form(lambda s: _of_rows(s, False, True), _plain, 2),
    "both": Form(lambda s: _of_rows(s, True, True), _plain, 2),
    "neither": Form(lambda s: _of_rows(s, False, False), _plain, 2),
    "padded_rows": Form(padded_rows, _plain, 2, static=True),
}


def tensors(form: Form, s: Shape, device: str = "cpu", shift: int = 0) -> tuple[Any, Any, Any]:
    """A, B and C of small integers (sums are exact in every type). They begin `shift` elements
    behind an aligned address; padded rows stay padded."""
    pitch = -(-s.N // 16) * 16 if form.static else s.N
    count = s.N if form.axes == 1 else s.rows * pitch

    def one(seed: int) -> Any:
        drawn = torch.Generator().manual_seed(seed)
        flat = torch.randint(-9, 10, (count + shift,), generator=drawn)
        flat = flat.to(getattr(torch, s.dtype)).to(device)[shift:]
        return flat if form.axes == 1 else flat.reshape(s.rows, pitch)[:, : s.N]

    return one(1), one(2), one(3)
