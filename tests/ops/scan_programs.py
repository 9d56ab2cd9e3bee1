"""Programs with T.cumsum and T.cummax, and what they must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

WHERE = ("shared", "fragment")


def scan(
    shape: tuple[int, ...], dim: int, src: str, dst: str | None, dtype: str, threads: int,
    reverse: bool, kind: str, target: Any,
) -> Any:  # fmt: skip
    """B = running sums (or maxima) of A; `dst` None scans in place."""
    run = {"sum": T.cumsum, "max": T.cummax}[kind]
    make = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=threads) as _:
            s = make[src](shape, dtype)
            T.copy(A, s)
            if dst is None:
                run(s, dim=dim, reverse=reverse)
                T.copy(s, B)
            else:
                d = make[dst](shape, dtype)
                run(s, d, dim=dim, reverse=reverse)
                T.copy(d, B)

    return tilelab.compile(main, out_idx=[1], target=target)


def expected(a: Any, dim: int, reverse: bool, kind: str) -> Any:
    """The same by torch."""
    a = a.flip(dim) if reverse else a
    out = a.cumsum(dim).to(a.dtype) if kind == "sum" else a.cummax(dim).values
    return out.flip(dim) if reverse else out


def values(shape: tuple[int, ...], dtype: str, device: str) -> Any:
    """Small whole numbers: sums are exact in every type."""
    torch.manual_seed(len(shape) + shape[0])
    low = 0 if dtype.startswith("u") else -2
    return torch.randint(low, 3, shape, device=device).to(getattr(torch, dtype))


def check_scan(
    target: Any, device: str, shape: tuple[int, ...], dim: int, *, src: str = "shared",
    dst: str | None = None, dtype: str = "float32", threads: int = 128, reverse: bool = False,
    kind: str = "sum",
) -> None:  # fmt: skip
    """Compile, run and compare."""
    kernel = scan(shape, dim, src, dst, dtype, threads, reverse, kind, target)
    a = values(shape, dtype, device)
    torch.testing.assert_close(kernel(a), expected(a, dim, reverse, kind), rtol=0, atol=0)


def region(target: Any, where: str, overlapping: bool) -> Any:
    """A region of a larger buffer, in place or to a region of the same buffer."""
    make = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}

    @T.prim_func
    def main(A: T.Tensor((40, 48), "float32"), B: T.Tensor((40, 48), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = make[where]((40, 48), "float32")
            T.copy(A, s)
            if overlapping:
                T.cumsum(s[3:19, 4:40], s[4:20, 8:44], dim=1)
            else:
                T.cumsum(s[3:19, 5:42], dim=-1, reverse=True)
                T.cumsum(s[20:40, 7], dim=0)
            T.copy(s, B)

    return tilelab.compile(main, out_idx=[1], target=target)


def check_region(target: Any, device: str, where: str, overlapping: bool) -> None:
    """Elements outside of the region stay as they are."""
    a = values((40, 48), "float32", device)
    want = a.clone()
    if overlapping:
        want[4:20, 8:44] = a[3:19, 4:40].cumsum(1)
    else:
        want[3:19, 5:42] = a[3:19, 5:42].flip(1).cumsum(1).flip(1)
        want[20:40, 7] = want[20:40, 7].cumsum(0)
    got = region(target, where, overlapping)(a)
    torch.testing.assert_close(got, want, rtol=0, atol=0)


SHAPES = [((1000,), 0), ((8, 70), 1), ((70, 40), 0), ((3, 5, 33), 1), ((4, 1, 100), 2)]
DTYPES = ("float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8")
