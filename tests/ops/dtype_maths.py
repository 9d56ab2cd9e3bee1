"""Scalar computation and products over any element type, and what they must compute; CHECKS is
every operation of the table. For CPU and CUDA tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import tilelab
import tilelab.language as T
from tests.ops.dtype_programs import (
    SHAPE,
    THREADS,
    Check,
    check_allreduce,
    check_atomic,
    check_atomic_tile,
    check_cast,
    check_copy,
    check_fill,
    check_reduce,
    check_reducer,
    check_scan,
    check_transpose,
    check_views,
    is_float,
    same,
    stored,
    values,
)

ARITHMETIC: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (lambda a, b: a + b,) * 2,
    "sub": (lambda a, b: a - b,) * 2,
    "mul": (lambda a, b: a * b,) * 2,
    "floordiv": (lambda a, b: a // b,) * 2,
    "mod": (lambda a, b: a % b,) * 2,
    "and": (lambda a, b: a & b,) * 2,
    "or": (lambda a, b: a | b,) * 2,
    "xor": (lambda a, b: a ^ b,) * 2,
    "shift": (lambda a, b: (a << 1) + (a >> 1),) * 2,
    "max": (lambda a, b: T.max(a, b), torch.maximum),
    "min": (lambda a, b: T.min(a, b), torch.minimum),
    "abs": (lambda a, b: T.abs(a), lambda a, b: a.abs()),
    "negate": (lambda a, b: -a, lambda a, b: -a),
    "select": (lambda a, b: T.if_then_else(a < b, a, b), torch.minimum),
    "clamp": (lambda a, b: T.clamp(a, 0, 1), lambda a, b: a.clamp(0, 1)),
}
"""Name -> the expression in the language, and by torch on int64."""


def check_arithmetic(target: Any, device: str, dtype: str, op: str) -> None:
    """An elementwise loop over two tensors; results wrap or round to the type."""
    ours, theirs = ARITHMETIC[op]

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor(SHAPE, dtype), C: T.Tensor(SHAPE, dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            f = T.alloc_fragment(SHAPE, dtype)
            T.copy(A, f)
            for i, j in T.Parallel(*SHAPE):
                C[i, j] = ours(f[i, j], B[i, j])

    wide_a, a = values(dtype, device)
    wide_b, b = values(dtype, device, seed=1)
    if op in ("floordiv", "mod"):
        wide_b = torch.where(wide_b == 0, 1, wide_b)
        b = stored(wide_b, dtype).to(device)
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    want = theirs(wide_a, wide_b)
    same(got, _wrapped(want, dtype))


def _wrapped(wide: Any, dtype: str) -> Any:
    if is_float(dtype) or dtype == "bool":
        return stored(wide, dtype)
    bits = torch.iinfo(getattr(torch, dtype)).bits
    return stored(wide if bits == 64 else wide & (2**bits - 1), dtype)


def check_compare(target: Any, device: str, dtype: str) -> None:
    """Comparisons of two tensors as bool and as numbers, and a value as a condition."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor(SHAPE, dtype), C: T.Tensor(SHAPE, "bool"),
             D: T.Tensor(SHAPE, "int32")):  # fmt: skip
        with T.Kernel(1, threads=THREADS) as _:
            for i, j in T.Parallel(*SHAPE):
                C[i, j] = A[i, j] <= B[i, j]
                D[i, j] = T.if_then_else(A[i, j] != 0, 4, 8) + T.Cast("int32", A[i, j] == B[i, j])

    wide_a, a = values(dtype, device)
    wide_b, b = values(dtype, device, seed=1)
    c, d = tilelab.compile(main, out_idx=[2, 3], target=target)(a, b)
    same(c, wide_a <= wide_b)
    same(d, torch.where(wide_a != 0, 4, 8) + (wide_a == wide_b))


