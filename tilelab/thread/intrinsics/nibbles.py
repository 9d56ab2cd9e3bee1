"""Four-bit integers out of bytes, as 16-bit floats, two values an instruction.

The bits of 2**p + n are those of 2**p with n in the low bits of its mantissa: one permutation and
one logical operation put a byte's two numbers there, and 2**p is subtracted from both at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.dtypes import DTYPES
from tilelab.thread.conversions import converted
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE

MANTISSA = {"float16": 10, "bfloat16": 7}
"""Types that numbers of 4 bits are unpacked to, and the bits of their mantissas."""
MOST_OFFSET = 64
"""Offsets up to this keep every sum exact in both types."""
_PAIRS = {"float16": ("__half2", 0x6400), "bfloat16": ("__nv_bfloat162", 0x4300)}
_WORDS = {2: "unsigned char", 4: "unsigned short", 8: "u32"}


@recorded
def unpack_nibbles(
    count: int, dtype_name: str, flipped: int, offset: int, high_first: bool
) -> Intrinsic:
    """`count` (2, 4 or 8) numbers n of 4 bits in as many half bytes, aligned to their size, as
    floats of value `(n ^ flipped) + offset`. The first of a byte lies in its low bits, or
    (`high_first`) its high ones. ValueError for other counts and types, and where a value may not
    be exact."""
    sizes = count in _WORDS and 0 <= flipped < 16 and abs(offset) <= MOST_OFFSET
    if not sizes or dtype_name not in _PAIRS:
        raise ValueError(f"unpack_nibbles({count}, {dtype_name!r}, {flipped}, {offset})")
    dtype = DTYPES[dtype_name]
    pair, one = _PAIRS[dtype_name]
    magic = (one ^ flipped) * 0x10001
    zero = int(
        converted(np.array([(1 << MANTISSA[dtype_name]) - offset]), dtype).view(np.uint16)[0]
    )
    name = f"unpack_{count}_nibbles_{pair.strip('_')}" + ("_high_first" if high_first else "")
    first, second = ("high", "low") if high_first else ("low", "high")
    text = f"""
// (n ^ x) + c for the numbers n of 4 bits: MAGIC are the bits of 2^p ^ x, ZERO those of 2^p - c
template <u32 MAGIC, u32 ZERO> {INLINE} void {name}(void* out, const void* bytes) {{
  const u32 low = *(const {_WORDS[count]}*)bytes, high = low >> 4, zero = ZERO;
  #pragma unroll
  for (int k = 0; k < {count // 2}; ++k) {{
    const u32 both = __byte_perm({first}, {second}, 0x4400 + 0x1111 * k);
    u32 pair;  // (both & 0x000f000f) ^ MAGIC, which the assembler would do in two steps
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(pair) : "r"(both), "n"(0x000f000f), "r"(MAGIC));
    (({pair}*)out)[k] = __hsub2(*(const {pair}*)&pair, *(const {pair}*)&zero);
  }}
}}"""

    def meaning(m: Machine, dst: Any, src: Any) -> None:
        found = m.load(src, count // 2).astype(np.int64) & 0xFF
        halves = (found >> 4, found & 15) if high_first else (found & 15, found >> 4)
        numbers: Array = np.stack(halves, 1).reshape(count, *found.shape[1:])
        m.store(dst, converted((numbers ^ flipped) + offset, dtype))

    return Intrinsic(
        f"{name}_{flipped}_{offset}".replace("-", "m"),
        (Param("dst", "writes"), Param("src", "reads")),
        f"tl::{name}<{magic:#x}, {zero * 0x10001:#x}>({{dst}}, {{src}})", text, meaning,
        source="PTX ISA, prmt and lop3", includes=(dtype.header,),
    )  # fmt: skip
