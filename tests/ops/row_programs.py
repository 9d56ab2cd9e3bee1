"""Rows of a fragment that a serial loop picks: registers where the layout has them there."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T


def splits(target: Any, parts: int, dim: int, threads: int) -> Any:
    """The join of a split attention: weights of `parts` rows, each used by every column."""

    @T.prim_func
    def main(
        L: T.Tensor((parts,), "float32"),
        P: T.Tensor((parts, dim), "float16"),
        O: T.Tensor((dim,), "float32"),  # noqa: E741
    ):
        with T.Kernel(1, threads=threads) as _:
            lse = T.alloc_fragment((parts, dim), "float32")
            most = T.alloc_fragment((dim,), "float32")
            total = T.alloc_fragment((dim,), "float32")
            out = T.alloc_fragment((dim,), "float32")
            T.clear(total)
            T.clear(out)
            for k, j in T.Parallel(parts, dim):
                lse[k, j] = L[k]
            T.reduce_max(lse, most, dim=0)
            for k in T.serial(parts):
                for j in T.Parallel(dim):
                    total[j] += T.exp2(lse[k, j] - most[j])
            for k in T.serial(parts):
                for j in T.Parallel(dim):
                    lse[k, j] = T.exp2(lse[k, j] - most[j]) / total[j]
                for j in T.Parallel(dim):
                    out[j] += P[k, j] * lse[k, j]
            for j in T.Parallel(dim):
                O[j] = out[j]

    return tilelab.compile(main, out_idx=[2], target=target)


def check_splits(target: Any, device: str, parts: int, dim: int = 128, threads: int = 128) -> Any:
    kernel = splits(target, parts, dim, threads)
    lse, part = torch.randn(parts), torch.randn(parts, dim).half()
    weights = torch.softmax(lse * 0.6931471805599453, 0)
    want = (weights[:, None] * part.float()).sum(0)
    got = kernel(lse.to(device), part.to(device)).cpu()
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    return kernel


def check_single_rows(target: Any, device: str) -> Any:
    """Rows by number, by a loop from 1 with a step, and backwards into another row."""

    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), B: T.Tensor((96, 6), "int32")):
        with T.Kernel(1, threads=96) as _:
            a = T.alloc_fragment((6, 96), "int32")
            for i, j in T.Parallel(6, 96):
                a[i, j] = A[i] + j
            for j in T.Parallel(96):
                a[0, j] = a[5, j] * 10
            for i in T.serial(1, 6, 2):
                for j in T.Parallel(96):
                    a[i, j] += a[i - 1, j]
            for i in T.unroll(3):
                for j in T.Parallel(96):
                    a[4 - i, j] = a[4 - i, j] * 2 + a[i, j]
            for i, j in T.Parallel(6, 96):
                B[j, i] = a[i, j]

    a = torch.randint(-99, 99, (6,), dtype=torch.int32)
    kernel = tilelab.compile(main, out_idx=[1], target=target)
    torch.testing.assert_close(kernel(a.to(device)).cpu().T, _stepped(a), rtol=0, atol=0)
    return kernel


def _stepped(a: torch.Tensor) -> torch.Tensor:
    """What check_single_rows does."""
    want = a[:, None] + torch.arange(96, dtype=torch.int32)
    want[0] = want[5] * 10
    for i in range(1, 6, 2):
        want[i] += want[i - 1]
    for i in range(3):
        want[4 - i] = want[4 - i] * 2 + want[i]
    return want


def check_rows_of_a_product(target: Any, device: str) -> Any:
    """An accumulator's rows lie in several threads: what picks them goes through shared memory."""

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"),
             C: T.Tensor((64,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_fragment((64,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.clear(total)
            T.gemm(a, b, c)
            for i in T.serial(8):
                for j in T.Parallel(64):
                    total[j] += c[i * 8, j]
            T.copy(total, C)

    a, b = torch.randn(64, 32).half(), torch.randn(32, 64).half()
    kernel = tilelab.compile(main, out_idx=[2], target=target)
    got = kernel(a.to(device), b.to(device)).cpu()
    want = (a.float() @ b.float())[::8].sum(0)
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)
    return kernel


def check_mixed_rows(target: Any, device: str) -> Any:
    """Each row of the result mixes all rows of a tile, by a loop inside T.Parallel."""

    @T.prim_func
    def main(A: T.Tensor((4, 4), "float32"), B: T.Tensor((4, 1024), "bfloat16"),
             C: T.Tensor((4, 1024), "bfloat16")):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            b_shared = T.alloc_shared((4, 512), "bfloat16")
            a = T.alloc_fragment((4, 4), "float32")
            b = T.alloc_fragment((4, 512), "float32")
            c = T.alloc_fragment((4, 512), "float32")
            T.copy(A, a)
            T.copy(B[0, bx * 512], b_shared)
            T.copy(b_shared, b)
            T.clear(c)
            for i, j in T.Parallel(4, 512):
                for k in T.serial(4):
                    c[i, j] += a[k, i] * b[k, j]
            T.copy(c, C[0, bx * 512])

    a, b = torch.randn(4, 4), torch.randn(4, 1024).bfloat16()
    kernel = tilelab.compile(main, out_idx=[2], target=target)
    got = kernel(a.to(device), b.to(device)).cpu()
    torch.testing.assert_close(got, (a.T @ b.float()).bfloat16(), rtol=1e-2, atol=1e-2)
    return kernel
