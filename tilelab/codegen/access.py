"""Where an element lies: logical indices to an element offset from the buffer's pointer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilelab.dtypes import INT32, INT64, DType
from tilelab.ir import Binary, Buffer, Const, Expr, ScalarBuffer, Scope, as_expr, cast, const_int

_INT32_ELEMENTS = 1 << 31


def is_register(buffer: Buffer) -> bool:
    """Whether the buffer is one mutable scalar that the text names without an index."""
    return isinstance(buffer, ScalarBuffer) and buffer.scope is Scope.LOCAL


def offset_of(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """Element offset as an expression; 64 bits wide where the tensor may need them.

    Sums of products are not multiplied out: `(by * 128 + i) * 1024 + j` tells a reader which part
    is the row.
    """
    if buffer.layout is not None and buffer.scope is Scope.SHARED:
        return as_expr(buffer.layout.offset_of(tuple(indices)))
    wide = buffer.scope is Scope.GLOBAL and _needs_64_bits(buffer)
    dtype = INT64 if wide else INT32
    terms = [_term(i, s, dtype) for i, s in zip(indices, _strides(buffer, dtype), strict=True)]
    terms = [t for t in terms if not (isinstance(t, Const) and t.value == 0)]
    total = terms[0] if terms else Const(0, INT32)
    for term in terms[1:]:
        total = Binary("+", total, term, dtype)
    return total


def _needs_64_bits(buffer: Buffer) -> bool:
    sizes = [const_int(s) for s in buffer.shape]
    strides = [const_int(s) for s in buffer.effective_strides()]
    if None in sizes or None in strides:
        return True
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))  # type: ignore[operator]
    return max(reach, math.prod(sizes)) >= _INT32_ELEMENTS  # type: ignore[type-var]


def _term(index: Expr, stride: Expr, dtype: DType) -> Expr:
    known = const_int(stride)
    index = cast(index, dtype) if index.dtype.bits < dtype.bits else index
    if known == 1 or isinstance(index, Const) or known == 0:
        return index * stride
    return Binary("*", index, stride, dtype)


def _strides(buffer: Buffer, dtype: DType) -> list[Expr]:
    """Row-major unless given; products of sizes are computed in `dtype`."""
    if buffer.strides is not None:
        return [cast(as_expr(s), dtype) for s in buffer.strides]
    strides: list[Expr] = []
    step = as_expr(1, dtype)
    for size in reversed(buffer.shape):
        strides.insert(0, step)
        step = step * cast(as_expr(size), dtype)
    return strides
