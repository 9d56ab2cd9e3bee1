"""Conversions and integer arithmetic over edge values, the chip against the simulator."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

SOURCES = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "bool",
)  # fmt: skip
INTEGERS = SOURCES[:8]
COUNT = 512
TARGET = {"kind": "cuda", "arch": "sm_90a"}


def edges(dtype: str, seed: int = 0) -> Any:
    """Edge values of a type (bounds, halves, neighbours of powers of two, infinities, NaN, what
    lies beside halfway points) and random bits."""
    kind = getattr(torch, dtype)
    width = kind.itemsize
    made = torch.Generator().manual_seed(seed)
    raw = torch.randint(0, 256, (COUNT, width), dtype=torch.uint8, generator=made)
    if dtype == "bool":
        return (raw[:, 0] & 1).bool()
    random = raw.view(kind).reshape(COUNT)
    if not kind.is_floating_point:
        bits = width * 8
        powers = [s * 2**p + d for p in range(bits) for d in (-1, 0, 1) for s in (1, -1)]
        low, high = torch.iinfo(kind).min, torch.iinfo(kind).max
        known = [low, high, *(p for p in powers if low <= p <= high)]
        text = [n - (1 << bits) if n >= 1 << (bits - 1) else n for n in known[: COUNT // 2]]
        signed = torch.tensor(text, dtype=getattr(torch, f"int{bits}"))
        return torch.cat([signed.view(kind), random])[:COUNT]
    inf = float("inf")
    middle = [(1 + 2.0**-p) * (1 + d) * s for p in (3, 4, 8, 9, 11, 12) for d in (0, 2e-13, -2e-13)
              for s in (1, -1, 3.5)]  # fmt: skip
    ends = [s * 2.0**p * (1 - d) for p in (7, 8, 15, 16, 31, 32, 63, 64)
            for d in (0, 2.0**-24, 2e-16) for s in (1, -1)]  # fmt: skip
    small = [s * 2.0**-p for p in (6, 9, 10, 14, 16, 24, 25, 126, 133, 149) for s in (1, -1, 1.5)]
    some = [0.0, -0.0, inf, -inf, float("nan"), 0.5, -0.5, 1.5, 2.5, 448, 464, 465, 57344, 61440,
            65504, 65520, 3.3e38]  # fmt: skip
    known = torch.tensor([*some, *middle, *ends, *small], dtype=torch.float64).to(kind)
    return torch.cat([known, random])[:COUNT]


def both(kernel: Any, *args: Any) -> tuple[list[Any], list[Any]]:
    """The outputs of a call on the GPU and in the simulator."""
    ours = kernel(*(a.cuda() for a in args))
    return [o.cpu() for o in ours], kernel(*args)


def same_numbers(got: Any, want: Any) -> bool:
    """Equal bits, or NaN in both."""
    if got.dtype.is_floating_point:
        nan = got.float().isnan()
        if not torch.equal(nan, want.float().isnan()):
            return False
        got, want = got[~nan], want[~nan]
    return torch.equal(got.view(torch.uint8), want.view(torch.uint8))


def conversions(source: str, kinds: tuple[str, ...]) -> Any:
    """A type as seven others, in one kernel: by a copy and in a loop."""
    n = COUNT

    @T.prim_func
    def main(
        X: T.Tensor((n,), source), A: T.Tensor((2, n), kinds[0]), B: T.Tensor((2, n), kinds[1]),
        C: T.Tensor((2, n), kinds[2]), D: T.Tensor((2, n), kinds[3]), E: T.Tensor((2, n), kinds[4]),
        F: T.Tensor((2, n), kinds[5]), G: T.Tensor((2, n), kinds[6]),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            for out in (A, B, C, D, E, F, G):
                T.copy(X, out[0, :])
            for i in T.Parallel(n):
                A[1, i], B[1, i], C[1, i], D[1, i] = X[i], X[i], X[i], X[i]
                E[1, i], F[1, i], G[1, i] = X[i], X[i], X[i]

    return tilelab.compile(main, out_idx=list(range(1, 8)), target=TARGET)


def check_conversions(source: str) -> None:
    """A type's edge values as every other type."""
    values = edges(source)
    others = tuple(t for t in SOURCES if t not in (source, "bool"))
    for kinds in (others[:7], others[-7:]):
        for kind, got, want in zip(kinds, *both(conversions(source, kinds), values), strict=True):
            for way in range(2):
                same = same_numbers(got[way], want[way])
                differ = (
                    [] if same else values[got[way].double() != want[way].double()][:5].tolist()
                )
                assert same, (source, kind, way, differ)


def check_arithmetic(dtype: str) -> None:
    """Sums, products, floors, rests, shifts and comparisons of edge values."""

    @T.prim_func
    def main(A: T.Tensor((COUNT,), dtype), B: T.Tensor((COUNT,), dtype),
             C: T.Tensor((9, COUNT), dtype)):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(COUNT):
                C[0, i] = A[i] + B[i]
                C[1, i] = A[i] - B[i]
                C[2, i] = A[i] * B[i]
                C[3, i] = (A[i] - 64) // 3
                C[4, i] = (A[i] * 6) % 3
                C[5, i] = (A[i] + A[i]) >> 2
                C[6, i] = T.max(A[i], B[i]) & 0x55
                C[7, i] = T.if_then_else(A[i] - 1 < B[i], A[i] // 7, B[i] % 5)
                C[8, i] = (A[i] << 3) ^ -B[i]

    kernel = tilelab.compile(main, out_idx=[2], target=TARGET)
    a, b = bounded(dtype, 0), bounded(dtype, 1)
    got, want = kernel(a.cuda(), b.cuda()).cpu(), kernel(a, b)
    for row in range(9):
        assert torch.equal(got[row].long(), want[row].long()), (dtype, row)


def bounded(dtype: str, seed: int) -> Any:
    """Edge values in an order of their own; of signed words a part of the range, for C leaves it
    open what they become beyond it."""
    values = edges(dtype, seed)
    words = values.view(getattr(torch, f"int{values.element_size() * 8}"))
    if dtype in ("int32", "int64"):
        words = words >> 4
    return words.flip(0).view(values.dtype) if seed else words.view(values.dtype)
