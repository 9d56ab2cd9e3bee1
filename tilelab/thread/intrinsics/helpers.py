"""Helper texts that several instructions share, and how a set of helpers is put in order.

Hides which helper needs which. A text is CUDA inside `namespace tl`, except `prelude` (types).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilelab.thread.intrinsic import Intrinsic

INLINE = "__device__ __forceinline__"


@dataclass(frozen=True)
class Helper:
    """A CUDA text without an instruction of its own, and the helpers it calls."""

    name: str
    text: str
    requires: tuple[str, ...] = ()


HELPERS: dict[str, Helper] = {}

PRELUDE = "typedef unsigned int u32;\ntypedef unsigned long long u64;"
"""Types every helper uses; stands before `namespace tl`."""

TENSOR_MAP = "struct alignas(64) TensorMap { char bytes[128]; };"
"""The TMA descriptor type, opaque to device code; stands before `namespace tl`."""


def helper(name: str, text: str, requires: tuple[str, ...] = ()) -> str:
    """Register a shared helper text and return its name."""
    HELPERS[name] = Helper(name, text.strip(), requires)
    return name


SMEM_ADDR = helper(
    "smem_addr",
    f"""
{INLINE} u32 smem_addr(const void* p) {{ return (u32)__cvta_generic_to_shared(p); }}
""",
)
SHUFFLED = helper(
    "shuffled",
    f"""
// a value as shuffles take it, and back: 8-bit types have no shuffle of their own
template <typename T> {INLINE} auto to_shuffle(T value) {{
  if constexpr (sizeof(T) == 1) {{
    unsigned char byte;
    memcpy(&byte, &value, 1);
    return (u32)byte;
  }} else {{
    return value;
  }}
}}
template <typename T, typename W> {INLINE} T from_shuffle(W word) {{
  if constexpr (sizeof(T) == 1) {{
    unsigned char byte = (unsigned char)word;
    T value;
    memcpy(&value, &byte, 1);
    return value;
  }} else {{
    return word;
  }}
}}
""",
)
LANE_ID = helper(
    "lane_id",
    f"""
{INLINE} u32 lane_id() {{
  u32 lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}}
""",
)

EXP2_APPROX = helper(
    "exp2_approx",
    f"""
{INLINE} float exp2_approx(float x) {{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}}
""",
)
"""2**x to 2 units in the last place, subnormal operands and results as 0 (PTX ISA, ex2)."""


def _small_int(name: str, type_name: str, view: str, bits: str) -> str:
    """Integer n as a float: `first + n` are the bits of 2^p + n - lo, `zero` those of 2^p - lo."""
    return helper(
        name,
        f"""
// n exactly, without a slow conversion: FIRST + n are the bits of 2^p + n - lo, ZERO of 2^p - lo
template <int FIRST, int ZERO> {INLINE} {type_name} {name}(int n) {{
  return {view}({bits}(FIRST + n)) - {view}({bits}(ZERO));
}}
""",
    )


E4M3_TO_HALF = helper(
    "e4m3_to_half",
    f"""
// exactly, where the chip has no conversion: half has the same bits, and 8 more in its exponent
{INLINE} half e4m3_to_half(__nv_fp8_e4m3 x) {{
  u32 bits = x.__x & 0x7f;
  half value = __ushort_as_half((unsigned short)((x.__x & 0x80) << 8 | bits << 7));
  return bits == 0x7f ? __ushort_as_half(0x7fff) : __hmul(value, __ushort_as_half(0x5c00));
}}
""",
)
E5M2_TO_HALF = helper(
    "e5m2_to_half",
    f"""
// where the chip has no conversion: half begins with these bits
{INLINE} half e5m2_to_half(__nv_fp8_e5m2 x) {{
  return __ushort_as_half((unsigned short)(x.__x << 8));
}}
""",
)

SMALL_INT_TO_HALF = _small_int("small_int_to_half", "half", "__ushort_as_half", "(unsigned short)")
SMALL_INT_TO_BFLOAT16 = _small_int(
    "small_int_to_bfloat16", "__nv_bfloat16", "__ushort_as_bfloat16", "(unsigned short)"
)
SMALL_INT_TO_FLOAT = _small_int("small_int_to_float", "float", "__int_as_float", "(int)")


def helper_texts(used: Iterable[Intrinsic], names: Iterable[str] = ()) -> tuple[str, ...]:
    """The texts that `used` instructions and helpers by name need, callees first, each once."""
    texts: dict[str, None] = {}

    def add(name: str) -> None:
        entry = HELPERS[name]
        for other in entry.requires:
            add(other)
        texts.setdefault(entry.text)

    for name in names:
        add(name)
    for intrinsic in used:
        for name in intrinsic.requires:
            add(name)
        if intrinsic.helper:
            texts.setdefault(intrinsic.helper.strip())
    return tuple(texts)
