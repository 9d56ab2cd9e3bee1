"""Conversions over every encoding of the small types; for CPU and CUDA tensors."""

from __future__ import annotations

from typing import Any

import torch

import tilelab
import tilelab.language as T

SMALL = ("float8_e4m3fn", "float8_e5m2")
PAIRS = (
    *((s, d) for s in SMALL for d in ("float32", "float16", "bfloat16")),
    *(("bfloat16", d) for d in ("float32", "float16", *SMALL)),
    *(("float16", d) for d in ("float32", "bfloat16", *SMALL)),
    *((s, d) for s in ("int8", "uint8") for d in ("float32", "float16", "bfloat16", "int32")),
    ("bfloat16", "int32"), ("float16", "int32"), ("int16", "bfloat16"), ("int16", "float16"),
    ("int16", "int8"), ("uint16", "uint8"),
)  # fmt: skip
"""(from, to): all encodings of the first are converted."""


def encodings(dtype: str, device: str) -> Any:
    """Every bit pattern of a type of at most 16 bits, once."""
    kind = getattr(torch, dtype)
    bits = kind.itemsize * 8
    words = torch.arange(2**bits, device=device)
    return words.to(torch.int16 if bits == 16 else torch.uint8).view(kind)


def expected(values: Any, to: str) -> Any:
    """The conversion by its rule: nearest even; e4m3 saturates; integers saturate and NaN
    gives 0; integers to fewer bits wrap."""
    kind = getattr(torch, to)
    source = values.double() if values.dtype.is_floating_point else values.long()
    if to in SMALL:
        wide = source.float()
        if to == "float8_e5m2":  # has infinities
            return wide.to(kind)
        most = torch.finfo(kind).max
        return torch.where(wide.isnan(), wide, wide.clamp(-most, most)).to(kind)
    if values.dtype.is_floating_point and not kind.is_floating_point:
        most = torch.iinfo(kind)
        return source.nan_to_num(0.0, most.max, most.min).clamp(most.min, most.max).trunc().to(kind)
    if not values.dtype.is_floating_point and not kind.is_floating_point:
        wrapped = source & (2 ** torch.iinfo(kind).bits - 1)
        return wrapped.to(kind)
    return source.float().to(kind)


def check_cast(target: Any, device: str, source: str, to: str) -> None:
    """All encodings through T.cast in an elementwise loop, and through a copy that converts."""
    values = encodings(source, device)
    n = len(values)
    block = min(n, 1024)

    @T.prim_func
    def main(A: T.Tensor((n,), source), B: T.Tensor((n,), to), C: T.Tensor((n,), to)):
        with T.Kernel(n // block, threads=128) as b:
            s = T.alloc_shared((block,), source)
            r = T.alloc_fragment((block,), to)
            T.copy(A[b * block], s)
            T.copy(s, r)
            T.copy(r, B[b * block])
            for i in T.Parallel(block):
                C[b * block + i] = T.cast(s[i], to)

    want = expected(values, to)
    for got in tilelab.compile(main, out_idx=[1, 2], target=target)(values):
        if want.dtype.is_floating_point:
            nan = want.float().isnan()
            assert torch.equal(got.float().isnan(), nan)
            got, want_bits = got[~nan], want[~nan]
        else:
            want_bits = want
        same = got.view(torch.uint8).eq(want_bits.view(torch.uint8))
        assert bool(same.all()), (source, to, int((~same).sum()))
