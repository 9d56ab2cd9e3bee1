"""Where the elements of packed buffers lie: several in one byte, the first in the lowest bits.

Hides the arithmetic between elements and bytes, for tensors of the call as for shared memory.
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.dtypes import UINT8
from tilelab.errors import TileValueError
from tilelab.ir.buffer import Buffer, Scope
from tilelab.ir.build import as_expr
from tilelab.ir.expr import Expr, const_int
from tilelab.ir.stmt import Function, ScalarParam, TensorParam


def is_packed(buffer: Buffer) -> bool:
    """Whether several elements of `buffer` share a byte: those of tensors and shared memory do,
    those in registers have a byte each."""
    return buffer.dtype.per_byte > 1 and buffer.scope.is_memory


def packed(buffer: Buffer) -> Buffer:
    """The bytes of a packed buffer: uint8, and along the last axis one for several elements.

    TileValueError (TL1541) for a tensor whose rows do not fill their bytes or whose last axis is
    strided. Rows of shared memory are rounded up to whole bytes.
    """
    count = buffer.dtype.per_byte
    last = buffer.shape[-1] if buffer.shape else 1
    known = const_int(last)
    strides = buffer.strides
    if buffer.scope is Scope.GLOBAL:
        _check_rows(buffer, known, count)
    size = last // count if known is None else -(-known // count)
    if strides is not None:
        strides = (*(_bytes(s, count) for s in strides[:-1]), 1)
    shape = (*buffer.shape[:-1], size)
    return replace(buffer, shape=shape, dtype=UINT8, strides=strides, origin=buffer, layout=None)


def _bytes(stride: Expr | int, count: int) -> Expr | int:
    known = const_int(stride)
    return as_expr(stride) // count if known is None else known // count


def _check_rows(buffer: Buffer, last: int | None, count: int) -> None:
    hint = f"make the last axis a multiple of {count} elements long, with stride 1"
    if last is not None and last % count:
        raise TileValueError(
            f"rows of {buffer.name} are {last} elements of {buffer.dtype} long, and {count} of "
            "them share a byte", code="TL1541", loc=buffer.loc, hint=hint,
        )  # fmt: skip
    strides = buffer.strides or (1,)
    known = [const_int(s) for s in strides]
    if known[-1] != 1 or any(s is not None and s % count for s in known[:-1]):
        raise TileValueError(
            f"{buffer.name} has the strides {tuple(known)} in elements of {buffer.dtype}, of which "
            f"{count} share a byte", code="TL1541", loc=buffer.loc, hint=hint,
        )  # fmt: skip


def packed_params(function: Function) -> tuple[TensorParam | ScalarParam, ...]:
    """The parameters as a call passes them: packed tensors as their bytes."""
    return tuple(
        TensorParam(packed(p.buffer)) if isinstance(p, TensorParam) and is_packed(p.buffer) else p
        for p in function.params
    )
