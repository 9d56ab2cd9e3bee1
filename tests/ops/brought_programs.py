"""Programs of the kinds that people bring: loops whose extent only the call knows, single-element
copies in loops, flattened fragments, plain helpers, hand-made variables; for CPU and CUDA tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T
from tests.ops.example_programs import CHECKS as EXAMPLES


def check_run_time_extents(target: Any, device: str) -> None:
    """T.Parallel over sizes that only the call knows: on tensors, fragments and shared memory."""

    @T.prim_func
    def main(
        A: T.Tensor((40, 48), "float32"), B: T.Tensor((40, 48), "float32"),
        C: T.Tensor((600,), "float32"), D: T.Tensor((600,), "float32"), n: T.int32, m: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            f = T.alloc_fragment((40, 48), "float32")
            s = T.alloc_shared((40, 48), "float32")
            T.clear(f)
            T.clear(s)
            for i, j in T.Parallel(n, m):
                f[i, j] = A[i, j] * 2
            for i, j in T.Parallel(n, m):
                s[i, j] = A[i, j]
            for i, j in T.Parallel(40, m):
                s[i, j] = s[i, j] + f[i, j]
            for i, j in T.Parallel(n, 48):
                s[i, j] += 1
            T.copy(s, B)
            for i in T.Parallel(600):
                D[i] = -1
            span = T.min(n * m, 600)
            for i in T.Parallel(span):
                D[i] = C[i]

    kernel = tilelab.compile(main, out_idx=[1, 3], target=target)
    for n, m in ((0, 5), (1, 1), (40, 48), (33, 17), (3, 0)):
        a, c = torch.randn(40, 48, device=device), torch.randn(600, device=device)
        b, d = kernel(a, c, n, m)
        want = torch.zeros_like(a)
        want[:n, :m] = a[:n, :m] * 3
        want[:n] += 1
        flat = torch.full_like(c, -1)
        flat[: n * m] = c[: n * m]
        assert torch.allclose(b, want), (n, m)
        assert torch.equal(d, flat), (n, m)


def check_run_time_extents_of_a_role(target: Any, device: str) -> None:
    """The points are shared out among the threads of the role that runs the loop."""

    @T.prim_func
    def main(A: T.Tensor((500,), "int32"), B: T.Tensor((2, 500), "int32"), n: T.int32):
        with T.Kernel(1, threads=256) as _:
            with T.ws(0):
                for i in T.Parallel(n):
                    B[0, i] = A[i]
            with T.ws(1):
                for i in T.Parallel(n):
                    B[1, i] = -A[i]

    kernel = tilelab.compile(main, target=target)
    a = torch.arange(500, dtype=torch.int32, device=device)
    b = torch.zeros(2, 500, dtype=torch.int32, device=device)
    kernel(a, b, 300)
    assert torch.equal(b[0, :300], a[:300])
    assert torch.equal(b[1, :300], -a[:300])
    assert not b[:, 300:].any()


def check_copies_of_elements(target: Any, device: str) -> None:
    """T.copy of one element in a T.Parallel loop is a store: converted, and past the end safe."""

    @T.prim_func
    def main(A: T.Tensor((30, 35), "float32"), B: T.Tensor((48, 48), "float16")):
        with T.Kernel(1, threads=64) as _:
            T.annotate_safe_value({A: -9})
            for i, j in T.Parallel(48, 48):
                T.copy(A[i, j], B[i, j])

    a = torch.randn(30, 35, device=device)
    b = tilelab.compile(main, out_idx=[1], target=target)(a)
    want = torch.full((48, 48), -9.0, device=device).half()
    want[:30, :35] = a.half()
    assert torch.equal(b, want)


def check_flattened_fragment(target: Any, device: str) -> None:
    """A fragment that one loop fills by rows and the next one reads flat: nothing is read of it
    before it is written."""
    for rows, cols in ((32, 64), (16, 33)):
        kernel = tilelab.compile(_flattened(rows, cols), out_idx=[1], target=target)
        a = torch.randn(64, 2 * cols, device=device).half()
        assert torch.equal(kernel(a).view(a.shape), a)


def _flattened(rows: int, cols: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 2 * cols), "float16"), B: T.Tensor((128 * cols,), "float16")):
        with T.Kernel(2, 64 // rows, threads=128) as (bx, by):
            tile = T.alloc_fragment((rows, cols), "float16")
            flat = T.alloc_fragment((rows * cols,), "float16")
            T.copy(A[by * rows, bx * cols], tile)
            for i, j in T.Parallel(rows, cols):
                flat[i * cols + j] = tile[i, j]
            for k in T.Parallel(rows * cols):
                place = (by * rows + k // cols) * (2 * cols) + bx * cols + k % cols
                B[place] = flat[k]

    return main


def _sum_and_scan(tile: Any, sums: Any) -> None:
    """A plain helper: reductions, scans and T.print are macros in TileLang, and act in it."""
    T.reduce_sum(tile, sums, dim=1)
    T.cumsum(tile, dim=1)


@T.macro
def _count(number: T.Var) -> None:
    number += 1


def check_helpers_and_variables(target: Any, device: str) -> None:
    """Reductions in plain helpers, T.let, T.launch_thread by assignment, T.Var as T.Ref."""

    @T.prim_func
    def main(
        A: T.Tensor((8, 64), "float32"), B: T.Tensor((8,), "float32"),
        C: T.Tensor((8, 64), "float32"), D: T.Tensor((64,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            tx = T.launch_thread("threadIdx.x", 64)
            tile = T.alloc_fragment((8, 64), "float32")
            sums = T.alloc_fragment((8,), "float32")
            T.copy(A, tile)
            _sum_and_scan(tile, sums)
            T.copy(sums, B)
            T.copy(tile, C)
            number = T.alloc_var("int32", init=0)
            for k in T.serial(3):
                offset = T.int32()
                T.let(offset, k * 100)
                _count(number)
                number += offset
            T.sync_threads(1 + tx // 32, 32)
            D[tx] = number * 1000 + T.get_warp_idx_sync(16)

    a = torch.randn(8, 64, device=device)
    b, c, d = tilelab.compile(main, out_idx=[1, 2, 3], target=target)(a)
    assert torch.allclose(b, a.sum(1), atol=1e-4)
    assert torch.allclose(c, a.cumsum(1), atol=1e-4)
    want = 303000 + torch.arange(64, dtype=torch.int32, device=device) // 16
    assert torch.equal(d, want)


def check_private_reductions(target: Any, device: str) -> None:
    """T.reduce_* of arrays of each thread, into an array and a variable, in a branch too."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 8, 4), "float32"), B: T.Tensor((64, 4), "float32"),
        C: T.Tensor((64,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            rows = T.alloc_local((8, 4), "float32")
            sums = T.alloc_local((4,), "float32")
            largest = T.alloc_var("float32", init=-1.0)
            for i, j in T.grid(8, 4):
                rows[i, j] = A[tx, i, j]
            T.reduce_sum(rows, sums, dim=0)
            for j in T.serial(4):
                B[tx, j] = sums[j]
            if tx % 2 == 0:
                T.reduce_absmax(sums, largest, dim=0)
                T.reduce_max(rows[0, 0:4], largest, dim=0, clear=False)
            C[tx] = largest

    a = torch.randn(64, 8, 4, device=device)
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    want = torch.maximum(a.sum(1).abs().amax(1), a[:, 0].amax(1))
    want[1::2] = -1
    assert torch.allclose(b, a.sum(1), atol=1e-5)
    assert torch.allclose(c, want, atol=1e-5)


def check_atomics_of_tiles_and_runs(target: Any, device: str) -> None:
    """A number to every element of a buffer or slice, once; runs by slices, with what was there."""

    @T.prim_func
    def main(
        A: T.Tensor((1,), "float32"), B: T.Tensor((70, 50), "float32"), C: T.Tensor((1,), "int32"),
        D: T.Tensor((4, 8), "float16"), V: T.Tensor((8,), "float16"), P: T.Tensor((8,), "float16"),
    ):  # fmt: skip
        with T.Kernel(2, threads=96) as bx:
            T.atomic_add(A, 1)
            T.atomic_max(B[bx * 40 : (bx + 1) * 40, :], 3.0)
            T.atomic_add(B[bx * 40 : (bx + 1) * 40, 0:3], bx + 1)
            for _i in T.Parallel(300):
                T.atomic_add(C, 1)
            if bx == 0 and T.get_thread_binding() == 0:
                place = D[1, 0:2]
                P[0:2] = T.atomic_addx2(place, V[0:2], return_prev=True)
                P[2:6] = T.atomic_addx4(D[1, 2:6], V[2:6], return_prev=True)
                T.atomic_addx4(D[2, 4:8], V[0:4])

    a, b = torch.zeros(1, device=device), torch.zeros(70, 50, device=device)
    c = torch.zeros(1, dtype=torch.int32, device=device)
    d, v = (torch.randn(n, device=device).half() for n in ((4, 8), (8,)))
    p, before = torch.zeros(8, device=device).half(), d.clone()
    tilelab.compile(main, target=target)(a, b, c, d, v, p)
    want = torch.full_like(b, 3.0)
    want[:40, :3] += 1
    want[40:, :3] += 2
    before_run = before.clone()
    before[1, :6] += v[:6]
    before[2, 4:] += v[:4]
    assert a.item() == 2
    assert c.item() == 600
    assert torch.equal(b, want)
    assert torch.equal(d, before)
    assert torch.equal(p[:6], before_run[1, :6])


def check_barriers_of_operations(target: Any, device: str) -> None:
    """With the option that leaves barriers to the program, those inside of one operation stay."""

    @T.prim_func
    def main(A: T.Tensor((4, 512), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=128) as _:
            tile = T.alloc_fragment((4, 512), "float32")
            sums = T.alloc_fragment((4,), "float32")
            T.copy(A, tile)
            T.reduce_sum(tile, sums, dim=1)
            T.copy(sums, B)

    options = {"tl.disable_thread_storage_sync": True}
    kernel = tilelab.compile(main, out_idx=[1], target=target, pass_configs=options)
    a = torch.randn(4, 512, device=device)
    assert torch.allclose(kernel(a), a.sum(1), atol=1e-3)


def check_tensors_left_out(target: Any, device: str) -> None:
    """None for a tensor that no kernel touches."""
    rows = T.dynamic("rows")

    @T.prim_func
    def main(
        A: T.Tensor((rows, 64), "float32"), Bias: T.Tensor((rows, 64), "float32"),
        B: T.Tensor((rows, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(rows, 32), threads=64) as bx:
            tile = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx * 32, 0], tile)
            T.copy(tile, B[bx * 32, 0])

    kernel = tilelab.compile(main, out_idx=[2], target=target)
    a = torch.randn(50, 64, device=device)
    assert torch.equal(kernel(a, None), a)
    assert torch.equal(kernel(A=a, Bias=None), a)


def check_signs_by_shifts(target: Any, device: str) -> None:
    """Signed fields out of words: shifted left to drop what is above, and back with the sign."""

    @T.prim_func
    def main(
        A: T.Tensor((64,), "int32"), U: T.Tensor((64,), "uint32"), B: T.Tensor((64,), "int32"),
        C: T.Tensor((64,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                B[i] = (A[i] << 24) >> 24
                C[i] = (T.cast(U[i] & 15, "int32") << 28) >> 28

    a = torch.randint(-(2**31), 2**31 - 1, (64,), device=device).int()
    b, c = tilelab.compile(main, out_idx=[2, 3], target=target)(a, a.view(torch.uint32))
    assert torch.equal(b, (a << 24) >> 24)
    assert torch.equal(c, ((a & 15) << 28) >> 28)


def check_columns_one_by_one(target: Any, device: str) -> None:
    """A tile whose columns get their values one after the other, in loops of another layout: that
    a re-layout moves what has none yet is no finding."""
    rows, count = 24, 5

    @T.prim_func
    def main(
        X: T.Tensor((rows, 24), "float32"), W: T.Tensor((rows, 2 * count), "float32")
    ):  # fmt: skip
        with T.Kernel(1, threads=96) as _:
            x = T.alloc_fragment((rows, 24), "float32")
            top = T.alloc_fragment((rows,), "float32")
            w = T.alloc_fragment((rows, 2 * count), "float32")
            T.copy(X, x)
            for k in T.serial(count):
                T.reduce_max(x, top, dim=1)
                for i in T.Parallel(rows):
                    w[i, k] = top[i]
                    w[i, count + k] = w[i, k] + 1.0
                for i, j in T.Parallel(rows, 24):
                    if x[i, j] == top[i]:
                        x[i, j] = -100.0
                for i in T.Parallel(rows):
                    if k % 2 == 0:
                        w[i, count + k] += top[i]
                    else:
                        w[i, count + k] = 2.0 * top[i] + 1.0
            for i, j in T.Parallel(rows, 2 * count):
                w[i, j] *= 2.0
            T.copy(w, W)

    x = torch.randn(rows, 24, device=device)
    best = x.topk(count).values
    got = tilelab.compile(main, out_idx=[1], target=target)(x)
    torch.testing.assert_close(got, 2 * torch.cat([best, 2 * best + 1], 1))


def check_fragments_set_in_parts(target: Any, device: str) -> None:
    """Slices of a fragment that are copied into it in turn, and elements at places from memory."""

    @T.prim_func
    def main(
        X: T.Tensor((16, 64), "float16"), P: T.Tensor((64,), "int32"),
        Y: T.Tensor((16, 64), "float16"), Q: T.Tensor((64,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            x = T.alloc_fragment((16, 64), "float16")
            p = T.alloc_fragment((64,), "int32")
            q = T.alloc_fragment((64,), "int32")
            for h in T.unroll(2):
                T.copy(X[:, h * 32 : h * 32 + 32], x[:, (1 - h) * 32 : (1 - h) * 32 + 32])
            T.copy(x, Y)
            T.copy(P, p)
            for i in T.Parallel(64):
                q[p[i]] = i
            T.copy(q, Q)

    x, p = torch.randn(16, 64, device=device).half(), torch.randperm(64, device=device).int()
    y, q = tilelab.compile(main, out_idx=[2, 3], target=target)(x, p)
    assert torch.equal(y, x.roll(32, 1)) and torch.equal(q, p.argsort().int())


CHECKS: tuple[Callable[[Any, str], None], ...] = (
    check_run_time_extents, check_run_time_extents_of_a_role, check_copies_of_elements,
    check_flattened_fragment, check_helpers_and_variables, check_private_reductions,
    check_atomics_of_tiles_and_runs, check_barriers_of_operations, check_tensors_left_out,
    check_signs_by_shifts, check_columns_one_by_one, check_fragments_set_in_parts,
    *EXAMPLES,
)  # fmt: skip
