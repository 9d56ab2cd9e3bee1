"""The same bytes under another name: T.reshape and T.view."""

from __future__ import annotations

from typing import Any

from tilelab.dtypes import DType
from tilelab.errors import TileNotSupported, TileTypeError, TileValueError
from tilelab.frontend import as_dims, plain_dtype, session
from tilelab.ir import Buffer, Expr, Scope, as_expr, const_int
from tilelab.tile.operands import shape_text

Dim = Expr | int


def reshape(src: Buffer, shape: Any) -> Buffer:
    """`src` under another shape with as many elements; no data moves.

    `src`: a shared buffer, a fragment, a local array or a contiguous tensor. Elements keep their
    row-major order. Raises as `view`.
    """
    return view(src, shape)


def view(src: Buffer, shape: Any = None, dtype: Any = None, strides: Any = None) -> Buffer:
    """`src` under another shape or element type of the same size in bytes; no data moves.

    `T.view(words, (64,), "uint8")` sees 16 32-bit words as 64 bytes. Raises TileTypeError
    (TL1531) for what is no buffer, TileValueError (TL1532) for sizes that differ, and
    TileNotSupported (TL1533) for strides, strided tensors, and fragments of another element size.
    """
    if not isinstance(src, Buffer) or src.scope is Scope.BARRIER:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TileTypeError(
            f"a view is made of a whole buffer, not of {getattr(src, 'name', repr(src))}",
            code="TL1531",
            hint="a parameter's shape is one argument, in brackets: T.Tensor((M, N), dtype)"
            if isinstance(src, int | str) or isinstance(dtype, str)
            else "pass a buffer; slices and barriers have no views",
        )
    kind = src.dtype if dtype is None else plain_dtype(dtype)
    extents = src.shape if shape is None else as_dims(shape, "a view")
    _check_supported(src, kind, strides)
    _check_sizes(src, extents, kind)
    trace = session()
    made = Buffer(
        trace.hinted("view"), extents, kind, src.scope, loc=trace.loc(), alias_of=src.storage
    )
    trace.add_view(made)
    return made


def _check_supported(src: Buffer, kind: DType, strides: Any) -> None:
    if strides is not None or src.strides is not None:
        what = "strides of a view" if strides is not None else f"a view of the strided {src.name}"
        raise TileNotSupported(
            f"{what}: elements of a view keep their row-major order",
            code="TL1533",
            hint="view a contiguous buffer, and index it as the strides would",
        )
    packed = src.scope is Scope.LOCAL and max(kind.per_byte, src.dtype.per_byte) > 1
    if (src.scope is Scope.FRAGMENT or packed) and kind.bits != src.dtype.bits:
        raise TileNotSupported(
            f"the {src.scope.value} buffer {src.name} holds {src.dtype}, and {kind} has another "
            "size: its elements would be split between registers",
            code="TL1533",
            hint="copy it to a shared buffer and view that one",
        )


def _check_sizes(src: Buffer, extents: tuple[Dim, ...], kind: DType) -> None:
    have, want = _product(src.shape) * src.dtype.bits, _product(extents) * kind.bits
    if as_expr(have).key == as_expr(want).key:
        return
    sizes = [
        f"{shape_text(s)} {d}" + ("" if (n := const_int(b)) is None else f" ({n // 8} bytes)")
        for s, d, b in ((src.shape, src.dtype, have), (extents, kind, want))
    ]
    raise TileValueError(
        f"a view of {src.name} ({sizes[0]}) as {sizes[1]} does not have its size",
        code="TL1532",
        hint="give the view a shape with as many bytes",
    )


def _product(shape: tuple[Dim, ...]) -> Dim:
    total: Dim = 1
    for extent in shape:
        total = total * extent
    return total
