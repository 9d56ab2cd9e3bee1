"""Programs over drawn shapes, tiles, thread counts and stage counts, and what they must compute.

For CPU and CUDA tensors. Every output lies in a larger tensor filled with a sentinel, so that a
write outside shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import tilelab
import tilelab.language as T

MAKE = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}
SENTINEL = 77


@dataclass(frozen=True)
class Draw:
    """One tile program: the tensor's extents, the tile's, and how the block works on it."""

    shape: tuple[int, int]
    tile: tuple[int, int]
    threads: int = 128
    stages: int = 0
    dtype: str = "float16"
    out: str = "float32"
    gap: int = 0
    """Columns between the rows of the output that belong to nobody."""
    where: tuple[str, str] = ("shared", "fragment")


def values(shape: tuple[int, ...], dtype: str, device: str) -> Any:
    """Small whole numbers: sums and conversions are exact in every type."""
    torch.manual_seed(sum(shape))
    low = 0 if dtype.startswith("u") else -3
    return torch.randint(low, 4, shape, device=device).to(getattr(torch, dtype))


class Framed:
    """An output of a shape inside a larger tensor whose other elements must stay as they are."""

    def __init__(self, shape: tuple[int, int], dtype: str, gap: int, device: str) -> None:
        self.stride = shape[1] + gap
        self.all = torch.full((shape[0] + 2, self.stride), SENTINEL, device=device)
        self.all = self.all.to(getattr(torch, dtype))
        self.inner = self.all[1:-1, : shape[1]]

    def check(self, want: Any, atol: float = 0.0) -> None:
        """Fail unless the output is `want` and its surroundings are untouched."""
        torch.testing.assert_close(self.inner, want.to(self.all.dtype), rtol=atol, atol=atol)
        around = self.all.clone()
        around[1:-1, : want.shape[1]] = SENTINEL
        assert bool((around == SENTINEL).all()), "a write outside the output"


def check_copy(target: Any, device: str, draw: Draw) -> None:
    """Tiles of a tensor through two memories into a tensor of another type, along the columns
    in a pipeline."""
    (m, n), (bm, bn) = draw.shape, draw.tile
    out = Framed(draw.shape, draw.out, draw.gap, device)

    @T.prim_func
    def main(
        A: T.Tensor((m, n), draw.dtype), B: T.StridedTensor((m, n), (out.stride, 1), draw.out)
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(m, bm), threads=draw.threads) as by:
            first = MAKE[draw.where[0]]((bm, bn), draw.dtype)
            second = MAKE[draw.where[1]]((bm, bn), draw.out)
            for k in T.Pipelined(T.ceildiv(n, bn), num_stages=draw.stages):
                T.copy(A[by * bm, k * bn], first)
                T.copy(first, second)
                T.copy(second, B[by * bm, k * bn])

    a = values(draw.shape, draw.dtype, device)
    tilelab.compile(main, target=target)(a, out.inner)
    out.check(a)


def check_elementwise(target: Any, device: str, draw: Draw) -> None:
    """A tile from memory, an operand straight from its tensor, and a scalar function of both."""
    (m, n), (bm, bn) = draw.shape, draw.tile
    out = Framed(draw.shape, draw.out, draw.gap, device)

    @T.prim_func
    def main(
        A: T.Tensor((m, n), draw.dtype), B: T.Tensor((m, n), draw.dtype),
        C: T.StridedTensor((m, n), (out.stride, 1), draw.out),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=draw.threads) as (bx, by):
            a = MAKE[draw.where[0]]((bm, bn), draw.dtype)
            c = MAKE[draw.where[1]]((bm, bn), draw.out)
            for _ in T.Pipelined(2, num_stages=draw.stages):
                T.copy(A[by * bm, bx * bn], a)
                for i, j in T.Parallel(bm, bn):
                    inside = tilelab.language.if_then_else(
                        by * bm + i < m and bx * bn + j < n, B[by * bm + i, bx * bn + j], 0
                    )
                    c[i, j] = T.max(a[i, j], inside) * 2 + i % 3
                for i, j in T.Parallel(bm, bn):
                    C[by * bm + i, bx * bn + j] = c[i, j] + 1

    a, b = values(draw.shape, draw.dtype, device), values(draw.shape, draw.dtype, device).flip(0)
    tilelab.compile(main, target=target)(a, b.contiguous(), out.inner)
    rows = (torch.arange(m, device=device) % bm % 3)[:, None]
    out.check(torch.maximum(a, b).to(torch.float64) * 2 + rows + 1)


def check_row_reduce(target: Any, device: str, draw: Draw, kind: str, dim: int) -> None:
    """A reduction of a tensor along an axis, tile by tile, into one result for each row (or
    column): the tail beyond the tensor counts as 0."""
    (m, n), (bm, bn) = draw.shape, draw.tile
    kept, size = (m, bm) if dim == 1 else (n, bn)
    out = Framed((1, kept), draw.out, draw.gap, device)

    @T.prim_func
    def main(
        A: T.Tensor((m, n), draw.dtype), B: T.StridedTensor((1, kept), (out.stride, 1), draw.out)
    ):
        with T.Kernel(T.ceildiv(kept, size), threads=draw.threads) as b:
            tile = MAKE[draw.where[0]]((bm, bn), draw.dtype)
            wide = T.alloc_fragment((bm, bn), draw.out)
            result = MAKE[draw.where[1]]((size,), draw.out)
            T.fill(result, 0)
            for k in T.Pipelined(T.ceildiv(n if dim == 1 else m, bn if dim == 1 else bm),
                                 num_stages=draw.stages):  # fmt: skip
                if dim == 1:
                    T.copy(A[b * bm, k * bn], tile)
                else:
                    T.copy(A[k * bm, b * bn], tile)
                T.copy(tile, wide)
                getattr(T, f"reduce_{kind}")(wide, result, dim=dim, clear=False)
            T.copy(result, B[0, b * size])

    a = values(draw.shape, draw.dtype, device)
    tilelab.compile(main, target=target)(a, out.inner)
    wide = a.to(torch.float64)
    if kind == "sum":
        want = wide.sum(dim)
    else:
        want = getattr(wide.abs() if kind == "absmax" else wide, f"a{kind.removeprefix('abs')}")(
            dim
        )
        want = torch.clamp(want, **{"max" if kind == "min" else "min": 0})
    out.check(want[None])


def check_gemm(target: Any, device: str, draw: Draw, k: int, bk: int, ta: bool, tb: bool) -> None:
    """`C = op(A) @ op(B)` with float32 sums, every extent of its own size."""
    (m, n), (bm, bn) = draw.shape, draw.tile
    out = Framed(draw.shape, draw.out, draw.gap, device)
    a_shape, a_tile = ((k, m), (bk, bm)) if ta else ((m, k), (bm, bk))
    b_shape, b_tile = ((n, k), (bn, bk)) if tb else ((k, n), (bk, bn))

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, draw.dtype), B: T.Tensor(b_shape, draw.dtype),
        C: T.StridedTensor((m, n), (out.stride, 1), draw.out),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=draw.threads) as (bx, by):
            a = T.alloc_shared(a_tile, draw.dtype)
            b = T.alloc_shared(b_tile, draw.dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(k, bk), num_stages=draw.stages):
                if ta:
                    T.copy(A[i * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, i * bk], a)
                if tb:
                    T.copy(B[bx * bn, i * bk], b)
                else:
                    T.copy(B[i * bk, bx * bn], b)
                T.gemm(a, b, c, ta, tb)
            T.copy(c, C[by * bm, bx * bn])

    a, b = values(a_shape, draw.dtype, device), values(b_shape, draw.dtype, device)
    tilelab.compile(main, target=target)(a, b, out.inner)
    left, right = (x.double().T if t else x.double() for x, t in ((a, ta), (b, tb)))
    out.check(left @ right)
