"""What CUDA text of the program's own may take as given, as under nvcc.

Hides which names of the host's headers NVRTC lacks; types are those that kernels here use.
"""

from __future__ import annotations

import re

_TYPES = {
    "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int",
    "ulong": "unsigned long", "int8_t": "signed char", "uint8_t": "unsigned char",
    "int16_t": "short", "uint16_t": "unsigned short", "int32_t": "int",
    "uint32_t": "unsigned int", "int64_t": "long long", "uint64_t": "unsigned long long",
    "intptr_t": "long long", "uintptr_t": "unsigned long long", "half_t": "half",
    "bfloat16_t": "__nv_bfloat16",
}  # fmt: skip
_LIMITS = {
    "SCHAR_MAX": "127", "UCHAR_MAX": "255", "SHRT_MAX": "32767", "SHRT_MIN": "(-32768)",
    "USHRT_MAX": "65535", "INT_MAX": "2147483647", "INT_MIN": "(-2147483647 - 1)",
    "UINT_MAX": "4294967295u", "LLONG_MAX": "9223372036854775807LL",
    "LLONG_MIN": "(-9223372036854775807LL - 1)", "ULLONG_MAX": "18446744073709551615ULL",
}  # fmt: skip
_FIXED = {
    "INT8_MAX": "127", "INT8_MIN": "(-128)", "UINT8_MAX": "255", "INT16_MAX": "32767",
    "INT16_MIN": "(-32768)", "UINT16_MAX": "65535", "INT32_MAX": "2147483647",
    "INT32_MIN": "(-2147483647 - 1)", "UINT32_MAX": "4294967295u",
    "INT64_MAX": "9223372036854775807LL", "INT64_MIN": "(-9223372036854775807LL - 1)",
    "UINT64_MAX": "18446744073709551615ULL",
}  # fmt: skip
_FLOATS = {
    "FLT_MAX": "3.402823466e+38f", "FLT_MIN": "1.175494351e-38f", "FLT_EPSILON": "1.192092896e-7f",
    "DBL_MAX": "1.7976931348623157e+308", "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
}  # fmt: skip
_MATHS = {
    "INFINITY": "__int_as_float(0x7f800000)", "NAN": "__int_as_float(0x7fffffff)",
    "M_PI": "3.14159265358979323846", "M_E": "2.7182818284590452354",
    "M_LOG2E": "1.4426950408889634074", "M_LN2": "0.69314718055994530942",
}  # fmt: skip
# Not of the host's: what TileLang's own headers add.
_MARKS = {"TL_DEVICE": "__device__ __forceinline__"}
_CUDA_HEADERS = {
    "cuda_fp16.h": r"(__)?half(2|_t|_raw)?|__h\w+|__(float|int|short|double|low|high)\w*half\w*",
    "cuda_bf16.h": r"(__)?nv_bfloat16\w*|bfloat16_t|__\w*bfloat16\w*",
    "cuda_fp8.h": r"__nv_fp8\w*|__nv_cvt_\w*fp8\w*",
    "math_constants.h": r"CUDART_\w+",
}


def _define(name: str, value: str) -> str:
    return f"#ifndef {name}\n#define {name} {value}\n#endif"


_CONSTANTS = {**_LIMITS, **_FIXED, **_FLOATS, **_MATHS, **_MARKS}
_LINES = {
    **{name: f"typedef {spelling} {name};" for name, spelling in _TYPES.items()},
    **{name: _define(name, value) for name, value in _CONSTANTS.items()},
}


def headers_for(text: str) -> set[str]:
    """CUDA's headers of the number formats and constants that `text` names."""
    return {h for h, words in _CUDA_HEADERS.items() if re.search(rf"\b({words})\b", text)}


def declarations(text: str) -> list[str]:
    """Declarations of the host's names that `text` uses, each of one line or more."""
    words = set(re.findall(r"\w+", text))
    return [lines for name, lines in _LINES.items() if name in words]


def _header(*names: str) -> str:
    return "\n".join(_LINES[name] for name in names) + "\n"


_WIDTHS = [name for name in _TYPES if name.endswith("_t") and name not in ("half_t", "bfloat16_t")]
_FIXED_WIDTH = _header(*_WIDTHS, *_FIXED)
HOST_HEADERS: dict[str, str] = {
    "stdint.h": _FIXED_WIDTH, "cstdint": _FIXED_WIDTH,
    "limits.h": _header(*_LIMITS), "climits": _header(*_LIMITS),
    "float.h": _header(*_FLOATS), "cfloat": _header(*_FLOATS),
    "math.h": _header(*_MATHS), "cmath": _header(*_MATHS),
    **dict.fromkeys(
        ("assert.h", "cassert", "stddef.h", "cstddef", "stdio.h", "cstdio", "stdlib.h", "cstdlib",
         "string.h", "cstring", "type_traits", "utility"), "",
    ),
}  # fmt: skip
"""Host headers by name, as far as device code uses them; what the empty ones declare, NVRTC knows
by itself."""
