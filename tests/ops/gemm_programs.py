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

EXACT = {"float32": 2.0**-10, "float64": 2.0**-52}
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
