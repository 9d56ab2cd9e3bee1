"""Tensors made up by type and shape, and a comparison that allows a share of mismatches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilelab.dtypes import DType, as_dtype
from tilelab.errors import TileValueError
from tilelab.ir import Buffer, Expr, Scope, const_int
from tilelab.profiler import compare
from tilelab.runtime.supply import TensorSupplyType, fill
from tilelab.runtime.tensors import torch_dtype

__all__ = [
    "KernelParam",
    "TensorSupplyType",
    "get_tensor_supply",
    "map_torch_type",
    "torch_assert_close",
]


def _buffer(dtype: Any) -> Buffer:
    """A parameter of an element type, as the maker of inputs asks for it."""
    return Buffer("x", (1,), as_dtype(dtype), Scope.GLOBAL)


@dataclass(frozen=True)
class KernelParam:
    """A parameter of a kernel as a maker of inputs sees it; a number has the shape ()."""

    name: str
    dtype: DType
    shape: tuple[Expr | int, ...]

    def is_scalar(self) -> bool:
        """Whether it is a number."""
        return not self.shape

    def torch_dtype(self) -> Any:
        """The element type as torch names it."""
        return torch_dtype(_buffer(self.dtype))


def map_torch_type(dtype: Any) -> Any:
    """The torch type of any spelling: "float16" -> torch.float16."""
    return torch_dtype(_buffer(as_dtype(dtype)))


def get_tensor_supply(
    supply_type: TensorSupplyType = TensorSupplyType.Auto,
) -> Callable[[Any], Any]:
    """A function that makes a tensor for a parameter (anything with `dtype` and `shape`), on the
    GPU if there is one. TileValueError (TL1644) from it for a size that is open."""

    def supply(param: Any) -> Any:
        import torch

        shape = [const_int(extent) for extent in param.shape]
        if None in shape:
            raise TileValueError(
                f"{getattr(param, 'name', 'a tensor')} has a size that is open until it is called",
                code="TL1644", hint="make this tensor yourself",
            )  # fmt: skip
        device = "cuda" if torch.cuda.is_available() else "cpu"
        sizes = tuple(extent for extent in shape if extent is not None)
        return fill(sizes, _buffer(param.dtype), supply_type, device)

    return supply


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 0.001,
    verbose: bool = False,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    base_name: str = "LHS",
    ref_name: str = "RHS",
) -> bool:
    """True when at most a share `max_mismatched_ratio` of the elements differ by more than
    `atol + rtol * |b|`; AssertionError that shows the first difference otherwise.

    `check_device`, `check_dtype`, `check_layout` and `check_stride` compare these properties too.
    """
    del verbose  # the error always says everything
    wanted = {"device": check_device, "dtype": check_dtype, "layout": check_layout}
    for name, check in wanted.items():
        a, b = getattr(tensor_a, name), getattr(tensor_b, name)
        if check and a != b:
            raise AssertionError(f"{base_name} has {name} {a}, {ref_name} has {b}")
    if check_stride and tensor_a.stride() != tensor_b.stride():
        text = f"strides {tuple(tensor_a.stride())}, {ref_name} has {tuple(tensor_b.stride())}"
        raise AssertionError(f"{base_name} has {text}")
    if not equal_nan and bool(tensor_a.isnan().any() | tensor_b.isnan().any()):
        raise AssertionError(f"{base_name} or {ref_name} holds NaN")
    compare(tensor_a, tensor_b, rtol, atol, max_mismatched_ratio, name=base_name)
    return True
