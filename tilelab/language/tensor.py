"""Types of parameters: T.Tensor, T.StridedTensor, T.Ref, and the outputs T.empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelab.calls import answers
from tilelab.dtypes import INT64, as_dtype
from tilelab.errors import TileTypeError
from tilelab.frontend import (
    REF,
    PointerParam,
    PointerType,
    TensorType,
    as_dims,
    open_kernel,
    plain_dtype,
    pointed,
    session,
)
from tilelab.ir import Buffer, Expr, Scope
from tilelab.language.views import view

Ref = REF
DEFAULT_DTYPE = "float32"


class TensorProxy:
    """`T.Tensor((M, K), dtype)`, `T.Tensor[[M, K], dtype]`, or `T.Tensor[M, K, dtype]`."""

    declares_tensor = True

    @answers("T.Tensor")
    def __call__(
        self, shape: Any = None, dtype: Any = DEFAULT_DTYPE, data: Any = None,
        scope: str | None = None, **unused: Any,
    ) -> Any:  # fmt: skip
        """A row-major tensor type; with `data=A.data`, A's elements under another shape. Of type
        T.ptr it is a table of addresses, passed as an int64 tensor. `scope` can only be "global".
        TileTypeError (TL1426) for other arguments of the peer's buffers."""
        _no_extras("T.Tensor", unused)
        _only_global("T.Tensor", scope)
        if shape is None:
            raise _no_shape("T.Tensor")
        if data is not None:
            return view(data, shape, dtype)
        if isinstance(dtype, PointerProxy | PointerType):
            return TensorType(as_dims(shape, "a tensor"), INT64)
        return TensorType(as_dims(shape, "a tensor"), plain_dtype(dtype))

    def __getitem__(self, key: Any) -> TensorType:
        parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(parts[0], tuple | list):
            return self(*parts)
        if len(parts) > 1 and _is_dtype(parts[-1]):  # T.Tensor[n, T.float16]
            return self(parts[:-1], parts[-1])
        return self(parts)


def _is_dtype(value: Any) -> bool:
    """Whether the last subscript is an element type and no extent."""
    if isinstance(value, int | Expr | Buffer):
        return False
    try:
        as_dtype(value)
    except TileTypeError:
        return False
    return True


class StridedTensorProxy:
    """`T.StridedTensor((M, K), (s, 1), dtype)`, or subscripted; strides count elements."""

    declares_tensor = True

    @answers("T.StridedTensor")
    def __call__(
        self, shape: Any, strides: Any, dtype: Any = DEFAULT_DTYPE, scope: str | None = None,
        **unused: Any,
    ) -> TensorType:  # fmt: skip
        """A tensor type with explicit strides. TileTypeError (TL1426) when ranks differ."""
        _no_extras("T.StridedTensor", unused)
        _only_global("T.StridedTensor", scope)
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


def _only_global(what: str, scope: str | None) -> None:
    _no_extras(what, {} if scope in (None, "global") else {"scope": scope})


# What the peer's buffers have beside shape and type, and what leaves them as they are.
_PLAIN: dict[str, tuple[Any, ...]] = {
    "data": (None,), "strides": (None, [], ()), "elem_offset": (None, 0), "align": (None, 0, -1),
    "offset_factor": (None, 0), "buffer_type": ("", "default"), "axis_separators": (None, [], ()),
    "scope": (None, "global"),
}  # fmt: skip


