"""Made-up inputs for a kernel: random tensors that fit its signature.

Hides the ranges that suit each element type.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from tilelab.dtypes import DType
from tilelab.errors import TileValueError
from tilelab.ir import Buffer, ScalarParam
from tilelab.runtime.arguments import Signature
from tilelab.runtime.tensors import stored_dtype, torch_dtype


class TensorSupplyType(enum.Enum):
    """How inputs are filled. Uniform: floats in -1 to 1. Normal: mean -1, deviation 1 (TileLang's
    choice: results do not cancel to nothing). Randn: mean 0, deviation 1. Auto: floats uniform in
    -1 to 1, small integers, random bools. Element types without fractions take small integers."""

    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


def make_inputs(
    signature: Signature,
    supply: TensorSupplyType,
    device: str,
    sizes: Mapping[Any, int] | None = None,
) -> list[Any]:
    """One tensor for each input, on `device`. `sizes` gives dynamic sizes by name (or variable);
    runtime numbers of the call are looked up there too."""
    named = {str(getattr(k, "name", k)): v for k, v in (sizes or {}).items()}
    numbers: list[int] = []
    for variable in signature.variables:
        if variable.name not in named:
            raise TileValueError(
                f"{signature.name} has the size {variable.name}, which is open until it is called",
                code="TL1644",
                hint=f'pass input_tensors=[...], or dynamic_symbolic_constraints='
                f'{{"{variable.name}": 1024}}',
            )  # fmt: skip
        numbers.append(named[variable.name])
    made: list[Any] = []
    for position in signature.inputs:
        param = signature.params[position]
        if isinstance(param, ScalarParam):
            made.append(named[param.name])
            continue
        if position in signature.untouched.tables:
            raise TileValueError(
                f"{param.name} of {signature.name} is a table of addresses, which cannot be made "
                "up", code="TL1644", hint="pass input_tensors=[...]",
            )  # fmt: skip
        shape = signature.shape_of(position, numbers)
        tensor = fill(shape, param.buffer, supply, device)
        strides = signature.strides_of(position, numbers)
        made.append(tensor if param.buffer.strides is None else _restride(tensor, strides))
    return made


def _restride(tensor: Any, strides: tuple[int, ...]) -> Any:
    """The same values in memory with the declared strides."""
    import torch

    placed = torch.empty_strided(
        tuple(tensor.shape), strides, dtype=tensor.dtype, device=tensor.device
    )
    return placed.copy_(tensor)


def fill(shape: tuple[int, ...], buffer: Buffer, supply: TensorSupplyType, device: str) -> Any:
    """A tensor for a parameter, of random (or constant) values that its elements can have; packed
    ones take all codes."""
    import torch

    kinds, dtype = TensorSupplyType, buffer.dtype
    target = torch_dtype(buffer)
    if stored_dtype(buffer).per_byte > 1:
        high = 1 if supply is kinds.Zero else 256
        return torch.randint(0, high, shape, device=device).to(torch.uint8).view(target)
    if supply in (kinds.Zero, kinds.One):
        return torch.full(shape, float(supply is kinds.One), device=device).to(target)
    if supply is kinds.Auto:
        supply = kinds.Uniform if dtype.is_float and dtype.bits >= 16 else kinds.Integer
    if supply is kinds.Integer or not dtype.is_float:
        low, high = _integer_range(dtype)
        return torch.randint(low, high, shape, device=device).to(target)
    if supply is kinds.Uniform:
        return (torch.rand(shape, device=device) * 2 - 1).to(target)
    mean = -1.0 if supply is kinds.Normal else 0.0
    return (torch.randn(shape, device=device) + mean).to(target)


def _integer_range(dtype: DType) -> tuple[int, int]:
    if dtype.is_bool:
        return 0, 2
    return (0, 3) if dtype.kind == "uint" else (-2, 3)
