"""Programs of the kinds of TileLang's examples, for CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tilelab
import tilelab.language as T


def check_nested_loops(target: Any, device: str) -> None:
    """Statements before and behind an inner loop, and one in each branch."""

    @T.prim_func
    def main(
        A: T.Tensor((24, 40), "float32"), row: T.Tensor((24,), "int32"),
        B: T.Tensor((24, 40), "float32"), S: T.Tensor((24,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            f = T.alloc_fragment((24, 40), "float32")
            s = T.alloc_shared((24,), "float32")
            T.copy(A, f)
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
            T.copy(f, B)

    a = torch.randn(24, 40, device=device)
    row = torch.randint(0, 6, (24,), dtype=torch.int32, device=device)
    b, s = tilelab.compile(main, out_idx=[2, 3], target=target)(a, row)
    many = row > 2
    want = a + torch.where(many, row, 0)[:, None]
    want[:, :20] -= torch.where(many, 0, row)[:, None]
    assert torch.allclose(b, want)
    assert torch.equal(s, torch.where(many, row * 2.0, -1.0))


def check_loops_with_others_between(target: Any, device: str) -> None:
    """A condition, and a serial loop, between the two; an inner extent that the point gives."""

    @T.prim_func
    def main(A: T.Tensor((24, 40), "float32"), L: T.Tensor((24, 40), "int32"), n: T.int32):
        with T.Kernel(1, threads=64):
            for i in T.parallel(24):
                for j in T.parallel(40):
                    if i >= n:
                        A[i, j] = 0
            for i in T.Parallel(24):
                for j in T.Parallel(40):
                    L[i, j] = 0
                for step in T.serial(3):
                    for j in T.Parallel(i + 1):
                        L[i, j] += step + 1

    a = torch.randn(24, 40, device=device)
    want = a.clone()
    want[17:] = 0
    lower = torch.full((24, 40), 9, dtype=torch.int32, device=device)
    tilelab.compile(main, target=target)(a, lower, 17)
    assert torch.equal(a, want)
    assert torch.equal(lower, torch.tril(torch.full_like(lower, 6)))


def part_of_fragment(rows: int, parts: int, *, guarded: bool) -> Any:
    """A product that leaves by parts of its rows, through a smaller tile."""
    some = rows // parts

    @T.prim_func
    def main(
        A: T.Tensor((32, rows), "float16"), B: T.Tensor((32, 128), "float16"),
        C: T.Tensor((rows, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((32, rows), "float16"), T.alloc_shared((32, 128), "float16")
            part = T.alloc_shared((some, 128), "float32")
            c = T.alloc_fragment((rows, 128), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_A=True, policy=T.GemmWarpPolicy.FullCol, clear_accum=True)
            for p in range(parts):
                if guarded:
                    for i, j in T.Parallel(rows, 128):
                        if i < some and j < 100:
                            part[i, j] = c[i + p * some, j] + 1
                else:
                    for i, j in T.Parallel(some, 128):
                        part[i, j] = c[i + p * some, j] + 1
                for i, j in T.Parallel(some, 100):
                    C[i + p * some, j] = part[i, j]

    return main


def check_parts_of_a_fragment(target: Any, device: str) -> None:
    """Rows from an offset on are read where they lie, if threads hold them as the first ones."""
    for rows, parts, stays in ((32, 2, True), (48, 3, True), (64, 4, False)):
        for guarded in (False, True):
            kernel = tilelab.compile(part_of_fragment(rows, parts, guarded=guarded), target=target)
            assert not stays or "_moved" not in kernel.get_kernel_source()
            a, b = (torch.randn(32, n, device=device).half() for n in (rows, 128))
            c = torch.zeros(rows, 128, device=device)
            kernel(a, b, c)
            want = a.float().T @ b.float() + 1
            want[:, 100:] = 0
            assert torch.allclose(c, want, atol=1e-3), (rows, guarded)


_HOST_NAMES = """
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


