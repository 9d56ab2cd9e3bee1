"""Programs as authors of kernels write them, for CPU and CUDA tensors: each has something that an
earlier version refused or took otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T
from tests.kernels import AMPERE


def check_sums_across_blocks(target: Any, device: str) -> None:
    """Prefix sums over blocks by decoupled look-back: a block polls the ones before it, and
    sleeps in between."""
    n, block = 1000, 128
    blocks = -(-n // block)

    @T.prim_func
    def main(
        A: T.Tensor((n,), "int32"), C: T.Tensor((n,), "int32"), Flag: T.Tensor((blocks,), "int32"),
        Total: T.Tensor((blocks,), "int32"), Ticket: T.Tensor((1,), "int32"),
    ):  # fmt: skip
        with T.Kernel(blocks, threads=block):
            mine = T.alloc_shared((1,), "int32")
            before = T.alloc_shared((1,), "int32")
            s = T.alloc_shared((block,), "int32")
            t = T.get_thread_binding()
            if t == 0:
                mine[0] = T.atomic_add(Ticket[0], 1, return_prev=True)
            bx = mine[0]
            for i in T.Parallel(block):
                s[i] = T.if_then_else(bx * block + i < n, A[bx * block + i], 0)
            T.cumsum(s)
            if t == 0:
                before[0] = 0
                if bx > 0:
                    while T.atomic_load(Flag[bx - 1], memory_order="acquire") == 0:
                        T.call_extern("void", "__nanosleep", 20)
                    before[0] = Total[bx - 1]
                Total[bx] = before[0] + s[block - 1]
                T.atomic_store(Flag[bx], 1, memory_order="release")
            for i in T.Parallel(block):
                if bx * block + i < n:
                    C[bx * block + i] = before[0] + s[i]

    a = torch.randint(-99, 99, (n,), dtype=torch.int32, device=device)
    c, zeros = torch.empty_like(a), lambda k: torch.zeros(k, dtype=torch.int32, device=device)
    tilelab.compile(main, target=target)(a, c, zeros(blocks), zeros(blocks), zeros(1))
    assert torch.equal(c, a.cumsum(0).int())


def check_places_from_the_end(target: Any, device: str) -> None:
    """An index that is negative in every iteration counts from the end, as a constant does."""

    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((3, 4), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(4):
                B[0, i] = A[-i - 1]
            for i in T.serial(-4, 0):
                B[1, i] = A[4 + i]
            B[-1, -1] = A[-16]
            for i in T.Parallel(3):
                B[2, i] = A[i - 3]

    a = torch.randn(16, device=device)
    b = tilelab.compile(main, out_idx=[1], target=target)(a)
    want = torch.stack([a.flip(0)[:4], a[:4], torch.cat([a[-3:], a[:1]])])
    assert torch.equal(b, want)


def check_barriers_of_some_threads(target: Any, device: str) -> None:
    """What one thread, or some warps, have ordered among themselves still waits for the others."""

    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64,), "int32")
            even = T.alloc_shared((64,), "int32")
            r = T.alloc_shared((64,), "int32")
            one = T.alloc_shared((1,), "int32")
            some = T.alloc_shared((32,), "int32")
            t = T.get_thread_binding()
            if t < 64:
                s[t] = A[t]
                T.sync_threads(1, 64)
                r[t] = s[63 - t]
            B[0, t] = s[127 - T.max(t, 64)]
            if t == 0:
                one[0] = A[5]
                if A[6] > 0:
                    one[0] = one[0] + 1
                r[0] = one[0]
            B[1, t] = one[0]
            if t < 16:
                some[t] = A[t]
                some[31 - t] = some[15 - t]
                r[t] = some[16 + t]
            B[2, t] = some[t % 32]
            own = t // 64 * 32 + t % 32
            if t // 32 % 2 == 0:
                even[own] = A[t]
                T.sync_threads(2, 64)
                r[own] = even[63 - own]
            B[3, t] = even[t % 64]

    a = torch.arange(128, dtype=torch.int32, device=device)
    b = tilelab.compile(main, out_idx=[1], target=target)(a)
    twice = torch.cat([a[:16], a[:16]])
    assert torch.equal(b[0], (127 - a.clamp(min=64)))
    assert bool((b[1] == 6).all())
    assert torch.equal(b[2], torch.cat([twice] * 4))
    assert torch.equal(b[3], torch.cat([a[:32], a[64:96]] * 2))


def check_every_8_bit_float(target: Any, device: str) -> None:
    """All 256 of a type as float32 and bfloat16, NaN as NaN: chips without conversions of 8-bit
    floats take them apart by bits."""
    for name in ("float8_e4m3fn", "float8_e5m2"):

        @T.prim_func
        def main(
            A: T.Tensor((256,), name), B: T.Tensor((256,), "float32"),
            C: T.Tensor((256,), "bfloat16"),
        ):  # fmt: skip
            with T.Kernel(1, threads=128):
                for i in T.Parallel(256):
                    B[i] = A[i]
                    C[i] = A[i]

        dtype = getattr(torch, name)
        a = torch.arange(256, device=device).to(torch.uint8).view(dtype)
        kernel = tilelab.compile(main, out_idx=[1, 2], target=target)
        b, c = kernel(a)
        torch.testing.assert_close(b, a.float(), rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(c, a.float().bfloat16(), rtol=0, atol=0, equal_nan=True)
        decoder = f"tl::{name[7:11]}_to_half("
        assert (decoder in kernel.get_kernel_source()) == (target == AMPERE)


CHECKS: tuple[Callable[[Any, str], None], ...] = (
    check_sums_across_blocks, check_places_from_the_end, check_barriers_of_some_threads,
    check_every_8_bit_float,
)  # fmt: skip
