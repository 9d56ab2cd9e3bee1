"""Pipelines that load what tables name: pages, and rows one by one; for CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab.language as T

Case = tuple[Any, tuple[Any, ...], Any]
"""A program whose last parameter is its output, the inputs, the result."""


def pages(device: str, *, named: bool = True) -> Case:
    """Products with the pages that a table names, the last first."""
    page, dim, count = 64, 64, 5

    @T.prim_func
    def main(
        Q: T.Tensor((64, dim), "float16"), KV: T.Tensor((8 * page, dim), "float16"),
        Table: T.Tensor((count,), "int32"), Y: T.Tensor((count, 64, page), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            q, kv = T.alloc_shared((64, dim), "float16"), T.alloc_shared((page, dim), "float16")
            acc = T.alloc_fragment((64, page), "float32")
            T.copy(Q, q)
            for k in T.Pipelined(count, num_stages=2):
                if named:
                    row = Table[count - 1 - k] * page
                    T.copy(KV[row : row + page, :], kv)
                else:
                    T.copy(KV[Table[count - 1 - k] * page, 0], kv)
                T.gemm(q, kv, acc, transpose_B=True, clear_accum=True)
                T.copy(acc, Y[k, 0:64, 0:page])

    q, kv = (torch.randn(n, dim, device=device).half() for n in (64, 8 * page))
    table = torch.tensor([3, 1, 7, 0, 2], dtype=torch.int32, device=device)
    chosen = kv.float().reshape(8, page, dim)[table.flip(0).long()]
    return main, (q, kv, table), q.float() @ chosen.transpose(1, 2)


def tokens(device: str, *, dtype: str = "bfloat16", dim: int = 128, topk: int = 256) -> Case:
    """Attention to the tokens that a table names, those below zero left out."""
    heads, block, rows = 64, 64, 300

    @T.prim_func
    def main(
        Q: T.Tensor((2, heads, dim), dtype), KV: T.Tensor((rows, dim), dtype),
        Rows: T.Tensor((2, topk), "int32"), Y: T.Tensor((2, heads, dim), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as b:
            q, kv = T.alloc_shared((heads, dim), dtype), T.alloc_shared((block, dim), dtype)
            s, seen = (
                T.alloc_fragment((heads, block), "float32"),
                T.alloc_fragment((block,), "bool"),
            )
            p = T.alloc_fragment((heads, block), dtype)
            acc = T.alloc_fragment((heads, dim), "float32")
            total, part = (
                T.alloc_fragment((heads,), "float32"),
                T.alloc_fragment((heads,), "float32"),
            )
            T.copy(Q[b, 0, 0], q)
            T.clear(acc)
            T.clear(total)
            for k in T.Pipelined(topk // block, num_stages=2):
                for i in T.Parallel(block):
                    seen[i] = Rows[b, k * block + i] >= 0
                for i, j in T.Parallel(block, dim):
                    row = Rows[b, k * block + i]
                    kv[i, j] = T.if_then_else(row >= 0, KV[row, j], 0)
                T.gemm(q, kv, s, transpose_B=True, clear_accum=True)
                for h, i in T.Parallel(heads, block):
                    s[h, i] = T.if_then_else(seen[i], T.exp(s[h, i] * 0.05), 0)
                T.reduce_sum(s, part, dim=1)
                for h in T.Parallel(heads):
                    total[h] += part[h]
                T.copy(s, p)
                T.gemm(p, kv, acc)
            for h, j in T.Parallel(heads, dim):
                Y[b, h, j] = acc[h, j] / total[h]

    q = torch.randn(2, heads, dim, device=device).to(getattr(torch, dtype))
    kv = torch.randn(rows, dim, device=device).to(q.dtype)
    table = torch.randint(-40, rows, (2, topk), dtype=torch.int32, device=device)
    chosen = kv[table.clamp(min=0).long()].float()
    scores = (q.float() @ chosen.transpose(1, 2) * 0.05).exp() * (table >= 0)[:, None, :]
    rounded = scores.to(q.dtype).float()
    return main, (q, kv, table), rounded @ chosen / scores.sum(-1, keepdim=True)


def experts(device: str, *, stages: int = 3, tokens: int = 100, K: int = 128) -> Case:
    """Rows of A in the order of a table, times B; the table is longer than a block's rows."""
    M, N = 128, 64

    @T.prim_func
    def main(
        A: T.Tensor((tokens, K), "float16"), Order: T.Tensor((tokens,), "int32"),
        B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(M // 64, threads=128) as b:
            a, w = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, N), "float16")
            acc = T.alloc_fragment((64, N), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // 32, num_stages=stages):
                for i, j in T.Parallel(64, 32):
                    a[i, j] = A[Order[b * 64 + i], k * 32 + j]
                T.copy(B[k * 32, 0], w)
                T.gemm(a, w, acc)
            T.copy(acc, C[b * 64, 0])

    a = torch.randn(tokens, K, device=device).half()
    w = torch.randn(K, N, device=device).half()
    order = torch.randperm(tokens, device=device).int()
    order[0] = tokens + 7  # no row of A: zeros
    rows = torch.cat([a, torch.zeros_like(a)])[order.long()].float()
    past = a[:1].float().expand(M - tokens, K)  # past the table's end is row 0
    return main, (a, order, w), torch.cat([rows, past]) @ w.float()


def held(device: str, *, rows: int = 64, dim: int = 128) -> Case:
    """Rows whose numbers threads have computed, in registers or in shared memory."""

    @T.prim_func
    def main(
        X: T.Tensor((rows, dim), "float16"), S: T.Tensor((rows,), "int32"),
        Y: T.Tensor((2, 32, dim), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            first = T.alloc_fragment((32,), "int32")
            second = T.alloc_shared((32,), "int32")
            tile = T.alloc_shared((32, dim), "float16")
            for i in T.Parallel(32):
                first[i] = S[i * 2]
            for i in T.Parallel(32):
                second[i] = S[i * 2 + 1]
            for i, j in T.Parallel(32, dim):
                tile[i, j] = X[first[i], j]
            T.copy(tile, Y[0, 0:32, 0:dim])
            for i, j in T.Parallel(32, dim):
                tile[i, j] = X[second[i], j]
            T.copy(tile, Y[1, 0:32, 0:dim])

    x = torch.randn(rows, dim, device=device).half()
    s = torch.randperm(rows, device=device).int()
    return main, (x, s), torch.stack([x[s[0::2].long()], x[s[1::2].long()]]).float()


CASES: dict[str, Callable[[str], Case]] = {
    "pages": pages, "pages_unnamed": lambda device: pages(device, named=False),
    "tokens": tokens, "tokens_half": lambda device: tokens(device, dtype="float16", dim=64),
    "held": held, "experts": experts,
    "experts_two_stages": lambda device: experts(device, stages=2),
}  # fmt: skip
