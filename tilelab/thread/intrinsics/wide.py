"""Accesses of 4 to 32 bytes whose bits are taken as words, the question whether tensors allow
them, and the dot product of four bytes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilelab.dtypes import DType
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE

_SOURCE = "PTX ISA, ld and st with vectors"
_VECTOR = {4: "u32", 8: "uint2", 16: "uint4", 32: "uint4"}


def _retyped(values: Array, to: np.dtype[Any]) -> Array:
    """Elements along axis 0 as elements of another type with the same bits."""
    last = np.ascontiguousarray(np.moveaxis(values, 0, -1))
    return np.moveaxis(last.view(to), -1, 0)


def _copied(size: int, dst: str, src: str) -> str:
    kind, steps = _VECTOR[size], max(size // 16, 1)
    lines = [f"  (({kind}*){dst})[{i}] = ((const {kind}*){src})[{i}];" for i in range(steps)]
    return "\n".join(lines)


@cache
def wide_load(size: int, dtype: DType) -> Intrinsic:
    """`size` bytes of elements of `dtype`, at an address aligned to (at most 16 of) them, into
    registers as 32-bit words."""
    text = f"""
{INLINE} void load_words_{size}(u32* dst, const void* src) {{
{_copied(size, "dst", "src")}
}}"""

    def meaning(m: Machine, dst: Any, src: Any) -> None:
        values = m.load(src, size // dtype.bytes, packed=True)
        m.store(dst, _retyped(values.astype(dtype.numpy, copy=False), np.dtype(np.uint32)))

    return Intrinsic(
        f"load_words_{size}_{dtype.name}", (Param("dst", "writes"), Param("src", "reads")),
        f"tl::load_words_{size}({{dst}}, {{src}})", text, meaning, cost="global", source=_SOURCE,
    )  # fmt: skip


@cache
def wide_store(size: int, dtype: DType) -> Intrinsic:
    """The reverse of `wide_load`."""
    text = f"""
{INLINE} void store_words_{size}(void* dst, const u32* src) {{
{_copied(size, "dst", "src")}
}}"""

    def meaning(m: Machine, dst: Any, src: Any) -> None:
        words = m.load(src, size // 4)
        values = _retyped(words.astype(np.uint32, copy=False), dtype.numpy)
        m.store(dst, values, packed=True)

    return Intrinsic(
        f"store_words_{size}_{dtype.name}", (Param("dst", "writes"), Param("src", "reads")),
        f"tl::store_words_{size}({{dst}}, {{src}})", text, meaning, cost="global", source=_SOURCE,
    )  # fmt: skip


@cache
def dot4(signed: bool) -> Intrinsic:
    """c += a[0] b[0] + ... + a[3] b[3] of 8-bit integers, in 32 bits that wrap."""
    word = "int" if signed else "u32"
    name = f"dot4_{'s' if signed else 'u'}8"
    text = f"""
{INLINE} void {name}({word}* c, const void* a, const void* b) {{
  *c = __dp4a(*(const {word}*)a, *(const {word}*)b, *c);
}}"""

    def meaning(m: Machine, c: Any, a: Any, b: Any) -> None:
        left, right = (m.load(p, 4, packed=True).astype(np.int64) for p in (a, b))
        total = m.load(c, 1).astype(np.int64) + (left * right).sum(0, keepdims=True)
        m.store(c, total.astype(np.int32 if signed else np.uint32))

    return Intrinsic(
        name, (Param("c", "updates"), Param("a", "reads"), Param("b", "reads")),
        f"tl::{name}({{c}}, {{a}}, {{b}})", text, meaning, cost="alu", source="PTX ISA, dp4a",
    )  # fmt: skip


@recorded
def is_aligned(size: int, tensors: int) -> Intrinsic:
    """Whether up to 64 tensors begin at multiples of `size` bytes (2, 4, 8 or 16), as those of the
    simulator do. ValueError for other numbers."""
    if size not in (2, 4, 8, 16) or not 1 <= tensors <= 64:
        raise ValueError(f"is_aligned({size}, {tensors}): a size of 2 to 16, 1 to 64 tensors")
    text = f"""
template <class... P> {INLINE} bool is_aligned_{size}(const P*... tensors) {{
  return ((reinterpret_cast<unsigned long long>(tensors) | ...) & {size - 1}) == 0;
}}"""
    names = [f"t{n}" for n in range(tensors)]

    def meaning(m: Machine, *places: Any) -> Array:
        return m.full(True)

    return Intrinsic(
        f"is_aligned_{size}_{tensors}", tuple(Param(n, "reads") for n in names),
        f"tl::is_aligned_{size}({', '.join(f'{{{n}}}' for n in names)})", text, meaning,
        cost="alu", source="CUDA C++ Programming Guide, size and alignment of device accesses",
    )  # fmt: skip
