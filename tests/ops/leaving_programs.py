"""Loops that end on values which all threads have in common, in pipelines too; CPU and CUDA."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

STEPS, ROWS, COLUMNS = 8, 64, 128


def check_left_on_a_reduction(target: Any, device: str) -> None:
    """`break` in a serial loop, and a `while`, ask for a reduced value; the sum runs on
    (clear=False), and the block is wider than the tile."""

    @T.prim_func
    def main(A: T.Tensor((STEPS, 96), "float32"), R: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((96,), "float32")
            row = T.alloc_fragment((1, 96), "float32")
            total = T.alloc_fragment((1,), "float32")
            seen = T.alloc_var("int32", init=0)
            steps = T.alloc_var("int32", init=0)
            T.clear(total)
            for k in T.serial(STEPS):
                T.copy(A[k, 0], tile)
                for i in T.Parallel(96):
                    row[0, i] = tile[i]
                T.reduce_sum(row, total, dim=1, clear=False)
                if total[0] > 300:
                    break
                seen += 1
            R[0] = total[0]
            R[1] = seen
            T.clear(total)
            while total[0] < 90:
                T.copy(A[steps, 0], row[0, :])
                T.reduce_max(row, total, dim=1)
                steps += 1
            R[2] = total[0]
            R[3] = steps

    a = torch.ones(STEPS, 96, device=device)
    a[5, 95] = 90
    got = tilelab.compile(main, out_idx=[1], target=target)(a)
    assert got.tolist() == [384, 3, 90, 6]


def check_left_pipeline(target: Any, device: str) -> None:
    """`break` and `continue` end iterations of pipelined loops whose tiles come ahead; a loop
    that was left is entered again."""

    @T.prim_func
    def main(
        A: T.Tensor((STEPS, ROWS, COLUMNS), "float16"),
        F: T.Tensor((STEPS,), "int32"),
        R: T.Tensor((2, ROWS, COLUMNS), "float16"),
        N: T.Tensor((2,), "int32"),
    ):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((ROWS, COLUMNS), "float16")
            values = T.alloc_fragment((ROWS, COLUMNS), "float32")
            rows = T.alloc_fragment((ROWS,), "float32")
            most = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((ROWS, COLUMNS), "float32")
            seen = T.alloc_var("int32", init=0)
            for time in T.serial(2):
                seen = 0
                T.clear(total)
                for k in T.Pipelined(STEPS, num_stages=3):
                    T.copy(A[k, 0, 0], tile)
                    T.copy(tile, values)
                    T.reduce_max(values, rows, dim=1)
                    T.reduce_max(rows, most, dim=0)
                    if most[0] > 100:
                        break
                    if F[k] == time:
                        continue
                    for i, j in T.Parallel(ROWS, COLUMNS):
                        total[i, j] += values[i, j]
                    seen += 1
                T.copy(total, R[time, 0, 0])
                N[time] = seen

    a = torch.randint(0, 4, (STEPS, ROWS, COLUMNS), device=device).half()
    a[5, 3, 7] = 200
    f = torch.tensor([7, 1, 0, 0, 7, 7, 7, 7], dtype=torch.int32, device=device)
    got, counts = tilelab.compile(main, out_idx=[2, 3], target=target)(a, f)
    assert counts.tolist() == [3, 4]
    assert torch.equal(got[0], a[[0, 1, 4]].float().sum(0).half())
    assert torch.equal(got[1], a[[0, 2, 3, 4]].float().sum(0).half())


def check_left_top_pipeline(target: Any, device: str) -> None:
    """A kernel's own pipelined product, which one warp would load for, ends early."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 512), "float16"), B: T.Tensor((512, 64), "float16"),
        L: T.Tensor((1,), "int32"), C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(8, num_stages=3):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                if k == L[0]:
                    break
                T.gemm(a, b, c)
            T.copy(c, C)

    torch.manual_seed(0)
    a, b = (torch.randn(shape, device=device).half() for shape in ((64, 512), (512, 64)))
    limit = torch.tensor([5], dtype=torch.int32, device=device)
    got = tilelab.compile(main, out_idx=[3], target=target)(a, b, limit)
    want = a[:, :320].float() @ b[:320].float()
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-2)


CHECKS = (check_left_on_a_reduction, check_left_pipeline, check_left_top_pipeline)
