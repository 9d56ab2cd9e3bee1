"""Programs of the kinds that people bring: loops whose extent only the call knows, single-element
copies in loops, flattened fragments, plain helpers, hand-made variables; for CPU and CUDA tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T


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


CHECKS: tuple[Callable[[Any, str], None], ...] = (
    check_run_time_extents, check_run_time_extents_of_a_role, check_copies_of_elements,
    check_flattened_fragment, check_helpers_and_variables,
)  # fmt: skip
