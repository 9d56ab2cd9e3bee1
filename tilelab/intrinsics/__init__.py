"""`tilelang.intrinsics` (and `tilelang.cuda.intrinsics`): where mma.sync wants a tile's rows.

The emitters of single matrix instructions say that they are not here.
"""

from __future__ import annotations

from typing import Any

from tilelab.absent import absent
from tilelab.dtypes import as_dtype
from tilelab.errors import TileValueError
from tilelab.layout import SharedLayout, row_major, swizzled

_CHUNK = 16  # bytes that a swizzle moves together
_LINE = 128  # bytes of the 32 banks
_SWIZZLES = (128, 64, 32)


def get_swizzle_layout(
    row_idx: Any, col_idx: Any, row_size: int, dtype: Any, swizzle_bytes: int | None = None
) -> tuple[Any, Any]:
    """Where element (row, column) of a tile of `row_size` columns lies: the row, and the column
    with its 16-byte chunk exchanged by the row's place in the pattern.

    `swizzle_bytes`: 32, 64 or 128, by default the widest that fits a row. Indices are numbers,
    arrays or values of a kernel. TileValueError (TL1301) for rows that no swizzle fits.
    """
    bits = as_dtype(dtype).bits
    width = _widest(row_size, bits) if swizzle_bytes is None else swizzle_bytes
    if width not in _SWIZZLES or row_size * bits % (width * 8):
        raise TileValueError(
            f"rows of {row_size} elements of {dtype} have no swizzle of {swizzle_bytes} bytes"
            if swizzle_bytes is not None
            else f"rows of {row_size} elements of {dtype} have no swizzle",
            code="TL1301", hint="use rows of a multiple of 32, 64 or 128 bytes",
        )  # fmt: skip
    count = _CHUNK * 8 // bits
    chunk, inside = col_idx // count, col_idx % count
    turned = chunk ^ (row_idx // (_LINE // width) % (width // _CHUNK))
    return row_idx, turned * count + inside


def make_mma_swizzle_layout(shared_buf: Any, is_smooth: bool = False) -> SharedLayout:
    """The swizzle that ldmatrix reads a shared buffer through without bank conflicts, for
    T.annotate_layout; plain rows where `is_smooth`, or where rows are no multiple of 64 bytes."""
    shape, bits = tuple(shared_buf.static_shape), shared_buf.dtype.bits
    if is_smooth or len(shape) < 2 or shape[-1] * bits % (64 * 8):
        return row_major(shape, bits)
    width = _widest(shape[-1], bits)
    assert width is not None
    return swizzled(shape, bits, width)


def get_mma_micro_size(dtype: Any) -> tuple[int, int, int]:
    """Rows, columns and depth of one mma.sync of this type: 32 bytes deep."""
    return 16, 16, 256 // as_dtype(dtype).bits


def _widest(row_size: int, bits: int) -> int | None:
    return next((n for n in _SWIZZLES if row_size * bits % (n * 8) == 0), None)


_WHY = "programs here do not write single matrix instructions"
_HINT = "use T.gemm on tiles in shared memory or registers"
TensorCoreIntrinEmitter = absent("TensorCoreIntrinEmitter", _WHY, _HINT)
TensorCoreIntrinEmitterWithLadderTransform = absent(
    "TensorCoreIntrinEmitterWithLadderTransform", _WHY, _HINT
)
INT4TensorCoreIntrinEmitter = absent("INT4TensorCoreIntrinEmitter", _WHY, _HINT)
SparseTensorCoreIntrinEmitter = absent("SparseTensorCoreIntrinEmitter", _WHY, _HINT)
