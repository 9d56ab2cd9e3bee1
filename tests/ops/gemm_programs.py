"""Programs with T.gemm for every element type, and what they must compute; for CPU and CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import tilelab
import tilelab.language as T

MAKE = {"s": T.alloc_shared, "r": T.alloc_fragment}
"""Where an operand lives: shared memory or registers."""

TYPES = (
    ("float16", "float16", "float32"), ("float16", "float16", "float16"),
    ("bfloat16", "bfloat16", "float32"), ("float32", "float32", "float32"),
    ("float8_e4m3fn", "float8_e4m3fn", "float32"), ("float8_e5m2", "float8_e4m3fn", "float32"),
    ("float8_e5m2", "float8_e5m2", "float16"), ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"), ("float64", "float64", "float64"),
)  # fmt: skip
"""(A, B, C) that tensor cores multiply."""
OTHERS = (
    ("float16", "float32", "float32"), ("bfloat16", "bfloat16", "bfloat16"),
    ("int32", "int32", "int32"), ("int8", "int8", "float32"), ("float16", "float16", "float64"),
    ("int16", "uint8", "int64"), ("float32", "float32", "float16"),
    ("float16", "bfloat16", "float32"), ("uint8", "uint8", "uint8"),
)  # fmt: skip
"""(A, B, C) that no instruction multiplies."""

FINE = {"float32": 2.0**-22, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-50}


@dataclass(frozen=True)
class Case:
    """A tile of m x n x k, its types (A, B, C), and how operands lie ("s" or "r" for each)."""

    m: int = 64
    n: int = 64
    k: int = 64
    types: tuple[str, str, str] = TYPES[0]
    ta: bool = False
    tb: bool = False
    where: str = "ss"
    threads: int = 128
    policy: Any = None
    clear: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """How A and B are stored."""
        a = (self.k, self.m) if self.ta else (self.m, self.k)
        return a, (self.n, self.k) if self.tb else (self.k, self.n)


def program(case: Case) -> Any:
    """`C = C + op(A) @ op(B)`, or without the old C when it is to be cleared."""
    a_shape, b_shape = case.shapes
    a_type, b_type, c_type = case.types

    @T.prim_func
    def main(
        A: T.Tensor(a_shape, a_type), B: T.Tensor(b_shape, b_type),
        C0: T.Tensor((case.m, case.n), c_type), C: T.Tensor((case.m, case.n), c_type),
    ):  # fmt: skip
        with T.Kernel(1, threads=case.threads) as _:
            a = MAKE[case.where[0]](a_shape, a_type)
            b = MAKE[case.where[1]](b_shape, b_type)
            c = T.alloc_fragment((case.m, case.n), c_type)
            T.copy(A, a)
            T.copy(B, b)
            T.copy(C0, c)
            T.gemm(a, b, c, case.ta, case.tb, policy=case.policy, clear_accum=case.clear)
            T.copy(c, C)

    return main


def values(shape: tuple[int, ...], dtype: str, device: str, seed: int) -> Any:
    """Random values of a type: about 1 for floats, all of an 8-bit range for integers."""
    torch.manual_seed(seed)
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.randn(shape, device=device).to(kind)
    low = 0 if dtype.startswith("u") else -128
    return torch.randint(low, low + 256, shape, device=device).to(kind)


def tf32(x: Any) -> Any:
    """float32 as the tensor cores read it: the low 13 bits are ignored."""
    return (x.view(torch.int32) & -8192).view(torch.float32)


def expected(a: Any, b: Any, c: Any, case: Case, by_tf32: bool) -> tuple[Any, Any]:
    """The result in float64, and the sum of magnitudes that bounds its rounding errors."""
    if by_tf32:
        a, b = tf32(a), tf32(b)
    a, b, c = (x.cpu().double() for x in (a, b, c))
    a, b = a.T if case.ta else a, b.T if case.tb else b
    start = torch.zeros_like(c) if case.clear else c
    return start + a @ b, start.abs() + a.abs() @ b.abs()


def compare(got: Any, want: Any, size: Any, c_type: str) -> None:
    """Integers agree modulo 2**bits; floats within roundings of the accumulator's type."""
    kind = getattr(torch, c_type)
    if not kind.is_floating_point:
        whole = want.to(torch.int64).to(kind)  # wraps
        assert torch.equal(got.cpu(), whole), (got.cpu(), whole)
        return
    bound = size * FINE[c_type] * 4 + FINE[c_type]
    worst = ((got.cpu().double() - want).abs() / bound).max()
    assert float(worst) <= 1, f"{float(worst)} times the tolerance"


