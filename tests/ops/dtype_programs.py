"""One small program per operation, for any element type, and what it must compute; for CPU and
CUDA tensors.

Values are small whole numbers, so that every type holds them and every order gives one result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T

SHAPE = (16, 32)
THREADS = 64
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip
Check = Callable[[Any, str, str], None]
"""(target, device, dtype): raises TileError where the language says no, AssertionError where the
result is wrong."""


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def least(dtype: str) -> int:
    """The least value that is drawn of a type."""
    return 0 if dtype == "bool" or dtype.startswith("u") else -2


def values(dtype: str, device: str, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Any:
    """Small whole numbers of a type, as int64, and as the tensor that a kernel takes."""
    made = torch.Generator().manual_seed(seed)
    wide = torch.randint(least(dtype), 2 if dtype == "bool" else 3, shape, generator=made)
    return wide, wide.to(getattr(torch, dtype)).to(device)


def same(got: Any, want: Any) -> None:
    """Fail unless all numbers agree."""
    found, wanted = got.cpu(), want.cpu()
    if not (found.dtype.is_floating_point or wanted.dtype.is_floating_point):
        assert torch.equal(found.to(torch.int64), wanted.to(torch.int64))
        return
    assert torch.equal(found.to(torch.float64), wanted.to(torch.float64)), (found, wanted)


def stored(values: Any, dtype: str) -> Any:
    """Whole numbers as a type keeps them."""
    return values.to(torch.float64 if is_float(dtype) else torch.int64).to(getattr(torch, dtype))


# ---- moving ------------------------------------------------------------------------------------


def check_copy(target: Any, device: str, dtype: str) -> None:
    """Through shared memory and registers, in a pipeline, with a tail."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor(SHAPE, dtype)):
        with T.Kernel(2, threads=THREADS) as b:
            s = T.alloc_shared((12, 16), dtype)
            f = T.alloc_fragment((12, 16), dtype)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[b * 12, k * 16], s)
                T.copy(s, f)
                T.copy(f, B[b * 12, k * 16])

    wide, a = values(dtype, device)
    same(tilelab.compile(main, out_idx=[1], target=target)(a), wide)


def check_cast(target: Any, device: str, dtype: str, other: str, outward: bool) -> None:
    """A copy that converts, from the type or to it."""
    source, to = (dtype, other) if outward else (other, dtype)

    @T.prim_func
    def main(A: T.Tensor(SHAPE, source), B: T.Tensor(SHAPE, to), C: T.Tensor(SHAPE, to)):
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, source)
            f = T.alloc_fragment(SHAPE, to)
            T.copy(A, s)
            T.copy(s, f)
            T.copy(f, B)
            for i, j in T.Parallel(*SHAPE):
                C[i, j] = A[i, j]

    wide, _ = values(dtype, device)
    wide = wide.clamp(min=least(other))
    a = stored(wide, source).to(device)
    for got in tilelab.compile(main, out_idx=[1, 2], target=target)(a):
        same(got, stored(wide, source).to(getattr(torch, to)))


def check_fill(target: Any, device: str, dtype: str) -> None:
    """Fill and clear in every memory."""

    @T.prim_func
    def main(A: T.Tensor((4, *SHAPE), dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, dtype)
            f = T.alloc_fragment(SHAPE, dtype)
            T.fill(s, 1)
            T.fill(f, 1)
            T.clear(s[2:5, 3:8])
            T.clear(f[2:5, 3:8])
            T.copy(s, A[0, :, :])
            T.copy(f, A[1, :, :])
            T.fill(A[2, :, :], 1)
            T.clear(A[3, :, :])

    got = torch.zeros((4, *SHAPE), device=device).to(getattr(torch, dtype))
    tilelab.compile(main, target=target)(got)
    want = torch.ones((4, *SHAPE))
    want[:2, 2:5, 3:8] = 0
    want[3] = 0
    same(got, want)


def check_transpose(target: Any, device: str, dtype: str) -> None:
    """T.transpose from shared memory to registers."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor(SHAPE[::-1], dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, dtype)
            f = T.alloc_fragment(SHAPE[::-1], dtype)
            T.copy(A, s)
            T.transpose(s, f)
            T.copy(f, B)

    wide, a = values(dtype, device)
    same(tilelab.compile(main, out_idx=[1], target=target)(a), wide.T)


def check_views(target: Any, device: str, dtype: str) -> None:
    """T.reshape of shared memory, and T.view as bytes and back."""
    size = SHAPE[0] * SHAPE[1]
    width = T.dtype(dtype).itemsize

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor((size,), dtype), C: T.Tensor(SHAPE, dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, dtype)
            raw = T.alloc_shared((size * width,), "uint8")
            T.copy(A, s)
            T.copy(T.reshape(s, (size,)), B)
            T.copy(T.view(s, (size * width,), "uint8"), raw)
            T.copy(T.view(raw, SHAPE, dtype), C)

    wide, a = values(dtype, device)
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    same(b, wide.reshape(-1))
    same(c, wide)


# ---- combining ---------------------------------------------------------------------------------


def check_reduce(target: Any, device: str, dtype: str, kind: str) -> None:
    """T.reduce_* along both axes, from shared memory and from registers."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor((SHAPE[0],), dtype),
             C: T.Tensor((SHAPE[1],), dtype)):  # fmt: skip
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, dtype)
            f = T.alloc_fragment(SHAPE, dtype)
            b = T.alloc_fragment((SHAPE[0],), dtype)
            c = T.alloc_shared((SHAPE[1],), dtype)
            T.copy(A, s)
            T.copy(A, f)
            getattr(T, f"reduce_{kind}")(s, b, dim=1)
            getattr(T, f"reduce_{kind}")(f, c, dim=0)
            T.copy(b, B)
            T.copy(c, C)

    wide, a = values(dtype, device)
    if is_float(dtype) and "sum" in kind:  # sums that 8-bit floats hold
        wide = (
            wide * (torch.arange(SHAPE[1]) % 16 == 0) * (torch.arange(SHAPE[0])[:, None] % 8 == 0)
        )
        a = stored(wide, dtype).to(device)
    kernel = tilelab.compile(main, out_idx=[1, 2], target=target)
    for got, dim in zip(kernel(a), (1, 0), strict=True):
        same(got, stored(_reduced(wide, kind, dim), dtype))


