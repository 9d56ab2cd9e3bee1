"""Programs with T.reduce_* on any memory, and what they must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

MAKE = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}
WHERE = tuple(MAKE)
KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")


def by_torch(kind: str, a: Any, dim: int) -> Any:
    """The reduction in torch, in the element type of `a`."""
    if kind.startswith("abs"):
        a, kind = a.abs(), kind[3:]
    if kind in ("max", "min"):
        return getattr(a, f"a{kind}")(dim)
    if kind == "sum":
        return a.sum(dim).to(a.dtype)
    join = getattr(torch, kind.replace("bit", "bitwise_"))
    out, *rest = a.unbind(dim)
    for part in rest:
        out = join(out, part)
    return out


def values(shape: tuple[int, ...], dtype: str, device: str) -> Any:
    """Small whole numbers: sums are exact in every type."""
    torch.manual_seed(sum(shape))
    if dtype == "bool":
        return torch.randint(0, 2, shape, device=device).bool()
    low = 0 if dtype.startswith("u") else -3
    return torch.randint(low, 4, shape, device=device).to(getattr(torch, dtype))


def check_reduce(
    target: Any, device: str, shape: tuple[int, ...], dim: int, *, src: str = "shared",
    out: str = "fragment", kind: str = "sum", dtype: str = "float32", threads: int = 128,
    clear: bool = True, keep: bool = False,
) -> None:  # fmt: skip
    """Whole buffers: any memory to any memory."""
    rest = tuple(e for i, e in enumerate(shape) if i != dim % len(shape))
    kept = tuple(1 if i == dim % len(shape) else e for i, e in enumerate(shape))
    result = kept if keep else rest or (1,)
    start = 0 if kind.startswith("bit") else 1

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(result, dtype)):
        with T.Kernel(1, threads=threads) as _:
            s = MAKE[src](shape, dtype)
            r = MAKE[out](result, dtype)
            T.copy(A, s)
            T.fill(r, start)
            if kind == "abssum":
                T.reduce_abssum(s, r, dim=dim)
            else:
                getattr(T, f"reduce_{kind}")(s, r, dim=dim, clear=clear)
            T.copy(r, B)

    a = values(shape, dtype, device)
    want = by_torch(kind, a, dim)
    if not clear:
        first = torch.full_like(want, start).unsqueeze(0)
        want = by_torch(kind, torch.cat([first, want.unsqueeze(0)]), 0)
    got = tilelab.compile(main, out_idx=[1], target=target)(a)
    torch.testing.assert_close(got, want.reshape(result), rtol=0, atol=0)


def check_shared_out(target: Any, device: str) -> None:
    """Results of many warps: each thread combines a share of them for its group (the counts
    divide by the group, leave a rest, and a group is no whole warps)."""
    for shape, threads in (((64, 100), 128), ((64, 72), 256), ((96, 200), 160)):
        for kind in ("sum", "max"):
            check_reduce(target, device, shape, 0, src="fragment", kind=kind, threads=threads)


def check_regions(target: Any, device: str, src: str, out: str, clear: bool) -> None:
    """A region of a larger buffer into a region of a larger one: the rest stays as it is."""

    @T.prim_func
    def main(A: T.Tensor((24, 40), "float32"), B: T.Tensor((3, 30), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = MAKE[src]((24, 40), "float32")
            r = MAKE[out]((3, 30), "float32")
            T.copy(A, s)
            T.fill(r, 7)
            T.reduce_sum(s[5:21, 3:33], r[1, :], dim=0, clear=clear)
            T.reduce_max(s[0:4, 2:40], r[2, 4:8], dim=1, clear=clear)
            T.copy(r, B)

    a = values((24, 40), "float32", device)
    want = torch.full((3, 30), 7.0, device=device)
    want[1] = a[5:21, 3:33].sum(0) + (0 if clear else 7)
    largest = a[0:4, 2:40].amax(1)
    want[2, 4:8] = largest if clear else largest.clamp(min=7)
    got = tilelab.compile(main, out_idx=[1], target=target)(a)
    torch.testing.assert_close(got, want, rtol=0, atol=0)


def check_nan(target: Any, device: str, keep_nan: bool) -> None:
    """NaN is passed over, or kept on request."""

    @T.prim_func
    def main(A: T.Tensor((8, 64), "float16"), B: T.Tensor((8,), "float16")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_fragment((8, 64), "float16")
            r = T.alloc_fragment((8,), "float16")
            T.copy(A, s)
            T.reduce_max(s, r, dim=1, nan_propagate=keep_nan)
            T.copy(r, B)

    a = values((8, 64), "float16", device)
    a[3, 17] = float("nan")
    got = tilelab.compile(main, out_idx=[1], target=target)(a)
    want = a.amax(1) if keep_nan else a.nan_to_num(-10).amax(1)
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def check_fill(target: Any, device: str) -> None:
    """Regions of fragments, shared buffers, tensors and private arrays."""

    @T.prim_func
    def main(A: T.Tensor((3, 20, 18), "float16"), B: T.Tensor((64, 4), "int32")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            f = T.alloc_fragment((20, 18), "float16")
            s = T.alloc_shared((20, 18), "float16")
            own = T.alloc_local((4,), "int32")
            T.clear(f)
            T.clear(s)
            T.fill(f[3:11, 5], 2)
            T.fill(f[15:20, 7:18], 3)
            T.fill(s[3:11, 5], 2)
            T.fill(s[15:20, 7:18], 3)
            T.copy(f, A[0, :, :])
            T.copy(s, A[1, :, :])
            T.clear(A[2, :, :])
            T.fill(A[2, 3:11, 5], 2)
            T.fill(A[2, 15:20, 7:18], 3)
            T.fill(own, 5)
            T.clear(own[1:3])
            for i in T.serial(4):
                B[t, i] = own[i]

    one = torch.zeros(20, 18, device=device).half()
    one[3:11, 5], one[15:20, 7:18] = 2, 3
    a, b = tilelab.compile(main, out_idx=[0, 1], target=target)()
    assert torch.equal(a.to(device), one.expand(3, 20, 18))
    assert torch.equal(b.cpu(), torch.tensor([5, 0, 0, 5], dtype=torch.int32).expand(64, 4))
