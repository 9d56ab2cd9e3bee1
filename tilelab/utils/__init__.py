"""Helpers for programs that compare and make tensors (TileLang's `tilelang.utils`)."""

from tilelab.calls import answer_all
from tilelab.utils.tensor import (
    KernelParam,
    TensorSupplyType,
    get_tensor_supply,
    map_torch_type,
    torch_assert_close,
)

__all__ = [
    "KernelParam",
    "TensorSupplyType",
    "get_tensor_supply",
    "map_torch_type",
    "torch_assert_close",
]
answer_all(globals(), [name for name in __all__ if name.islower()], "utils")
