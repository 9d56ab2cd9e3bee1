"""Number formats of the tensor cores: element types, what they multiply, how products add up.

Source: PTX ISA, "Warp Level Matrix Instructions", "Asynchronous Warpgroup Level Matrix
Instructions", and the section on alternate floating-point formats.

Meaning of the arithmetic. Products are exact. float32 operands are taken as tf32: the hardware
reads the upper 19 bits of the register or of the word in shared memory and ignores the rest, so
they are truncated toward zero, not rounded. Sums of one instruction are formed as float32 (float64
for f64) and added to the accumulator; a float16 accumulator is rounded once for each instruction.
Integer sums wrap at 32 bits. The order of the additions inside one instruction, and the fraction
bits that the chip keeps while it adds (about 14 for 8-bit floats), are not specified by the manual
and not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilelab.dtypes import DType
from tilelab.target import Feature
from tilelab.thread.intrinsic import Array


@dataclass(frozen=True)
class OperandType:
    """A PTX operand type: `cuda` is the type of the tile, `mma` what mma.sync needs for it."""

    cuda: str
    bits: int
    mma: Feature
    header: str = ""

    @property
    def k(self) -> int:
        """Steps of k in one instruction: 32 bytes of each operand (float64: 4 elements)."""
        return 4 if self.bits == 64 else 256 // self.bits

    @property
    def transposes(self) -> bool:
        """Whether instructions also take this type stored with M or N contiguous."""
        return self.bits == 16


OPERANDS = {
    "f16": OperandType("half", 16, Feature.MMA_SYNC, "cuda_fp16.h"),
    "bf16": OperandType("__nv_bfloat16", 16, Feature.BF16, "cuda_bf16.h"),
    "tf32": OperandType("float", 32, Feature.TF32_MMA),
    "e4m3": OperandType("__nv_fp8_e4m3", 8, Feature.FP8_MMA, "cuda_fp8.h"),
    "e5m2": OperandType("__nv_fp8_e5m2", 8, Feature.FP8_MMA, "cuda_fp8.h"),
    "s8": OperandType("signed char", 8, Feature.INT8_MMA),
    "u8": OperandType("unsigned char", 8, Feature.INT8_MMA),
    "f64": OperandType("double", 64, Feature.F64_MMA),
}
"""PTX operand type -> its properties."""


@dataclass(frozen=True)
class AccumulatorType:
    """A PTX accumulator type; `per_register` elements share the register that `asm` names."""

    cuda: str
    constraint: str
    per_register: int = 1
    header: str = ""

    def outputs(self, count: int, name: str = "d") -> list[str]:
        """The asm operands of `count` accumulators at the pointer `name` (packed: at `packed`)."""
        place = name if self.per_register == 1 else "packed"
        return [f'"+{self.constraint}"({place}[{i}])' for i in range(count // self.per_register)]

    @property
    def packing(self) -> str:
        """The declaration that `outputs` relies on."""
        return "" if self.per_register == 1 else "  u32* packed = (u32*)d;\n"


ACCUMULATORS = {
    "f32": AccumulatorType("float", "f"),
    "f16": AccumulatorType("half", "r", 2, "cuda_fp16.h"),
    "s32": AccumulatorType("int", "r"),
    "f64": AccumulatorType("double", "d"),
}
"""PTX accumulator type -> its properties."""

_OPERAND_OF = {
    "float16": "f16", "bfloat16": "bf16", "float32": "tf32", "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2", "int8": "s8", "uint8": "u8", "float64": "f64",
}  # fmt: skip
_ACCUMULATOR_OF = {"float32": "f32", "float16": "f16", "int32": "s32", "float64": "f64"}


def operand_type(dtype: DType) -> str:
    """How PTX spells the operand type of tiles of `dtype`; KeyError when it has none."""
    return _OPERAND_OF[dtype.name]


def accumulator_type(dtype: DType) -> str:
    """How PTX spells accumulators of `dtype`; KeyError when it has none."""
    return _ACCUMULATOR_OF[dtype.name]


_TF32_MASK = np.uint32(0xFFFFE000)  # sign, 8 exponent and 10 fraction bits


def multiplicand(values: Array) -> Array:
    """Operand values in a type in which numpy's products and sums of them are exact enough:
    float32 for floats (float32 itself as tf32), float64 for float64 and for integers."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind in "iu" or size == 8:
        return values.astype(np.float64)
    if values.dtype == np.float32:
        return (np.ascontiguousarray(values).view(np.uint32) & _TF32_MASK).view(np.float32)
    if values.dtype.name == "bfloat16":
        wide = np.ascontiguousarray(values).view(np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32)
    return values.astype(np.float32)


def accumulated(old: Array | None, product: Array, dtype: np.dtype[np.generic]) -> Array:
    """The accumulators of type `dtype` after a product was added (None: they start at 0)."""
    if dtype.kind == "i":
        whole = product.astype(np.int64).astype(dtype)  # wraps
        return whole if old is None else old + whole
    if old is not None:
        product = old.astype(product.dtype, copy=False) + product
    return product.astype(dtype, copy=False)