def check(case: Case, target: Any, device: str = "cpu", loose: float = 1.0) -> Any:
    """Run the case; the compiled kernel. `loose` multiplies the tolerance."""
    kernel = tilelab.compile(program(case), out_idx=[3], target=target)
    a_shape, b_shape = case.shapes
    a, b = values(a_shape, case.types[0], device, 1), values(b_shape, case.types[1], device, 2)
    c = values((case.m, case.n), case.types[2], device, 3)
    by_tf32 = case.types == ("float32",) * 3 and instruction(kernel) != "SIMT"
    want, size = expected(a, b, c, case, by_tf32)
    compare(kernel(a, b, c), want, size * loose, case.types[2])
    return kernel


def instruction(kernel: Any) -> str:
    """The instruction of a kernel's gemm: "wgmma", "mma" or "SIMT"."""
    text = kernel.get_kernel_source()
    return next((name for key, name in (("tl::wgmma", "wgmma"), ("tl::mma_sync", "mma"))
                 if key in text), "SIMT")  # fmt: skip


def check_matrices(target: Any, device: str, types: tuple[str, str, str]) -> None:
    """Matrices of larger shared buffers and fragments, and a part of the K axis."""
    dtype, acc = types[0], types[2]

    @T.prim_func
    def main(
        A: T.Tensor((3, 64, 128), dtype), B: T.Tensor((2, 64, 128), dtype),
        C: T.Tensor((64, 64), acc), D: T.Tensor((2, 64, 64), acc),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a, b = T.alloc_shared((3, 64, 128), dtype), T.alloc_shared((2, 64, 128), dtype)
            c, d = T.alloc_fragment((64, 64), acc), T.alloc_fragment((2, 64, 64), acc)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.clear(d)
            for i in range(3):
                T.gemm(a[i, :, :], b[i % 2, :, :], c, transpose_B=True)
            T.gemm(a[1, :, 64:128], b[0, :, 64:128], c, transpose_B=True)
            for i in T.unroll(2):
                T.gemm(a[i, :, :], b[i, :, :], d[i, :, :], transpose_B=True)
            T.copy(c, C)
            T.copy(d, D)

    torch.manual_seed(0)
    a, b = (torch.randint(-3, 4, s, device=device).to(getattr(torch, dtype))
            for s in ((3, 64, 128), (2, 64, 128)))  # fmt: skip
    c, d = tilelab.compile(main, out_idx=[2, 3], target=target)(a, b)
    a, b = a.cpu().double(), b.cpu().double()
    want = sum(a[i] @ b[i % 2].T for i in range(3)) + a[1, :, 64:] @ b[0, :, 64:].T
    assert torch.equal(c.cpu().double(), want)
    assert torch.equal(d.cpu().double(), a[:2] @ b.transpose(1, 2))


def _pair(device: str, *shapes: tuple[int, int]) -> tuple[Any, ...]:
    """Small whole numbers: every sum is exact."""
    torch.manual_seed(1)
    return tuple(torch.randint(-3, 4, s, device=device).half() for s in shapes)


def check_parts(target: Any, device: str) -> None:
    """A part of a fragment as C, and one as A."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
             C: T.Tensor((128, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a, b = T.alloc_fragment((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((128, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c[32:96, :])
            T.gemm(a[16:48, 8:24], b[40:56, :], c[96:128, :])
            T.copy(c, C)

    a, b = _pair(device, (64, 64), (64, 64))
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    want = torch.zeros(128, 64, device=device)
    want[32:96] = a.float() @ b.float()
    want[96:] = a[16:48, 8:24].float() @ b[40:56].float()
    assert torch.equal(got, want)


def check_condition(target: Any, device: str, wait: int, waits: bool = True) -> None:
    """clear_accum under a condition; the program waits itself when `wait` is -1."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
             C: T.Tensor((64, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.fill(c, 100)
            for i in T.serial(3):
                T.gemm(a, b, c, clear_accum=(i == 1), wg_wait=wait, k_pack=2, annotations={})
            if waits:
                T.wait_wgmma(0)
            T.copy(c, C)

    a, b = _pair(device, (64, 64), (64, 64))
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    assert torch.equal(got, 2 * (a.float() @ b.float()))


def check_async(target: Any, device: str, only_wgmma: bool) -> None:
    """A pipelined loop whose products the program waits for."""

    @T.prim_func
    def main(A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 128), "float16"),
             C: T.Tensor((128, 128), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            a, b = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[k * 64, 0], b)
                if only_wgmma:
                    T.wgmma_gemm(a, b, c)
                else:
                    T.gemm(a, b, c, wg_wait=-1)
                T.warpgroup_wait(0)
            T.copy(c, C)

    a, b = _pair(device, (128, 256), (256, 128))
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    assert torch.equal(got, a.float() @ b.float())
