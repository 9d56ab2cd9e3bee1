"""What a tensor argument is, for torch tensors and numpy arrays alike, without importing torch.

Hides the differences between the two, and how bfloat16 and float8 cross from torch to numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab.dtypes import DType, as_dtype
from tilelab.ir import Buffer

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TensorFacts:
    """The facts that checks need. Strides count elements; `device` is "cpu" or "cuda:0"."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    pointer: int


def is_tensor(value: object) -> bool:
    """Whether `value` is a torch tensor or a numpy array."""
    return isinstance(value, np.ndarray) or hasattr(value, "data_ptr")


def is_dense(value: Any) -> bool:
    """Whether a tensor's elements lie in one array: a sparse torch tensor's do not."""
    return str(getattr(value, "layout", "torch.strided")) == "torch.strided"


def facts_of(value: Any) -> TensorFacts:
    """The facts of a torch tensor or numpy array."""
    if isinstance(value, np.ndarray):
        return _facts_of_array(value)  # pyright: ignore[reportUnknownArgumentType]
    name = str(value.dtype).rsplit(".", 1)[-1]
    shape, strides = tuple(map(int, value.shape)), tuple(map(int, value.stride()))
    return TensorFacts(name, shape, strides, str(value.device), int(value.data_ptr()))


def _facts_of_array(array: Array) -> TensorFacts:
    size = max(array.itemsize, 1)
    strides = tuple(s // size for s in array.strides)
    pointer = int(array.__array_interface__["data"][0])
    return TensorFacts(str(array.dtype), array.shape, strides, "cpu", pointer)


def numpy_view(value: Any, dtype: DType) -> Array:
    """The same memory as a numpy array of `dtype.numpy`: writes go to the tensor."""
    if isinstance(value, np.ndarray):
        return _viewed(value, dtype)  # pyright: ignore[reportUnknownArgumentType]
    import torch

    tensor = value.detach()
    if str(tensor.dtype) == _PAIRS_OF_FP4:
        tensor = tensor.view(torch.uint8)
    if dtype.name not in _WITHOUT_NUMPY:
        return tensor.numpy().view(dtype.numpy)
    carrier = {1: torch.uint8, 2: torch.int16}[dtype.bytes]
    return tensor.view(carrier).numpy().view(dtype.numpy)


def _viewed(array: Array, dtype: DType) -> Array:
    return array.view(dtype.numpy)


_WITHOUT_NUMPY = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"})


_PAIRS_OF_FP4 = "torch.float4_e2m1fn_x2"


def torch_carrier(dtype: DType) -> Any:
    """The torch type whose elements are the bytes of a packed type."""
    import torch

    if dtype.is_float:
        return getattr(torch, _PAIRS_OF_FP4.rpartition(".")[2], torch.int8)
    return torch.int8 if dtype.kind == "int" else torch.uint8


def stored_dtype(buffer: Buffer) -> DType:
    """The element type that a buffer was declared with, where it stands for packed elements."""
    origin = buffer.origin
    return buffer.dtype if origin is None or origin.dtype.per_byte == 1 else origin.dtype


def torch_dtype(buffer: Buffer) -> Any:
    """The torch type of a tensor parameter (or workspace)."""
    import torch

    stored = stored_dtype(buffer)
    return torch_carrier(stored) if stored.per_byte > 1 else getattr(torch, stored.name)


def allocator(like: Any | None, device: str) -> Callable[[tuple[int, ...], Buffer], Any]:
    """A function (shape, parameter) -> uninitialised tensor on `device`; numpy when the inputs are
    numpy arrays."""
    if isinstance(like, np.ndarray):
        return lambda shape, buffer: np.empty(shape, buffer.dtype.numpy)
    import torch

    return lambda shape, buffer: torch.empty(shape, dtype=torch_dtype(buffer), device=device)


_SAME_BYTES = frozenset({("bool", "int8"), ("bool", "uint8"), ("int8", "bool"), ("uint8", "bool")})


def same_dtype(buffer: Buffer, got: str) -> bool:
    """Whether a tensor of type `got` may be passed for a parameter. bool and 8-bit integers share
    their bytes and are taken for one another, as TileLang does; packed elements come in bytes."""
    stored, expected = stored_dtype(buffer), buffer.dtype
    if stored.per_byte > 1:
        return got in ("int8", "uint8") or (stored.is_float and f"torch.{got}" == _PAIRS_OF_FP4)
    if expected.name == got or (expected.name, got) in _SAME_BYTES:
        return True
    try:
        return as_dtype(got).name == expected.name
    except TypeError:
        return False


def torch_name(dtype: DType) -> str:
    """How a user writes the torch type: "torch.float16"."""
    return f"torch.{'uint8' if dtype.per_byte > 1 else dtype.name}"
