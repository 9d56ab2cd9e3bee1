"""Arithmetic with a chosen rounding against exact fractions; for CPU and CUDA tensors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import torch

import tilelab
import tilelab.language as T

MODES = ("rn", "rz", "ru", "rd")
SOME = (1.0, -1.0, 1 / 3, -0.1, 3.0, 1.5e-7, -(2.0**24) - 2, 16777217.0, 7.0, 0.7)
VALUES = {
    "float32": (*SOME, 1e30, -1e-30, -5e-40, 3.4e38),
    "float64": (*SOME, 2.0**53 + 2, -1e-300, 5e-324, 1.7e308),
}


def _neighbours(exact: Fraction, kind: type[Any]) -> tuple[Any, Any]:
    """The largest `kind` not above and the smallest not below a number in its range."""
    with np.errstate(all="ignore"):
        near = kind(float(exact))
    below = near
    while not (math.isfinite(below) and Fraction(float(below)) <= exact):
        below = np.nextafter(below, kind(-np.inf))
    while True:
        above = np.nextafter(below, kind(np.inf))
        if not math.isfinite(above) or Fraction(float(above)) > exact:
            break
        below = above
    return below, below if Fraction(float(below)) == exact else above


def rounded(exact: Fraction, mode: str, kind: type[Any]) -> Any:
    """A fraction as a numpy float `kind` by the definition of the rounding."""
    low, high = _neighbours(exact, kind)
    if mode == "rd" or (mode == "rz" and exact > 0):
        return low
    if mode in ("ru", "rz"):
        return high
    if low == high or not math.isfinite(high):
        return low
    middle = (Fraction(float(low)) + Fraction(float(high))) / 2
    if exact != middle:
        return low if exact < middle else high
    return low if not int(kind(low).view(f"u{kind().itemsize}")) & 1 else high


def check_ieee(target: Any, device: str, dtype: str = "float32") -> None:
    """Sum, difference, product, quotient and fused product of pairs of values, all roundings."""
    pairs = list(itertools.product(VALUES[dtype], repeat=2))
    n, kind = len(pairs), np.dtype(dtype).type

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((4, 6, n), dtype)):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(n):
                for k, mode in enumerate(MODES):
                    C[k, 0, i] = T.ieee_add(A[i], B[i], mode)
                    C[k, 1, i] = T.ieee_sub(A[i], B[i], mode)
                    C[k, 2, i] = T.ieee_mul(A[i], B[i], mode)
                    C[k, 3, i] = T.ieee_fdiv(A[i], B[i], mode)
                    C[k, 4, i] = T.ieee_fmaf(A[i], B[i], 0.3, mode)
                    C[k, 5, i] = T.ieee_frcp(B[i], mode)

    torch_type = getattr(torch, dtype)
    a, b = (torch.tensor(v, dtype=torch_type, device=device) for v in zip(*pairs, strict=True))
    got = tilelab.compile(main, out_idx=[2], target=target)(a, b).cpu().numpy()
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        f, g = Fraction(x), Fraction(y)
        third = Fraction(float(kind(0.3)))
        exact = (f + g, f - g, f * g, f / g, f * g + third, 1 / g)
        for (k, mode), (op, value) in itertools.product(enumerate(MODES), enumerate(exact)):
            if abs(value) <= Fraction(float(np.finfo(kind).max)):
                assert got[k, op, i] == rounded(value, mode, kind), (x, y, mode, op)


def check_ieee_of_doubles(target: Any, device: str) -> None:
    """The same of float64, whose directed roundings the simulator finds by fractions."""
    check_ieee(target, device, "float64")


def check_halves(target: Any, device: str) -> None:
    """To nearest in 16-bit floats, each rounded once; the infinities of float8_e5m2."""
    for dtype, kind in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):

        @T.prim_func
        def main(
            A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype), D: T.Tensor((64,), dtype),
            C: T.Tensor((6, 64), dtype), E: T.Tensor((64,), "float8_e5m2"),
        ):  # fmt: skip
            with T.Kernel(1, threads=32) as _:
                for i in T.Parallel(64):
                    C[0, i] = T.ieee_fmaf(A[i], B[i], D[i])
                    C[1, i] = T.ieee_add(A[i], B[i])
                    C[2, i] = T.ieee_mul(A[i], B[i])
                    C[3, i] = T.ieee_fdiv(A[i], B[i])
                    C[4, i] = T.ieee_fsqrt(T.abs(A[i]))
                    C[5, i] = T.ieee_frsqrt(T.abs(A[i]))
                    E[i] = T.if_then_else(i % 2 == 0, T.infinity(E.dtype), -T.infinity(E.dtype))

        torch.manual_seed(0)
        a, b, d = (torch.randn(64, device=device).to(kind) for _ in "abd")
        ulp = float(torch.finfo(kind).eps)
        a[0], b[0], d[0] = 1 + ulp, 0.5 * ulp, 1.0  # the product is ulp / 2 + ulp^2 / 2
        c, e = tilelab.compile(main, out_idx=[3, 4], target=target)(a, b, d)
        fused = (a.double() * b.double() + d.double()).to(kind)
        assert float(c[0, 0]) == 1 + ulp and torch.equal(c[0], fused)
        assert torch.equal(c[1], a + b) and torch.equal(c[2], a * b) and torch.equal(c[3], a / b)
        assert torch.equal(c[4], a.abs().double().sqrt().to(kind))
        assert torch.equal(c[5], a.abs().double().rsqrt().to(kind))
        assert torch.equal(e.float().cpu(), torch.tensor([math.inf, -math.inf]).repeat(32))


def check_bits(target: Any, device: str) -> None:
    """T.__ffs, T.__fns, T.ieee_fsqrt, T.fast_rcp, T.ldexp and the inverse hyperbolic functions."""
    n = 64

    @T.prim_func
    def main(
        A: T.Tensor((n,), "int32"), B: T.Tensor((2, n), "int32"), C: T.Tensor((6, n), "float32")
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(n):
                B[0, i] = getattr(T, "__ffs")(A[i])
                B[1, i] = T.cast(getattr(T, "__fns")(A[i], 2, 2), "int32")
                x = T.cast(i + 1, "float32")
                C[0, i] = T.ieee_fsqrt(x, "ru")
                C[1, i] = T.fast_rcp(x)
                C[2, i] = T.ldexp(x, i % 5 - 2)
                C[3, i] = T.asinh(x)
                C[4, i] = T.acosh(x)
                C[5, i] = T.nextafter(x, 0.0)

    torch.manual_seed(0)
    a = torch.randint(-(2**31), 2**31, (n,), device=device).int()
    a[0], a[1] = 0, 1
    b, c = (r.cpu() for r in tilelab.compile(main, out_idx=[1, 2], target=target)(a))
    for i, word in enumerate(v % 2**32 for v in a.tolist()):
        bits = [p for p in range(32) if word >> p & 1]
        above = [p for p in bits if p >= 2]
        assert int(b[0, i]) == (bits[0] + 1 if bits else 0)
        assert int(b[1, i]) == (above[1] if len(above) > 1 else -1)
    x = torch.arange(1, n + 1, dtype=torch.float64)
    root = x.sqrt()
    assert bool((c[0].double() >= root).all()) and bool((c[0].double() < root + 1e-6).all())
    close = {"rtol": 1e-6, "atol": 1e-6}
    torch.testing.assert_close(c[1].double(), 1 / x, **close)
    torch.testing.assert_close(c[2].double(), x * 2.0 ** (torch.arange(n) % 5 - 2), rtol=0, atol=0)
    torch.testing.assert_close(c[3].double(), x.asinh(), **close)
    torch.testing.assert_close(c[4].double(), x.acosh(), **close)
    assert torch.equal(c[5], torch.nextafter(x.float(), torch.zeros(n)))


CHECKS = (check_ieee, check_ieee_of_doubles, check_halves, check_bits)