def _no_extras(what: str, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name not in _PLAIN or not any(value is p or value == p for p in _PLAIN[name]):
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


def SharedBuffer(
    shape: Any, dtype: Any = DEFAULT_DTYPE, data: Any = None, strides: Any = None, **more: Any
) -> BufferNote:
    """A note on a macro's parameter: a buffer in shared memory."""
    return _note("shared", shape, dtype, {"data": data, "strides": strides, **more})


def FragmentBuffer(
    shape: Any, dtype: Any = DEFAULT_DTYPE, data: Any = None, strides: Any = None, **more: Any
) -> BufferNote:
    """A note on a macro's parameter: a tile in registers."""
    return _note("fragment", shape, dtype, {"data": data, "strides": strides, **more})


def LocalBuffer(
    shape: Any, dtype: Any = DEFAULT_DTYPE, data: Any = None, strides: Any = None, **more: Any
) -> BufferNote:
    """A note on a macro's parameter: an array of each thread."""
    return _note("local", shape, dtype, {"data": data, "strides": strides, **more})


def _note(scope: str, shape: Any, dtype: Any, more: dict[str, Any]) -> BufferNote:
    unknown = sorted(set(more) - set(_PLAIN))
    if unknown:
        raise TileTypeError(
            f"a note on a buffer does not take {unknown[0]!r}", code="TL1426",
            hint="give a shape and a dtype",
        )  # fmt: skip
    return BufferNote(scope, shape, dtype)


class PointerProxy:
    """`A: T.ptr`: a tensor parameter whose shape the body gives with T.make_tensor."""

    @answers("T.ptr")
    def __call__(
        self, dtype: Any = None, storage_scope: str = "global", *, is_size_var: bool = False
    ) -> PointerType:
        """The type of such a parameter; `dtype` is T.make_tensor's business, and `is_size_var`
        a promise that nothing here relies on."""
        if storage_scope != "global":
            raise TileTypeError(
                f"T.ptr does not point into {storage_scope!r} memory", code="TL1426",
                hint="parameters are global tensors",
            )  # fmt: skip
        return PointerType()


ptr = PointerProxy()
handle = PointerProxy()  # what T.match_buffer binds


def make_tensor(ptr: Any, shape: Any, dtype: Any = DEFAULT_DTYPE, strides: Any = None) -> Buffer:
    """The tensor that a T.ptr parameter points to: `A = T.make_tensor(A, (M, K), "float16")`,
    before the kernel. The call passes a tensor of that shape.

    In a kernel, the tensor whose address stands in a table, `A = T.make_tensor(A_ptrs[e], (M, K),
    "float16")`: the shape is constant, the tensor begins at a multiple of 16 bytes, and tensors
    that the kernel writes share memory with none. `strides` count elements. Copies of its tiles
    are cp.async or loads, never TMA. Raises TileTypeError, TileValueError or TileNotSupported
    (TL1770) for what is no such address, shape or element type.
    """
    steps = None if strides is None else as_dims(strides, "a stride")
    kind = TensorType(as_dims(shape, "a tensor"), plain_dtype(dtype), steps)
    if steps is not None and len(steps) != len(kind.shape):
        raise TileTypeError(
            f"T.make_tensor gets {len(kind.shape)} extents and {len(steps)} strides",
            code="TL1426", loc=session().loc(), hint="give one stride, in elements, for each axis",
        )  # fmt: skip
    if isinstance(ptr, PointerParam):
        return session().declare(ptr.name, kind)
    if not isinstance(ptr, Expr) or ptr.dtype.bits != 64 or not ptr.dtype.is_int:
        said = f"a value of {ptr.dtype}" if isinstance(ptr, Expr) else type(ptr).__name__
        raise TileTypeError(
            f"T.make_tensor needs a parameter of type T.ptr or an address, not {said}",
            code="TL1770", loc=session().loc(),
            hint="annotate the parameter as `A: T.ptr`, or a table as `ptrs: T.Tensor([n], T.ptr)`",
        )  # fmt: skip
    return pointed(session(), open_kernel("T.make_tensor of an address"), ptr, kind)


def match_buffer(
    param: Any, shape: Any, dtype: Any = DEFAULT_DTYPE, data: Any = None, strides: Any = None,
    **more: Any,
) -> Buffer:  # fmt: skip
    """The tensor that a T.handle parameter stands for: `A = T.match_buffer(a, (M, N), "float16")`,
    before the kernel; as T.make_tensor. TileTypeError (TL1426) for what is no such parameter."""
    if not isinstance(param, PointerParam) or data is not None or more:
        raise TileTypeError(
            "T.match_buffer gets a parameter of type T.handle, a shape, a dtype and strides",
            code="TL1426", loc=session().loc(), hint="annotate the parameter as `a: T.handle`",
        )  # fmt: skip
    return make_tensor(param, shape, dtype, strides)


def make_tensor_from_addr(
    addr: Any, shape: Any, dtype: Any = DEFAULT_DTYPE, strides: Any = None,
    storage_scope: str = "global",
) -> Buffer:  # fmt: skip
    """As `make_tensor` of an address in a table. TileTypeError (TL1426) for other memory than
    the device's."""
    _only_global("T.make_tensor_from_addr", storage_scope)
    return make_tensor(addr, shape, dtype, strides)


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