def _reduced(wide: Any, kind: str, dim: int) -> Any:
    if kind.startswith("abs"):
        wide, kind = wide.abs(), kind[3:]
    if kind in ("max", "min"):
        return getattr(wide, f"a{kind}")(dim)
    if kind == "sum":
        return wide.sum(dim)
    join = getattr(torch, kind.replace("bit", "bitwise_"))
    out, *rest = wide.unbind(dim)
    for part in rest:
        out = join(out, part)
    return out


def check_scan(target: Any, device: str, dtype: str, kind: str) -> None:
    """T.cumsum and T.cummax along the columns, in shared memory and in registers."""
    shape = (8, 6)

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), C: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(shape, dtype)
            f = T.alloc_fragment(shape, dtype)
            T.copy(A, s)
            T.copy(A, f)
            getattr(T, f"cum{kind}")(s, dim=1)
            getattr(T, f"cum{kind}")(f, dim=1)
            T.copy(s, B)
            T.copy(f, C)

    wide, a = values(dtype, device, shape)
    want = wide.cumsum(1) if kind == "sum" else wide.cummax(1).values
    for got in tilelab.compile(main, out_idx=[1, 2], target=target)(a):
        same(got, stored(want, dtype))


def check_atomic(target: Any, device: str, dtype: str, op: str) -> None:
    """Atomic updates of one element by all threads, of global and of shared memory."""

    @T.prim_func
    def main(A: T.Tensor((THREADS,), dtype), B: T.Tensor((1,), dtype), C: T.Tensor((1,), dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            t = T.get_thread_binding()
            s = T.alloc_shared((1,), dtype)
            T.clear(s)
            getattr(T, f"atomic_{op}")(B[0], A[t])
            getattr(T, f"atomic_{op}")(s[0], A[t])
            T.copy(s, C)

    wide, a = values(dtype, device, (THREADS,))
    b, c = (torch.zeros(1, device=device).to(getattr(torch, dtype)) for _ in range(2))
    tilelab.compile(main, target=target)(a, b, c)
    if op == "or":
        want = _reduced(wide[None], "bitor", 1)
    else:
        want = {"add": wide.sum(), "max": wide.max().clamp(min=0), "min": wide.min().clamp(max=0)}[
            op
        ]
    for got in (b, c):
        same(got, stored(want.reshape(1), dtype))


def check_atomic_tile(target: Any, device: str, dtype: str) -> None:
    """T.atomic_add of tiles, from registers and shared memory, by two blocks."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor(SHAPE, dtype)):
        with T.Kernel(2, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, dtype)
            f = T.alloc_fragment(SHAPE, dtype)
            T.copy(A, s)
            T.copy(A, f)
            T.atomic_add(B, s)
            T.atomic_add(B, f)

    wide, a = values(dtype, device)
    b = torch.zeros(SHAPE, device=device).to(getattr(torch, dtype))
    tilelab.compile(main, target=target)(a, b)
    same(b, stored(4 * wide, dtype))


def check_allreduce(target: Any, device: str, dtype: str) -> None:
    """T.warp_reduce_sum and a shuffle."""

    @T.prim_func
    def main(A: T.Tensor((32,), dtype), B: T.Tensor((32,), dtype), C: T.Tensor((32,), dtype)):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            B[t] = T.warp_reduce_sum(A[t])
            C[t] = T.shfl_xor(A[t], 5)

    wide, _ = values(dtype, device, (32,))
    wide = wide * (torch.arange(32) % 8 == 0)
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(stored(wide, dtype).to(device))
    same(b, stored(wide.sum().expand(32), dtype))
    same(c, wide[torch.arange(32) ^ 5])


def check_reducer(target: Any, device: str, dtype: str) -> None:
    """T.alloc_reducer and T.finalize_reducer."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor((SHAPE[1],), dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, dtype)
            r = T.alloc_reducer((SHAPE[1],), dtype, op="sum", replication="all")
            T.copy(A, s)
            T.clear(r)
            for i, j in T.Parallel(*SHAPE):
                r[j] += s[i, j]
            T.finalize_reducer(r)
            T.copy(r, B)

    wide, _ = values(dtype, device)
    wide = wide * (torch.arange(SHAPE[0])[:, None] % 8 == 0)
    got = tilelab.compile(main, out_idx=[1], target=target)(stored(wide, dtype).to(device))
    same(got, stored(wide.sum(0), dtype))
