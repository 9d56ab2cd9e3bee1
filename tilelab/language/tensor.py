"""Types of parameters: T.Tensor, T.StridedTensor, T.Ref, and the outputs T.empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelab.errors import TileTypeError
from tilelab.frontend import (
    REF,
    PointerParam,
    PointerType,
    TensorType,
    as_dims,
    plain_dtype,
    session,
)
from tilelab.ir import Buffer, Scope
from tilelab.language.views import view

Ref = REF
DEFAULT_DTYPE = "float32"


class TensorProxy:
    """`T.Tensor((M, K), dtype)`, `T.Tensor[[M, K], dtype]`, `T.Tensor[M, N]` (float32)."""

    declares_tensor = True

    def __call__(
        self, shape: Any = None, dtype: Any = DEFAULT_DTYPE, data: Any = None, **unused: Any
    ) -> Any:
        """A row-major tensor type; with `data=A.data`, A's elements under another shape."""
        _no_extras("T.Tensor", unused, ("scope",))
        if shape is None:
            raise _no_shape("T.Tensor")
        if data is not None:
            return view(data, shape, dtype)
        return TensorType(as_dims(shape, "a tensor"), plain_dtype(dtype))

    def __getitem__(self, key: Any) -> TensorType:
        parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(parts[0], tuple | list):
            return self(*parts)
        return self(parts)


class StridedTensorProxy:
    """`T.StridedTensor((M, K), (s, 1), dtype)`, or subscripted; strides count elements."""

    declares_tensor = True

    def __call__(
        self, shape: Any, strides: Any, dtype: Any = DEFAULT_DTYPE, **unused: Any
    ) -> TensorType:
        """A tensor type with explicit strides. TileTypeError (TL1426) when ranks differ."""
        _no_extras("T.StridedTensor", unused, ("data", "scope"))
        dims, steps = as_dims(shape, "a tensor"), as_dims(strides, "a stride")
        if len(dims) != len(steps):
            raise TileTypeError(
                f"T.StridedTensor has {len(dims)} extents and {len(steps)} strides",
                code="TL1426",
                hint="give one stride, in elements, for each axis",
            )
        return TensorType(dims, plain_dtype(dtype), steps)

    def __getitem__(self, key: Any) -> TensorType:
        return self(*key)


def _no_extras(what: str, given: dict[str, Any], allowed: tuple[str, ...]) -> None:
    for name, value in given.items():
        if name not in allowed or value is not None:
            raise TileTypeError(
                f"{what} does not take {name}={value!r}", code="TL1426",
                hint="parameters are global tensors given by shape and dtype",
            )  # fmt: skip


def _no_shape(what: str) -> TileTypeError:
    hint = f"write {what}((M, N), dtype)"
    return TileTypeError(f"{what} needs a shape", code="TL1426", hint=hint)


Tensor = TensorProxy()
StridedTensor = StridedTensorProxy()


@dataclass(frozen=True)
class BufferNote:
    """What `T.SharedBuffer((N,), dtype)` says of a macro's parameter: for the reader."""

    scope: str
    shape: Any
    dtype: Any


def SharedBuffer(shape: Any, dtype: Any = DEFAULT_DTYPE) -> BufferNote:
    """A note on a macro's parameter: a buffer in shared memory."""
    return BufferNote("shared", shape, dtype)


def FragmentBuffer(shape: Any, dtype: Any = DEFAULT_DTYPE) -> BufferNote:
    """A note on a macro's parameter: a tile in registers."""
    return BufferNote("fragment", shape, dtype)


def LocalBuffer(shape: Any, dtype: Any = DEFAULT_DTYPE) -> BufferNote:
    """A note on a macro's parameter: an array of each thread."""
    return BufferNote("local", shape, dtype)


class PointerProxy:
    """`A: T.ptr`: a tensor parameter whose shape the body gives with T.make_tensor."""

    def __call__(self, dtype: Any = None, storage_scope: str = "global") -> PointerType:
        """The type of such a parameter; `dtype` is T.make_tensor's business."""
        if storage_scope != "global":
            raise TileTypeError(
                f"T.ptr does not point into {storage_scope!r} memory", code="TL1426",
                hint="parameters are global tensors",
            )  # fmt: skip
        return PointerType()


ptr = PointerProxy()


def make_tensor(ptr: Any, shape: Any, dtype: Any = DEFAULT_DTYPE, strides: Any = None) -> Buffer:
    """The tensor that a T.ptr parameter points to: `A = T.make_tensor(A, (M, K), "float16")`,
    before the kernel. The call passes a tensor of that shape."""
    if not isinstance(ptr, PointerParam):
        raise TileTypeError(
            f"T.make_tensor needs a parameter of type T.ptr, not {type(ptr).__name__}",
            code="TL1770", loc=session().loc(),
            hint="annotate the parameter as `A: T.ptr`; addresses in tensors are not supported",
        )  # fmt: skip
    steps = None if strides is None else as_dims(strides, "a stride")
    kind = TensorType(as_dims(shape, "a tensor"), plain_dtype(dtype), steps)
    return session().declare(ptr.name, kind)


def empty(*shape: Any, dtype: Any = DEFAULT_DTYPE) -> Buffer:
    """An output tensor: the call allocates it, and the function returns it.

    `T.empty((M, N), dtype)` or `T.empty(M, N, dtype=...)`. Every one must be returned.
    """
    trace = session()
    extents: Any = shape
    if shape and isinstance(shape[0], tuple | list):
        extents = shape[0]  # pyright: ignore[reportUnknownVariableType]
        if len(shape) == 2:
            dtype = shape[1]
    elif shape and not hasattr(shape[-1], "bounds") and not isinstance(shape[-1], int):
        extents, dtype = shape[:-1], shape[-1]
    name, loc = trace.hinted("out"), trace.loc()
    buffer = Buffer(name, as_dims(extents, "a tensor"), plain_dtype(dtype), Scope.GLOBAL, loc=loc)
    trace.empties.append(buffer)
    return buffer
