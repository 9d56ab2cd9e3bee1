"""Programs that follow tables of addresses; for CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import tilelab
import tilelab.language as T


def addresses(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """A table of where tensors begin."""
    numbers = [t.data_ptr() for t in tensors]
    return torch.tensor(numbers, dtype=torch.int64, device=tensors[0].device)


def grouped_gemm(
    G: int, M: int, N: int, K: int, bm: int, bn: int, bk: int, stages: int, threads: int = 128
) -> Any:
    """C[e] = A[e] @ B[e] for the group e that each block looks up."""

    @T.prim_func
    def main(
        A_ptrs: T.Tensor([G], T.ptr), B_ptrs: T.Tensor([G], T.ptr), C_ptrs: T.Tensor([G], T.ptr),
        turns: T.Tensor([G], "int32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), G, threads=threads) as (bx, by, g):
            A_s = T.alloc_shared((bm, bk), "float16")
            B_s = T.alloc_shared((bk, bn), "float16")
            C_l = T.alloc_fragment((bm, bn), "float32")
            A = T.make_tensor(A_ptrs[turns[g]], (M, K), "float16")
            B = T.make_tensor(B_ptrs[turns[g]], (K, N), "float16")
            C = T.make_tensor(C_ptrs[turns[g]], (M, N), "float16")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, ko * bk], A_s)
                T.copy(B[ko * bk, bx * bn], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * bm, bx * bn])

    return main


def _check_gemm(target: Any, device: str, shape: tuple[int, int, int], **how: int) -> None:
    M, N, K = shape
    a = [torch.randn(M, K, device=device).half() for _ in range(3)]
    b = [torch.randn(K, N, device=device).half() for _ in range(2)]
    c = [torch.full((M, N), torch.nan, device=device).half() for _ in range(3)]
    turns = torch.tensor([2, 0, 1], dtype=torch.int32, device=device)
    kernel = tilelab.compile(grouped_gemm(3, M, N, K, **how), target=target)
    tables = addresses(a), addresses([b[0], b[1], b[0]]), addresses(c)
    kernel(*tables, turns)
    for x, y, z in zip(a, (b[0], b[1], b[0]), c, strict=True):
        torch.testing.assert_close(z.float(), x.float() @ y.float(), rtol=1e-2, atol=5e-2)


def check_pipelined(target: Any, device: str) -> None:
    """Products of tensors behind tables, some of which two groups share; rows past the end."""
    _check_gemm(target, device, (48, 64, 96), bm=32, bn=32, bk=32, stages=2)


def check_warpgroups(target: Any, device: str) -> None:
    """Tiles as large as a warpgroup's instruction takes, three stages."""
    _check_gemm(target, device, (96, 128, 192), bm=64, bn=64, bk=64, stages=3)


def check_odd_rows(target: Any, device: str) -> None:
    """Rows of which no 16 bytes are aligned."""
    _check_gemm(target, device, (33, 27, 45), bm=32, bn=32, bk=32, stages=2)


def check_lists_of_addresses(target: Any, device: str) -> None:
    """Elementwise loops, strides, a table of two axes, its entry by a name and by T.alloc_var that
    changes later, and tables whose unused places hold nothing."""

    @T.prim_func
    def main(
        X_ptrs: T.Tensor([2, 3], T.ptr), Y_ptrs: T.Tensor([4], "int64"),
        B: T.Tensor([4, 24, 40], "float32"),
    ):  # fmt: skip
        with T.Kernel(4, threads=64) as g:
            e = T.alloc_var("int32", init=0)
            e = g % 2
            X = T.make_tensor(X_ptrs[e, 1], (24, 40), "float32", strides=(48, 1))
            e = 77
            where = Y_ptrs[g]
            Y = T.make_tensor_from_addr(where, (24, 40), "float32")
            for i, j in T.Parallel(24, 40):
                Y[i, j] += X[i, j] * 2
            T.copy(X, B[g, 0, 0])

    x = [torch.randn(24, 48, device=device) for _ in range(2)]
    y = [torch.randn(24, 40, device=device) for _ in range(4)]
    table = torch.zeros(2, 3, dtype=torch.int64, device=device)
    table[:, 1] = addresses(x)
    b = torch.zeros(4, 24, 40, device=device)
    before = [t.clone() for t in y]
    tilelab.compile(main, target=target)(table, addresses(y), b)
    for g in range(4):
        assert torch.equal(y[g], before[g] + x[g % 2][:, :40] * 2)
        assert torch.equal(b[g], x[g % 2][:, :40])


def check_each_thread(target: Any, device: str) -> None:
    """Every point of a loop follows an address of its own; atomic updates."""

    @T.prim_func
    def main(P: T.Tensor([8], T.ptr), S: T.Tensor([1], T.ptr), out: T.Tensor([8], "int32")):
        with T.Kernel(1, threads=32) as _:
            total = T.make_tensor(S[0], (4,), "int32")
            for i in T.Parallel(8):
                mine = T.make_tensor(P[7 - i], (16,), "int32")
                out[i] = mine[i]
                T.atomic_add(total[i % 4], mine[i])

    rows = [torch.arange(16, dtype=torch.int32, device=device) + 100 * r for r in range(8)]
    total = torch.ones(4, dtype=torch.int32, device=device)
    out = torch.zeros(8, dtype=torch.int32, device=device)
    tilelab.compile(main, target=target)(addresses(rows), addresses([total]), out)
    wanted = [100 * (7 - i) + i for i in range(8)]
    assert out.tolist() == wanted
    assert total.tolist() == [1 + wanted[i] + wanted[i + 4] for i in range(4)]


CHECKS: tuple[Callable[[Any, str], None], ...] = (
    check_pipelined, check_warpgroups, check_odd_rows, check_lists_of_addresses, check_each_thread,
)  # fmt: skip
