"""Printing from the device, and checks that end the kernel.

The simulator keeps what is printed in its report, in the words that printf would use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilelab.dtypes import FLOAT32, INT32, UINT32, DType
from tilelab.thread.intrinsic import Array, Intrinsic, Machine, Param, recorded
from tilelab.thread.intrinsics.helpers import INLINE

_SOURCE = "CUDA C++ Programming Guide, formatted output"
_WHERE = " (block %u %u %u, thread %u %u %u)"
_COORDINATES = tuple(f"{index}.{axis}" for index in ("blockIdx", "threadIdx") for axis in "xyz")


@dataclass(frozen=True)
class Printable:
    """The type in which values of a type are handed to printf, and their conversion there."""

    dtype: DType
    conversion: str


def printable(dtype: DType) -> Printable:
    """How values of `dtype` are printed: floats with the digits that tell any two apart."""
    if dtype.is_float:
        wide = dtype if dtype.bits >= 32 else FLOAT32
        return Printable(wide, "%.17g" if dtype.bits == 64 else "%.9g")
    signed = dtype.kind != "uint"
    if dtype.bits == 64:
        return Printable(dtype, "%lld" if signed else "%llu")
    return Printable(INT32, "%d") if signed else Printable(UINT32, "%u")


@recorded
def printf(text: str, values: int) -> Intrinsic:
    """Print `text` (printf's format, with `values` conversions), who prints it, and a newline."""
    names = [f"v{i}" for i in range(values)]
    plain = re.sub(r"%ll([du])", r"%\1", text)  # Python's integers have one size
    arguments = [f'"{_quoted(text + _WHERE)}\\n"', *(f"{{{n}}}" for n in names), *_COORDINATES]

    def meaning(m: Machine, *given: Array) -> None:
        m.say(plain, given)

    return Intrinsic(
        f"printf_{values}", tuple(Param(n, "value") for n in names),
        f"printf({', '.join(arguments)})", "", meaning, cost="special", source=_SOURCE,
    )  # fmt: skip


def _quoted(text: str) -> str:
    """As a C string inside a template of `str.format`."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return text.replace("{", "{{").replace("}", "}}")


@recorded
def device_assert(text: str) -> Intrinsic:
    """End the kernel with the message `text` unless the condition holds."""
    helper = f"""
{INLINE} void device_assert(bool ok, const char* text) {{
  if (ok) return;
  printf("%s (block %u %u %u, thread %u %u %u)\\n", text, blockIdx.x, blockIdx.y, blockIdx.z,
         threadIdx.x, threadIdx.y, threadIdx.z);
  __trap();
}}"""

    def meaning(m: Machine, ok: Array) -> None:
        m.require(ok, text)

    return Intrinsic(
        "device_assert", (Param("ok", "value"),),
        f'tl::device_assert({{ok}}, "{_quoted(text)}")', helper, meaning, source=_SOURCE,
    )  # fmt: skip


def _assumed(m: Machine, ok: Array) -> None:
    m.require(ok, "an assumption of T.assume does not hold")


ASSUME = Intrinsic(
    "assume", (Param("ok", "value"),), "__builtin_assume({ok})", "", _assumed, cost="free",
    source="CUDA C++ Programming Guide, __builtin_assume",
)  # fmt: skip
"""A condition that the chip's compiler may rely on."""
