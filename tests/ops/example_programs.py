"""Programs of the kinds of TileLang's examples: nested T.Parallel loops; for CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tilelab
import tilelab.language as T


def check_nested_loops(target: Any, device: str) -> None:
    """Statements before, between and behind; branches; a serial loop between; a triangle."""

    @T.prim_func
    def main(
        A: T.Tensor((24, 40), "float32"), row: T.Tensor((24,), "int32"),
        B: T.Tensor((24, 40), "float32"), S: T.Tensor((24,), "float32"),
        L: T.Tensor((24, 40), "int32"), n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((24, 40), "float32")
            s = T.alloc_shared((24,), "float32")
            T.copy(A, f)
            for i in T.parallel(24):
                for j in T.parallel(40):
                    if i >= n:
                        f[i, j] = 0
            for i in T.Parallel(24):
                k = row[i]
                s[i] = k
                if k > 2:
                    for j in T.Parallel(40):
                        f[i, j] += s[i]
                    S[i] = s[i] * 2
                else:
                    for j in T.Parallel(20):
                        f[i, j] -= k
                    S[i] = -1
            for i in T.Parallel(24):
                for j in T.Parallel(40):
                    L[i, j] = 0
                for step in T.serial(3):
                    for j in T.Parallel(i + 1):
                        L[i, j] += step + 1
            T.copy(f, B)

    kernel = tilelab.compile(main, target=target)
    a = torch.randn(24, 40, device=device)
    row = torch.randint(0, 6, (24,), dtype=torch.int32, device=device)
    b, s = torch.empty_like(a), torch.empty(24, device=device)
    lower = torch.full((24, 40), 9, dtype=torch.int32, device=device)
    kernel(a, row, b, s, lower, 17)
    want = a.clone()
    want[17:] = 0
    many = row > 2
    want += torch.where(many, row, 0)[:, None]
    want[:, :20] -= torch.where(many, 0, row)[:, None]
    assert torch.allclose(b, want)
    assert torch.equal(s, torch.where(many, row * 2.0, -1.0))
    assert torch.equal(lower, torch.tril(torch.full_like(lower, 6)))


_HOST_NAMES = """#include <cstdint>
#include <math.h>
TL_DEVICE uint low(uint8_t* bytes) { return *reinterpret_cast<uint*>(bytes) & UINT8_MAX; }
template <typename T> __device__ void widen(T* bytes, half_t* out, const int count) {
  assert(count <= INT_MAX);
  for (int i = 0; i < count; ++i) out[i] = half(bytes[i] == 7 ? INFINITY : float(bytes[i]));
}
__device__ int64_t next(int64_t* at) { return *at + 1; }"""


def imported(dtype: Any) -> Any:
    """CUDA text that uses what nvcc's host headers declare."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 4), "uint8"), N: T.Tensor((64,), "int64"),
        B: T.Tensor((64, 4), dtype), C: T.Tensor((64,), "uint32"), M: T.Tensor((64,), "int64"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            T.import_source(_HOST_NAMES)
            t = T.get_thread_binding()
            own, wide = T.alloc_local((4,), "uint8"), T.alloc_local((4,), dtype)
            for v in T.vectorized(4):
                own[v] = A[t, v]
            T.call_extern("widen", T.access_ptr(own, "r"), T.access_ptr(wide, "w"), 4, dtype=dtype)
            for v in T.vectorized(4):
                B[t, v] = wide[v]
            C[t] = T.call_extern("low", T.access_ptr(own, "r"), dtype="uint32")
            M[t] = T.call_extern("int64", "next", T.address_of(N[t]))

    return main


def check_imported(target: Any, device: str) -> None:
    """The simulator has Python twins of the functions."""
    tilelab.register_extern("widen", lambda a, b, n: b.store(_widened(a.load(4))))
    tilelab.register_extern("low", lambda a: a.load(1)[0])
    tilelab.register_extern("next", lambda a: a.load(1)[0] + 1)
    kernel = tilelab.compile(imported(T.float16), out_idx=[2, 3, 4], target=target)
    a = torch.randint(0, 9, (64, 4), dtype=torch.uint8, device=device)
    n = torch.randint(-(2**40), 2**40, (64,), device=device)
    b, c, m = kernel(a, n)
    assert torch.equal(b, torch.where(a == 7, torch.inf, a).half())
    assert torch.equal(c.cpu().long(), a[:, 0].cpu().long())
    assert torch.equal(m, n + 1)


def _widened(values: Any) -> Any:
    return np.where(values == 7, np.inf, values).astype(np.float16)


CHECKS: tuple[Callable[[Any, str], None], ...] = (
    check_nested_loops, check_imported,
)  # fmt: skip
