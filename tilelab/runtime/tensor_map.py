"""TMA descriptors: the rules a tensor must keep, and the driver's 128-byte encoding.

The rules are checked before the driver is asked, so an error names the tensor and both values.
Hides cuTensorMapEncodeTiled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from tilelab.errors import TileNotSupported, TileValueError
from tilelab.runtime.driver import Driver
from tilelab.thread.nodes import TensorMap

NUM_BYTES, ALIGNMENT = 128, 64

# CUtensorMapDataType, CUtensorMapSwizzle (cuda.h).
DATA_TYPES = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6,
    "float32": 7, "float64": 8, "bfloat16": 9, "int8": 0, "int16": 1, "bool": 0,
    "float8_e4m3fn": 0, "float8_e5m2": 0,
}  # fmt: skip
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_NO_INTERLEAVE, _PROMOTE_256_BYTES, _FILL_ZERO = 0, 3, 0


@dataclass(frozen=True)
class Geometry:
    """The numbers of one descriptor, innermost dimension first; strides in bytes, without the
    innermost (which is one element)."""

    pointer: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


def geometry(
    spec: TensorMap, pointer: int, shape: Sequence[int], strides: Sequence[int]
) -> Geometry:
    """The descriptor of `spec` for a tensor at `pointer` (shape and strides in elements), with
    every rule of the hardware checked. TileValueError (TL1635) names what breaks one."""
    size = spec.tensor.dtype.bytes
    dims = tuple(shape[axis] for axis in spec.axes)
    steps = [strides[axis] * size for axis in spec.axes]
    outer: list[int] = []
    end = dims[0] * size
    for extent, step in zip(dims[1:], steps[1:], strict=True):
        # An axis of one element is never stepped over: any legal stride will do.
        outer.append(step if extent != 1 else end + -end % 16)
        end = outer[-1] * extent
    _check_tensor(spec, pointer, dims, steps[0] if dims[0] > 1 else size, outer)
    _check_box(spec)
    return Geometry(pointer, dims, tuple(outer), spec.box)


def _error(spec: TensorMap, problem: str, hint: str) -> TileValueError:
    return TileValueError(
        f"tensor {spec.tensor.root.name} cannot be read or written by TMA: {problem}",
        code="TL1635", hint=hint,
    )  # fmt: skip


def _check_tensor(
    spec: TensorMap, pointer: int, dims: Sequence[int], inner: int, outer: Sequence[int]
) -> None:
    if not 1 <= len(dims) <= 5:
        raise _error(spec, f"it has {len(dims)} axes, TMA takes 1 to 5", "merge axes")
    if pointer % 16:
        raise _error(
            spec, f"its address {pointer:#x} is {pointer % 16} bytes past a multiple of 16",
            "pass a tensor that starts at a 16-byte boundary, for example x.clone()",
        )  # fmt: skip
    size = spec.tensor.dtype.bytes
    if inner != size:
        raise _error(
            spec, f"neighbours on its innermost axis lie {inner} bytes apart, not {size}",
            "pass x.contiguous()",
        )  # fmt: skip
    for axis, step in zip(spec.axes[1:], outer, strict=True):
        if step % 16 or not 0 < step < 1 << 40:
            raise _error(
                spec, f"the stride of axis {axis} is {step} bytes, not a multiple of 16",
                f"make rows a multiple of {16 // size or 1} elements long (pad the tensor), "
                "or switch TMA off for this kernel",
            )  # fmt: skip
    if any(not 0 < d <= 1 << 32 for d in dims):
        raise _error(spec, f"its extents {tuple(dims)} are not all within 1 to 2^32", "split it")


def _check_box(spec: TensorMap) -> None:
    size, hint = spec.tensor.dtype.bytes, "choose a smaller tile"
    if len(spec.box) != len(spec.axes):
        raise _error(spec, f"its box {spec.box} has not one extent for each axis", hint)
    if any(not 0 < b <= 256 for b in spec.box):
        raise _error(spec, f"its box {spec.box} has an extent outside 1 to 256", hint)
    row = spec.box[0] * size
    if row % 16:
        raise _error(spec, f"a row of its box is {row} bytes, not a multiple of 16", hint)
    if spec.swizzle and row > spec.swizzle:
        problem = f"a row of its box is {row} bytes, the swizzle covers {spec.swizzle}"
        raise _error(spec, problem, "split the box")


def empty_geometry(spec: TensorMap, pointer: int) -> Geometry:
    """A descriptor that stands for a tensor without elements: one zero element at `pointer`
    (16 zeroed bytes), and zeros past it."""
    rank = len(spec.axes)
    return Geometry(pointer, (1,) * rank, (16,) * (rank - 1), spec.box)


class Encoded:
    """A descriptor in memory of its own, at the alignment that the driver asks for."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(NUM_BYTES + ALIGNMENT)
        start = ctypes.addressof(self._memory)
        self.address = start + -start % ALIGNMENT

    def __bytes__(self) -> bytes:
        return ctypes.string_at(self.address, NUM_BYTES)


def encode(driver: Driver, spec: TensorMap, numbers: Geometry) -> Encoded:
    """The 128 bytes that a kernel takes as `__grid_constant__` parameter."""
    data_type = DATA_TYPES.get(spec.tensor.dtype.name)
    if data_type is None:
        raise TileNotSupported(f"TMA has no element type {spec.tensor.dtype}", code="TL1635")
    rank = len(numbers.dims)
    u64, u32 = ctypes.c_uint64, ctypes.c_uint32
    encoded = Encoded()
    status = driver.encode_tensor_map(
        ctypes.c_void_p(encoded.address), data_type, rank, ctypes.c_void_p(numbers.pointer),
        (u64 * rank)(*numbers.dims), (u64 * max(rank - 1, 1))(*numbers.strides),
        (u32 * rank)(*numbers.box), (u32 * rank)(*((1,) * rank)), _NO_INTERLEAVE,
        SWIZZLES[spec.swizzle], _PROMOTE_256_BYTES, _FILL_ZERO,
    )  # fmt: skip
    if status:
        raise driver.failure(status, f"making the TMA descriptor of {spec.tensor.root.name}")
    return encoded
