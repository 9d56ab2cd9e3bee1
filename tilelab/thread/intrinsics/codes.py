"""CUDA text of types that have none of their own there: sub-byte integers and coded floats.

Hides the arithmetic of the formats (OCP Microscaling Formats 1.0; PTX ISA, cvt).
"""

from __future__ import annotations

from tilelab.dtypes import DType
from tilelab.thread.intrinsics.helpers import INLINE, helper

_SIGNED_BITS = helper(
    "signed_bits",
    f"""
// the lowest BITS bits as a signed number
template <int BITS> {INLINE} signed char signed_bits(long long n) {{
  return (signed char)((int)((unsigned)n << (32 - BITS)) >> (32 - BITS));
}}
""",
)
_LOW_BITS = helper(
    "low_bits",
    f"""
// the lowest BITS bits of an integer
template <int BITS> {INLINE} unsigned char low_bits(long long n) {{
  return (unsigned char)(n & ((1 << BITS) - 1));
}}
""",
)
_FP4_TO_FLOAT = helper(
    "fp4_to_float",
    f"""
// e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign
{INLINE} float fp4_to_float(unsigned code) {{
  unsigned m = code & 7;
  float size = m < 2 ? 0.5f * m : __uint_as_float((((m >> 1) + 126) << 23) | ((m & 1) << 22));
  return code & 8 ? -size : size;
}}
""",
)
_FLOAT_TO_FP4 = helper(
    "float_to_fp4",
    f"""
// the nearest of the eight sizes, of two equally near ones the even code; NaN is 6
template <typename T> {INLINE} unsigned char float_to_fp4(T x) {{
  T a = x < 0 ? -x : x;
  unsigned m = (a > T(0.25)) + (a >= T(0.75)) + (a > T(1.25)) + (a >= T(1.75)) + (a > T(2.5)) +
               (a >= T(3.5)) + (a > T(5));
  return x != x ? 7 : (unsigned char)(m | (signbit(x) ? 8u : 0u));
}}
""",
)
_E8M0_TO_FLOAT = helper(
    "e8m0_to_float",
    f"""
// 2^(code - 127); 255 is NaN
{INLINE} float e8m0_to_float(unsigned code) {{
  return __uint_as_float(code == 0 ? 0x00400000u : code == 255 ? 0x7fffffffu : code << 23);
}}
""",
)
_FLOAT_TO_E8M0 = helper(
    "float_to_e8m0",
    f"""
// the power of two at or above the size, at most 2^127
{INLINE} unsigned char float_to_e8m0(float x) {{
  unsigned bits = __float_as_uint(x) & 0x7fffffffu;
  unsigned code = bits >> 23, rest = bits & 0x7fffffu;
  code += code > 0 ? rest > 0 : rest > 0x400000u;
  return bits > 0x7f800000u ? 255 : (unsigned char)(code > 254 ? 254 : code);
}}
// of a double: a float that lies above the double has the same power of two above it
{INLINE} unsigned char float_to_e8m0(double x) {{
  return float_to_e8m0(__double2float_ru(fabs(x)));
}}
""",
)
_FLOAT_TO_E5M2 = helper(
    "float_to_e5m2",
    f"""
// e5m2 has infinities: what is nearer to 2^16 than to the largest number becomes one
template <typename T> {INLINE} __nv_fp8_e5m2 float_to_e5m2(T x) {{
  __nv_fp8_e5m2 made(x);
  if (fabs(x) >= 61440) made.__x = x < 0 ? 0xfc : 0x7c;
  return made;
}}
""",
)
TO_FLOAT = {"float4_e2m1fn": _FP4_TO_FLOAT, "float8_e8m0fnu": _E8M0_TO_FLOAT}
"""The helper that makes a float of a code, by type."""
FROM_FLOAT = {
    "float4_e2m1fn": _FLOAT_TO_FP4, "float8_e8m0fnu": _FLOAT_TO_E8M0,
    "float8_e5m2": _FLOAT_TO_E5M2,
}  # fmt: skip
"""The helper that makes a value of a float or double, by type; other types have constructors."""
TYPE_HELPERS: dict[str, tuple[str, ...]] = {
    **{name: (TO_FLOAT[name], FROM_FLOAT[name], _LOW_BITS) for name in TO_FLOAT},
    "float8_e5m2": (_FLOAT_TO_E5M2,),
    **{name: (_SIGNED_BITS,) for name in ("int2", "int4")},
    **{name: (_LOW_BITS,) for name in ("uint2", "uint4")},
}
"""What text that names a type may call."""


def low_bits(text: str, dtype: DType) -> str:
    """The text of the value whose code an integer's lowest bits are."""
    name = _SIGNED_BITS if dtype.kind == "int" else _LOW_BITS
    return f"tl::{name}<{dtype.bits}>({text})"