def check_math(target: Any, device: str, dtype: str) -> None:
    """Functions of the maths library at points where their value is exact."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor(SHAPE, dtype), C: T.Tensor(SHAPE, dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            for i, j in T.Parallel(*SHAPE):
                B[i, j] = T.exp2(T.floor(A[i, j]))
                C[i, j] = T.sqrt(T.abs(A[i, j]) * T.abs(A[i, j]))

    wide, a = values(dtype, device)
    b, c = tilelab.compile(main, out_idx=[1, 2], target=target)(a)
    same(b, torch.exp2(wide.double()).to(getattr(torch, dtype)))
    same(c, stored(wide.abs(), dtype))


def check_variables(target: Any, device: str, dtype: str) -> None:
    """T.alloc_var, T.alloc_local and a number of the call."""

    @T.prim_func
    def main(n: T.dtype(dtype), A: T.Tensor((THREADS,), dtype), B: T.Tensor((THREADS,), dtype)):
        with T.Kernel(1, threads=THREADS) as _:
            t = T.get_thread_binding()
            v = T.alloc_var(dtype)
            own = T.alloc_local((2,), dtype)
            own[0] = A[t]
            own[1] = n
            v = own[1]
            if v != own[0]:
                v = own[0]
            B[t] = v

    wide, a = values(dtype, device, (THREADS,))
    number = 1.0 if is_float(dtype) else 1
    same(tilelab.compile(main, out_idx=[2], target=target)(number, a), wide)


def check_any_all(target: Any, device: str, dtype: str) -> None:
    """T.any_of and T.all_of."""

    @T.prim_func
    def main(A: T.Tensor(SHAPE, dtype), B: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=THREADS) as _:
            s = T.alloc_shared(SHAPE, dtype)
            T.copy(A, s)
            B[0] = T.Cast("int32", T.any_of(s[0, 0:8]))
            B[1] = T.Cast("int32", T.all_of(s[0, 0:8]))

    wide, a = values(dtype, device)
    got = tilelab.compile(main, out_idx=[1], target=target)(a)
    same(got, torch.stack([(wide[0, :8] != 0).any(), (wide[0, :8] != 0).all()]))


def check_gemm(target: Any, device: str, dtype: str, out: str, tb: bool) -> None:
    """T.gemm with sums of a type."""
    m, n, k = 64, 32, 64
    b_shape = (n, k) if tb else (k, n)

    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((m, n), out)):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((m, k), dtype)
            b = T.alloc_shared(b_shape, dtype)
            c = T.alloc_fragment((m, n), out)
            T.clear(c)
            for _ in T.Pipelined(1, num_stages=2):
                T.copy(A, a)
                T.copy(B, b)
                T.gemm(a, b, c, transpose_B=tb)
            T.copy(c, C)

    wide_a, a = values(dtype, device, (m, k))
    wide_b, b = values(dtype, device, b_shape, seed=1)
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b)
    same(got, wide_a @ (wide_b.T if tb else wide_b))


def sums_of(dtype: str) -> str:
    """The type in which a gemm of a type sums."""
    if dtype in ("float64", "int64", "uint64"):
        return dtype
    return "float32" if is_float(dtype) else "uint32" if dtype == "uint32" else "int32"


def check_gemm_of(target: Any, device: str, dtype: str) -> None:
    """Both majors of B."""
    for tb in (False, True):
        check_gemm(target, device, dtype, sums_of(dtype), tb)


CHECKS: dict[str, Check] = {
    "copy": check_copy,
    "copy to float32": partial(check_cast, other="float32", outward=True),
    "copy from float32": partial(check_cast, other="float32", outward=False),
    "copy to int32": partial(check_cast, other="int32", outward=True),
    "copy from int32": partial(check_cast, other="int32", outward=False),
    "copy to float16": partial(check_cast, other="float16", outward=True),
    "copy from uint8": partial(check_cast, other="uint8", outward=False),
    "fill, clear": check_fill,
    "transpose": check_transpose,
    "reshape, view": check_views,
    **{f"reduce_{k}": partial(check_reduce, kind=k) for k in
       ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")},
    **{f"cum{k}": partial(check_scan, kind=k) for k in ("sum", "max")},
    **{f"atomic_{op}": partial(check_atomic, op=op) for op in ("add", "max", "min", "or")},
    "atomic_add of tiles": check_atomic_tile,
    "warp_reduce_sum, shfl_xor": check_allreduce,
    "reducer": check_reducer,
    **{f"elementwise {op}": partial(check_arithmetic, op=op) for op in ARITHMETIC},
    "comparisons": check_compare,
    "exp2, floor, sqrt, abs": check_math,
    "alloc_var, alloc_local, numbers": check_variables,
    "any_of, all_of": check_any_all,
    "gemm": check_gemm_of,
}  # fmt: skip
"""Every operation of the table, by its row."""
