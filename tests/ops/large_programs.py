"""Tensors of more than 2**31 elements: every way of reaching an element near their ends; for CPU
and CUDA tensors.

Tensors are of int8 and touched at few places: on the CPU their memory is not even allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T

FLAT = 2**31 + 3 * 4096
ROWS, COLUMNS = 70_000, 32_768  # 2.29e9 elements, with axes of ordinary length
BLOCK = 1024


def flat(device: str) -> tuple[Any, Any]:
    """A tensor of one long axis, zero but for its last blocks, and those blocks."""
    a = torch.zeros(FLAT, dtype=torch.int8, device=device)
    a[-4 * BLOCK :] = torch.arange(4 * BLOCK, device=device) % 61 + 1
    return a, a[-4 * BLOCK :].clone()


def matrix(device: str) -> tuple[Any, Any]:
    """A tensor of ordinary axes, zero but for its last rows, and those rows."""
    a = torch.zeros(ROWS, COLUMNS, dtype=torch.int8, device=device)
    a[-64:] = (torch.arange(64 * COLUMNS, device=device) % 67 + 1).view(64, COLUMNS)
    return a, a[-64:].clone()


def check_flat(target: Any, device: str) -> None:
    """Blocks numbered over the whole tensor: loops, copies and tails at the end of a long axis;
    most blocks leave at once."""
    blocks = -(-FLAT // BLOCK)

    @T.prim_func
    def main(A: T.Tensor((FLAT,), "int8"), B: T.Tensor((4 * BLOCK,), "int8"),
             C: T.Tensor((4 * BLOCK,), "int8")):  # fmt: skip
        with T.Kernel(4, threads=128) as b:
            s = T.alloc_shared((BLOCK,), "int8")
            block = b + (blocks - 4)
            T.copy(A[block * BLOCK], s)
            T.copy(s, B[b * BLOCK])
            for i in T.Parallel(BLOCK):
                C[b * BLOCK + i] = A[block * BLOCK + i] + T.int8(1)

    a, end = flat(device)
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    assert torch.equal(b, end)
    assert torch.equal(c, end + 1)


def check_flat_dynamic(target: Any, device: str) -> None:
    """The same with the size known at the call, in place, and by one thread's address."""
    n = T.dynamic("n", "int64")

    @T.prim_func
    def main(A: T.Tensor((n,), "int8"), first: T.int64, B: T.Tensor((128,), "int8")):
        with T.Kernel(T.ceildiv(n, 2**29), threads=128) as b:
            t = T.get_thread_binding()
            if b == 4:
                place = first + t
                B[t] = A[place]
                A[b * 2**29 + t] = T.cast(t, "int8")
                for i in T.Parallel(BLOCK):
                    A[first + BLOCK + i] = A[first + BLOCK + i] + T.int8(1)

    a, end = flat(device)
    first = FLAT - 4 * BLOCK
    b = torch.empty(128, dtype=torch.int8, device=device)
    tilelab.compile(main, target=target)(a, first, b)
    assert torch.equal(b, end[:128])
    assert torch.equal(a[2**31 : 2**31 + 128].long(), torch.arange(128, device=device))
    assert torch.equal(a[first + BLOCK : first + 2 * BLOCK], end[BLOCK : 2 * BLOCK] + 1)


def check_matrix(target: Any, device: str) -> None:
    """Tiles at the end of a matrix: pipelined copies (TMA, cp.async), wide stores, single
    elements, a tail in both directions."""

    @T.prim_func
    def main(A: T.Tensor((ROWS, COLUMNS), "int8"), B: T.Tensor((64, 512), "int8")):
        with T.Kernel(2, threads=128) as b:
            s = T.alloc_shared((32, 128), "int8")
            f = T.alloc_fragment((32, 128), "int8")
            row = b * 32 + (ROWS - 64)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[row, k * 128 + (COLUMNS - 512)], s)
                for i, j in T.Parallel(32, 128):
                    f[i, j] = s[i, j] + T.int8(1)
                T.copy(f, B[b * 32, k * 128])
                T.copy(f, A[row, k * 128])
            T.copy(A[row + 16, COLUMNS - 64], s)
            T.copy(s, A[row, 1024])

    a, end = matrix(device)
    b = tilelab.compile(main, out_idx=[1], target=target)(a)
    assert torch.equal(b, end[:, -512:] + 1)
    assert torch.equal(a[-64:, :512], end[:, -512:] + 1)
    tail = torch.zeros(32, 128, dtype=torch.int8, device=device)
    tail[:16, :64] = end[-16:, -64:]
    assert torch.equal(a[-32:, 1024:1152], tail)


def check_atomics(target: Any, device: str) -> None:
    """Atomic updates of elements past 2**31, one by one and as a tile."""
    n = 2**31 + 512

    @T.prim_func
    def main(A: T.Tensor((n,), "float16")):
        with T.Kernel(2, threads=128) as b:
            t = T.get_thread_binding()
            f = T.alloc_fragment((128,), "float16")
            T.atomic_add(A[t + (n - 128)], T.float16(2))
            T.fill(f, 1)
            T.atomic_add(A[b * 128 + (n - 512)], f)

    a = torch.zeros(n, dtype=torch.float16, device=device)
    tilelab.compile(main, target=target)(a)
    want = torch.tensor([1.0, 1.0, 0.0, 4.0], device=device).repeat_interleave(128)
    assert torch.equal(a[-512:].float(), want)


CHECKS: list[Callable[[Any, str], None]] = [
    check_flat, check_flat_dynamic, check_matrix, check_atomics,
]  # fmt: skip
