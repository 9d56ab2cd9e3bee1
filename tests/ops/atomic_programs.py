"""Programs with atomics, and what they must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

UPDATES = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min}
DTYPES = ("int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64")
SHAPES = ((64, 64), (24, 60), (5, 7), (48, 176))
ORDERS = (None, "relaxed", "acquire", "release", "acq_rel", "seq_cst")


def values(shape: tuple[int, ...], dtype: str, device: str) -> Any:
    """Small whole numbers: sums are exact in every type and order."""
    torch.manual_seed(shape[0])
    low = 0 if dtype.startswith("u") else -3
    return torch.randint(low, 4, shape, device=device).to(getattr(torch, dtype))


def tile_update(
    shape: tuple[int, int], blocks: int, op: str, dtype: str, source: str, order: str | None,
    target: Any,
) -> Any:  # fmt: skip
    """C = op over blocks of the tiles of A; `source` says where a tile lies."""
    rows, cols = shape
    make = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}

    @T.prim_func
    def main(A: T.Tensor((blocks * rows, cols), dtype), C: T.Tensor((rows, cols), dtype)):
        with T.Kernel(blocks, threads=128) as bx:
            if source == "global":
                UPDATES[op](C, A[bx * rows : bx * rows + rows, 0:cols], memory_order=order)
            else:
                tile = make[source](shape, dtype)
                T.copy(A[bx * rows, 0], tile)
                UPDATES[op](C, tile, memory_order=order)

    return tilelab.compile(main, target=target)


def check_tile(
    target: Any, device: str, shape: tuple[int, int], *, op: str = "add", dtype: str = "float32",
    source: str = "fragment", order: str | None = None,
) -> None:  # fmt: skip
    """Compile, run and compare."""
    blocks = 3
    a = values((blocks * shape[0], shape[1]), dtype, device)
    c = torch.zeros(shape, dtype=a.dtype, device=device)
    tile_update(shape, blocks, op, dtype, source, order, target)(a, c)
    stacked = a.reshape(blocks, *shape).double()
    zero = torch.zeros_like(stacked[:1])
    everything = torch.cat([zero, stacked])
    want = {"add": everything.sum(0), "max": everything.amax(0), "min": everything.amin(0)}[op]
    assert torch.equal(c.double(), want)


def check_histogram(target: Any, device: str) -> None:
    """Elements of shared memory in T.Parallel, with the old values handed out as ranks."""
    n, bins, block = 500, 7, 128

    @T.prim_func
    def main(
        X: T.Tensor((n,), "int32"), H: T.Tensor((bins,), "int32"), Rank: T.Tensor((n,), "int32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
            h = T.alloc_shared((bins,), "int32")
            T.clear(h)
            for i in T.Parallel(block):
                if bx * block + i < n:
                    rank = T.atomic_add(h[X[bx * block + i]], 1, return_prev=True)
                    Rank[bx * block + i] = rank
            T.atomic_add(H, h)

    x = torch.randint(0, bins, (n,), dtype=torch.int32, device=device)
    h = torch.zeros(bins, dtype=torch.int32, device=device)
    rank = torch.full((n,), -1, dtype=torch.int32, device=device)
    tilelab.compile(main, target=target)(x, h, rank)
    assert torch.equal(h.cpu(), torch.bincount(x.cpu(), minlength=bins).int())
    for first in range(0, n, block):
        part, ranks = x[first : first + block], rank[first : first + block]
        for value in range(bins):
            found = ranks[part == value].sort().values
            assert torch.equal(found, torch.arange(len(found), device=device).int())


def check_elements(target: Any, device: str) -> None:
    """Load, store, or, pairs and fours; a NaN loses against a number."""

    @T.prim_func
    def main(
        A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float16"), C: T.Tensor((8,), "float32"),
        D: T.Tensor((8,), "float16"), E: T.Tensor((4,), "int32"), F: T.Tensor((2,), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=32):
            t = T.get_thread_binding()
            T.atomic_addx4(C[t % 2 * 4], A[t * 2 - t % 2 * 2])
            T.atomic_addx2(D[t % 4 * 2], B[t * 2])
            T.atomic_or(E[0], 1 << t)
            T.atomic_max(E[1], T.atomic_load(E[2]) + t)
            T.atomic_max(F[0], A[t])
            if t == 5:
                T.atomic_store(E[3], 41)

    a = values((64,), "float32", device)
    b = values((64,), "float16", device)
    c, d = (torch.zeros(8, dtype=x.dtype, device=device) for x in (a, b))
    e = torch.tensor([0, 0, 7, 0], dtype=torch.int32, device=device)
    f = torch.tensor([float("nan"), 0], device=device)
    tilelab.compile(main, target=target)(a, b, c, d, e, f)
    lanes = torch.arange(32)
    want = torch.zeros(2, 4)
    for t in lanes.tolist():
        start = t * 2 - t % 2 * 2
        want[t % 2] += a.cpu()[start : start + 4]
    assert torch.equal(c.cpu(), 2 * want.reshape(-1))
    assert torch.equal(d.cpu(), 2 * b.cpu().reshape(8, 8).sum(0))
    assert e.tolist() == [-1, 38, 7, 41]
    assert f[0] == a[:32].max()


def check_wraps(target: Any, device: str) -> None:
    """Integer sums wrap around."""

    @T.prim_func
    def main(A: T.Tensor((1,), "int32"), B: T.Tensor((1,), "int64")):
        with T.Kernel(1, threads=64):
            T.atomic_add(A[0], 0x7FFFFFFF)
            T.atomic_add(B[0], T.int64(1) << 62)

    a = torch.zeros(1, dtype=torch.int32, device=device)
    b = torch.zeros(1, dtype=torch.int64, device=device)
    tilelab.compile(main, target=target)(a, b)
    assert (a.item(), b.item()) == (-64, 0)


def scatter(dtype: str, columns: int, source: str, target: Any) -> Any:
    """Rows of A added to the rows of C that a table names, those below zero to none."""
    rows = 32

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype), To: T.Tensor((rows,), "int32"),
        C: T.Tensor((8, columns), dtype),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((rows, columns), dtype)
            ones = T.alloc_fragment((rows, columns), "float32")
            T.copy(A, tile)
            T.fill(ones, 1)
            for i, j in T.Parallel(rows, columns):
                row = To[i]
                if (row >= 0) & (row < 8):
                    if source == "shared":
                        T.atomic_add(C[row, j], tile[i, j])
                    else:
                        T.atomic_add(C[row, j], ones[i, j])

    return tilelab.compile(main, target=target)


def check_scatter(
    target: Any, device: str, *, dtype: str, columns: int = 64, source: str = "shared"
) -> Any:
    """Compile, run and compare; the kernel."""
    a = values((32, columns), dtype, device)
    to = torch.randint(-2, 10, (32,), dtype=torch.int32, device=device)
    c = torch.zeros(8, columns, dtype=a.dtype, device=device)
    kernel = scatter(dtype, columns, source, target)
    kernel(a, to, c)
    added = a.double() if source == "shared" else torch.ones_like(a).double()
    kept = (to >= 0) & (to < 8)
    want = torch.zeros(8, columns, dtype=torch.float64, device=device)
    want.index_add_(0, to[kept].long(), added[kept])
    assert torch.equal(c.double(), want)
    return kernel
