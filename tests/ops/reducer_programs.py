"""Programs with T.alloc_reducer, and what they must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T


def check_rows(target: Any, device: str, op: str, threads: int) -> None:
    """Row results gathered over tiles, in the newer form, from a start value."""
    rows, cols, tile = 24, 200, 64
    start = {"sum": 3, "max": 1, "min": 1, "bitor": 4, "bitand": -1, "bitxor": 6}[op]

    @T.prim_func
    def main(A: T.Tensor((rows, cols), "int32"), B: T.Tensor((rows,), "int32")):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_fragment((rows, tile), "int32")
            acc = T.alloc_reducer((rows,), "int32", op=op)
            out = T.alloc_fragment((rows,), "int32")
            T.reducer_init(acc, start)
            for k in T.serial(T.ceildiv(cols, tile)):
                T.copy(A[0, k * tile], a)
                for i, j in T.Parallel(rows, tile):
                    if k * tile + j < cols:
                        T.reducer_update(acc[i], a[i, j])
            T.finalize_reducer(acc, out)
            T.copy(out, B)

    torch.manual_seed(0)
    a = torch.randint(-50, 50, (rows, cols), device=device, dtype=torch.int32)
    got = tilelab.compile(main, out_idx=[1], target=target)(a)
    assert torch.equal(got, _by_torch(op, a, start))


def _by_torch(op: str, a: Any, start: int) -> Any:
    out = torch.full_like(a[:, 0], start)
    join = {
        "sum": torch.add, "max": torch.maximum, "min": torch.minimum, "bitor": torch.bitwise_or,
        "bitand": torch.bitwise_and, "bitxor": torch.bitwise_xor,
    }[op]  # fmt: skip
    for column in a.unbind(1):
        out = join(out, column)
    return out


def check_older_form(target: Any, device: str) -> None:
    """A matrix-vector product: cleared, updated with +=, finalized in place, read as a fragment."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float32"), x: T.Tensor((256,), "float32"),
        y: T.Tensor((64,), "float32"), largest: T.Tensor((1,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            acc = T.alloc_reducer(64, "float32", replication="all")
            top = T.alloc_reducer(1, "float32", op="max", replication="all")
            T.clear(acc)
            T.fill(top, -5)
            for k in T.Pipelined(4, num_stages=2):
                a = T.alloc_fragment((64, 64), "float32")
                part = T.alloc_fragment((64,), "float32")
                T.copy(A[0, k * 64], a)
                T.copy(x[k * 64], part)
                for i, j in T.Parallel(64, 64):
                    acc[i] += a[i, j] * part[j]
                    top[0] = T.max(top[0], a[i, j])
            T.finalize_reducer(acc)
            T.finalize_reducer(top)
            T.copy(acc, y)
            largest[0] = top[0] * 2

    torch.manual_seed(1)
    a = torch.randint(-4, 5, (64, 256), device=device).float()
    x = torch.randint(-4, 5, (256,), device=device).float()
    y, largest = tilelab.compile(main, out_idx=[2, 3], target=target)(a, x)
    assert torch.equal(y, a @ x)
    assert largest.item() == 8


def check_several_loops(target: Any, device: str) -> None:
    """Loops of different shapes, an index that is computed, few points on many threads, a
    contribution outside of any loop, and a start value read from a fragment."""

    @T.prim_func
    def main(
        A: T.Tensor((48, 8), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((3,), "float32")
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((48, 8), "float32")
            first = T.alloc_fragment((1,), "float32")
            acc = T.alloc_reducer((8,), "float32")
            groups = T.alloc_reducer((3,), "float32")
            out = T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.fill(first, 10)
            T.reducer_init(acc, first[0])
            T.reducer_init(groups)
            for i, j in T.Parallel(48, 8):
                T.reducer_update(acc[j], a[i, j])
                T.reducer_update(groups[T.min(i // 16, 2)], a[i, j])
            for i in T.Parallel(8):
                T.reducer_update(acc[i], 1.0)
            T.reducer_update(groups[1], 100.0)
            T.finalize_reducer(acc, out)
            T.copy(out, B)
            T.finalize_reducer(groups, C)

    torch.manual_seed(2)
    a = torch.randint(-4, 5, (48, 8), device=device).float()
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    assert torch.equal(b, a.sum(0) + 11)
    want = a.view(3, 16, 8).sum((1, 2))
    want[1] += 100
    assert torch.equal(c, want)
