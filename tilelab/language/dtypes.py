"""Element types as names of the language: `T.float16`, `T.dtype("float16")`, `T.float32(x)`."""

from __future__ import annotations

import dataclasses
from typing import Any

from tilelab.calls import answers
from tilelab.dtypes import DTYPES, DType, as_dtype
from tilelab.frontend import Variable
from tilelab.ir import Expr, cast
from tilelab.runtime.tensors import torch_carrier


class dtype(DType, str):
    """An element type that can be called to convert a value: `T.float32(A[i])`.

    `T.dtype("float16")` takes any spelling. Equal to the names, torch types and numpy types that
    mean the same. It is a string too (its name), as programs pass it where one is wanted.
    """

    @answers("T.dtype")
    def __new__(cls, value: Any) -> dtype:
        return str.__new__(cls, as_dtype(value).name)

    def __init__(self, value: Any) -> None:
        base = as_dtype(value)
        for field in dataclasses.fields(DType):
            object.__setattr__(self, field.name, getattr(base, field.name))

    @answers("a type of T")
    def __call__(self, value: Any = None) -> Expr:
        """`value` as an expression of this type; a new variable (see T.let) without one."""
        if value is None:
            return Variable(self.name[0], self)
        return cast(value, DTYPES[self.name])

    def __eq__(self, other: object) -> bool:
        result = super().__eq__(other)
        if result is not NotImplemented:
            return result
        module = type(other).__module__.partition(".")[0]
        if module not in ("torch", "numpy", "ml_dtypes") and not isinstance(other, type):
            return NotImplemented
        spelled = getattr(other, "__name__", None) or str(getattr(other, "name", other))
        return spelled.rpartition(".")[2] == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.bytes

    @property
    def lanes(self) -> int:
        """Elements in one value; always 1."""
        return 1

    def as_torch(self) -> Any:
        """The torch type of this name; of sub-byte types the one whose elements are the bytes."""
        import torch

        if self.per_byte > 1:
            return torch_carrier(DTYPES[self.name])
        return getattr(torch, self.name)


_ALIASES = {
    "float": "float32", "half": "float16", "double": "float64", "int": "int32", "uint": "uint32",
    "long": "int64", "short": "int16", "float8_e4m3": "float8_e4m3fn",
    "tfloat32": "float32",
}  # fmt: skip
NAMES: dict[str, dtype] = {name: dtype(name) for name in DTYPES}
NAMES.update({alias: NAMES[name] for alias, name in _ALIASES.items()})
