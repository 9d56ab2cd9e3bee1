"""Programs with T.reshape and T.view, and what they must compute; for CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import tilelab
import tilelab.language as T

M, N, K = 64, 64, 32


def gemm_of_views(device: str, target: Any) -> None:
    """The operands of a gemm are views: of a flat buffer, and of one with other extents."""

    @T.prim_func
    def main(
        A: T.Tensor((M * K,), "float16"),
        B: T.Tensor((K // 2, 2 * N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            flat = T.alloc_shared((M * K,), "float16")
            wide = T.alloc_shared((K // 2, 2 * N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, flat)
            T.copy(B, wide)
            T.clear(c)
            T.gemm(T.reshape(flat, (M, K)), T.reshape(wide, (K, N)), c)
            T.copy(c, C)

    a = torch.randn(M * K, device=device).half()
    b = torch.randn(K // 2, 2 * N, device=device).half()
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    want = a.view(M, K).float() @ b.view(K, N).float()
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-2)


def bytes_of_a_gemm_operand(device: str, target: Any) -> None:
    """A swizzled operand, read back as flat elements and as bytes."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"), D: T.Tensor((M * K,), "float16"),
        E: T.Tensor((M * K * 2,), "uint8"), F: T.Tensor((M * K // 2,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((M, K), "float16")
            b = T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)
            T.copy(T.reshape(a, (M * K,)), D)
            words = T.view(a, (M * K // 2,), "int32")
            T.copy(T.view(a, (M * K * 2,), "uint8"), E)
            for i in T.Parallel(M * K // 2):
                F[i] = words[i]

    a, b = (torch.randn(s, device=device).half() for s in ((M, K), (K, N)))
    c, d, e, f = tilelab.compile(main, out_idx=[2, 3, 4, 5], target=target)(a, b)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-2)
    assert torch.equal(d, a.flatten())
    assert torch.equal(e, a.flatten().view(torch.uint8))
    assert torch.equal(f, a.flatten().view(torch.int32))


def tensors_and_fragments(device: str, target: Any) -> None:
    """Views of parameters (read and written), of fragments, and of a fragment's other type."""

    @T.prim_func
    def main(
        A: T.Tensor((24, 10), "float32"), B: T.Tensor((10, 24), "float32"),
        C: T.Tensor((240,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            f = T.alloc_fragment((240,), "float32")
            flat = T.reshape(A, (240,))
            T.copy(flat, f)
            g = T.reshape(f, (240, 1))
            for i, j in T.Parallel(240, 1):
                g[i, j] = g[i, j] * 2
            out = T.reshape(B, (240,))
            T.copy(f, out)
            T.copy(T.view(f, dtype="int32"), C)

    a = torch.randn(24, 10, device=device)
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    assert torch.equal(b, 2 * a.view(10, 24))
    assert torch.equal(c, (2 * a).view(torch.int32).flatten())


def private_arrays(device: str, target: Any) -> None:
    """A thread's array as words and as bytes."""

    @T.prim_func
    def main(A: T.Tensor((64, 4), "int32"), B: T.Tensor((64, 16), "int8")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            words = T.alloc_local((4,), "int32")
            parts = T.view(words, (16,), "int8")
            for i in T.serial(4):
                words[i] = A[t, i]
            for i in T.serial(16):
                parts[i] = parts[i] + 1
            for i in T.serial(16):
                B[t, i] = parts[i]

    a = torch.randint(-(2**31), 2**31 - 1, (64, 4), device=device, dtype=torch.int32)
    b = tilelab.compile(main, out_idx=[1], target=target)(a)
    assert torch.equal(b, a.view(torch.int8) + 1)


def dynamic_tensor(device: str, target: Any) -> None:
    """A view of a tensor whose size is known at each call."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 8), "float32"), B: T.Tensor((n * 8,), "float32")):
        with T.Kernel(T.ceildiv(n, 4), threads=32) as bx:
            out = T.reshape(B, (n, 8))
            for i, j in T.Parallel(4, 8):
                out[bx * 4 + i, j] = A[bx * 4 + i, j] + 1

    a = torch.randn(6, 8, device=device)
    b = torch.zeros(48, device=device)
    tilelab.compile(main, target=target)(a, b)
    assert torch.equal(b, (a + 1).flatten())


def pipelined(device: str, target: Any) -> None:
    """A viewed tile inside T.Pipelined: filled anew in every iteration."""

    @T.prim_func
    def main(A: T.Tensor((8, 1024), "float16"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            tile = T.alloc_shared((1024,), "float16")
            other = T.alloc_shared((16, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[k, 0], tile)
                T.copy(T.reshape(A, (128, 64))[k * 16 : k * 16 + 16, :], other)
                T.gemm(T.reshape(tile, (64, 16)), other, c)
            T.copy(c, B)

    a = torch.randn(8, 1024, device=device).half()
    want = sum(a[k].view(64, 16).float() @ a[k].view(16, 64).float() for k in range(8))
    got = tilelab.compile(main, out_idx=[1], target=target)(a)
    torch.testing.assert_close(got, want, rtol=1e-3, atol=5e-2)


PROGRAMS: tuple[Callable[[str, Any], None], ...] = (
    gemm_of_views, bytes_of_a_gemm_operand, tensors_and_fragments, private_arrays, dynamic_tensor,
    pipelined,
)  # fmt: skip