def check_places_of_few_points(target: Any, device: str) -> None:
    """Atomics that give out places, in loops with fewer points than threads: rows are sorted by
    their group, values found go to fragments and back to memory."""

    @T.prim_func
    def main(
        X: T.Tensor((50, 7), "float32"), ids: T.Tensor((50,), "int32"), n: T.Tensor((4,), "int32"),
        Y: T.Tensor((50, 7), "float32"), P: T.Tensor((50,), "int32"), R: T.Tensor((8,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            base = T.alloc_shared((4,), "int32")
            found = T.alloc_fragment((8,), "int32")
            T.copy(n, base)
            for i in T.Parallel(50):
                p = T.atomic_add(base[ids[i]], 1, return_prev=True)
                P[i] = p
                for d in T.serial(7):
                    Y[p, d] = X[i, d]
            T.sync_threads()
            for i in T.Parallel(8):
                found[i] = T.atomic_add(n[0], 3, return_prev=True)
            for i in T.Parallel(8):
                R[i] = found[i] * 2

    x, ids = torch.randn(50, 7, device=device), torch.randint(0, 4, (50,)).int()
    counts = ids.bincount(minlength=4)
    first = (counts.cumsum(0) - counts).int().to(device)
    y, p, r = tilelab.compile(main, out_idx=[3, 4, 5], target=target)(x, ids.to(device), first)
    assert torch.equal(y[p.long()], x)
    assert torch.equal(ids[p.cpu().long().argsort()], ids.sort().values)
    assert r.sort().values.tolist() == [6 * k for k in range(8)]
    assert int(first[0]) == 24


def check_results_set_in_parts(target: Any, device: str) -> None:
    """A product scaled into a fragment of its own, where rows and columns exist: lanes exchange
    whole tiles before they store what does: by quads of lanes, and through staging tiles."""

    @T.prim_func
    def main(
        A: T.Tensor((70, 32), "float16"), B: T.Tensor((96, 32), "float16"),
        s: T.Tensor((70,), "float32"), C: T.Tensor((70, 96), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(96, 64), T.ceildiv(70, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            out = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(1, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[bx * 64, k * 32], b)
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                if by * 64 + i < 70 and bx * 64 + j < 96:
                    out[i, j] = c[i, j] * s[by * 64 + i]
            T.copy(out, C[by * 64, bx * 64])

    a, b = (torch.randn(n, 32, device=device).half() for n in (70, 96))
    s = torch.rand(70, device=device)
    got = tilelab.compile(main, out_idx=[3], target=target)(a, b, s)
    want = (a.float() @ b.float().T) * s[:, None]
    torch.testing.assert_close(got.float(), want, atol=1e-2, rtol=1e-2)


def check_handles_and_conditions_by_name(target: Any, device: str) -> None:
    """T.handle parameters that T.match_buffer binds; T.And, T.Or and T.Not."""

    @T.prim_func
    def main(a: T.handle, b: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (100,), dtype="float32")
        with T.Kernel(2, threads=64) as bx:
            for i in T.Parallel(64):
                k = bx * 64 + i
                if T.And(k >= 0, k < 100):
                    B[k] = T.if_then_else(T.Or(T.Not(k < n), k == 3), -1, A[T.min(k, n - 1)])

    a, b = torch.randn(90, device=device), torch.zeros(100, device=device)
    tilelab.compile(main, target=target)(a, b, 90)
    a[3] = -1
    assert torch.equal(b[:90], a)
    assert torch.equal(b[90:], torch.full_like(b[90:], -1))
    assert (T.And(1, 0), T.Or(0, 1), T.Not(True)) == (False, True, False)


CHECKS: tuple[Callable[[Any, str], None], ...] = (
    check_nested_loops, check_loops_with_others_between, check_imported,
    check_parts_of_a_fragment, check_places_of_few_points, check_results_set_in_parts,
    check_handles_and_conditions_by_name,
)  # fmt: skip
