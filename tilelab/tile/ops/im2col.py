"""im2col(img, col, ...): gather the patches of a 2-D convolution into the rows of a tile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from tilelab.errors import TileValueError
from tilelab.ir import Expr, Region, Scope, Stmt, Var, as_expr, binary, const_int
from tilelab.ir.builder import current
from tilelab.layout import Fragment
from tilelab.thread.nodes import Ref
from tilelab.tile.context import VECTOR_BYTES, LowerContext
from tilelab.tile.elementwise import both, expand, move_chunks, tile_extents, walk_tile
from tilelab.tile.op import TileOp, lowering, reads, writes
from tilelab.tile.operands import as_region, here, is_whole, shape_text
from tilelab.tile.ops.gather import Gather


def im2col(
    img: Any, col: Any, nhw_step: Any, c_step: Any, kernel: int, stride: int, dilation: int,
    pad: int, eviction_policy: Any = None, annotations: Any = None,
) -> Im2col:  # fmt: skip
    """One tile of the matrix whose product with a flattened filter is a convolution.

    `img`: an N x H x W x C tensor; `col`: a tile of `bm` output pixels (n, oh, ow in this order)
    x `bk` filter inputs (kh, kw, c) in shared memory, the `nhw_step`-th and `c_step`-th of its
    size. Square filters of `kernel` x `kernel`. Elements in the padding, and those past the last
    pixel or input, are 0. Raises TileValueError (TL1518) for operands of other shapes or memory.
    """
    del eviction_policy, annotations  # hints of the peer change no result
    sizes = [const_int(v) for v in (kernel, stride, dilation, pad)]
    op = Im2col(
        as_region(img, "img"), as_region(col, "col"), as_expr(nhw_step), as_expr(c_step),
        *(-1 if s is None else s for s in sizes), loc=here(),
    )  # fmt: skip
    op.check()
    current().emit(op)
    return op


@dataclass(frozen=True, eq=False)
class Im2col(TileOp):
    """`col[p, q] = img[n, oh*stride - pad + kh*dilation, ow*stride - pad + kw*dilation, c]`."""

    op_name: ClassVar[str] = "im2col"

    img: Region = reads()
    col: Region = writes()
    nhw_step: Expr = as_expr(0)
    c_step: Expr = as_expr(0)
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    pad: int = 0

    def check(self) -> None:
        image, tile = self.img.buffer, self.col.buffer
        problem = ""
        if image.scope is not Scope.GLOBAL or image.rank != 4 or not is_whole(self.img):
            problem = f"img = {image.name} is no whole N x H x W x C tensor"
        elif tile.scope is not Scope.SHARED or len(tile_extents(self.col)) != 2:
            shape = shape_text(self.col.tile_shape)
            problem = f"col = {tile.name} ({shape}) is no matrix in shared memory"
        elif min(self.kernel, self.stride, self.dilation) < 1 or self.pad < 0:
            problem = "kernel, stride and dilation must be constants from 1, pad from 0"
        if problem:
            raise TileValueError(
                f"T.im2col: {problem}", code="TL1518", loc=self.loc,
                hint="T.im2col(img, col, pixel_step, input_step, kernel, stride, dilation, pad)",
            )  # fmt: skip

    def label(self) -> str:
        return f"{self.img.buffer.name} -> {self.col.buffer.name}"

    def as_gather(self) -> Gather:
        """The same as copies that may be started before they are needed."""
        extents = tile_extents(self.col)
        vars = tuple(Var(n, lo=0, hi=e - 1) for n, e in zip("pq", extents, strict=True))
        indices, exists = _place(self, *vars)
        return Gather(self.img, self.col, vars, indices, exists, together=True, loc=self.loc)


def _place(op: Im2col, i: Expr, j: Expr) -> tuple[tuple[Expr, ...], Expr]:
    """Indices into the image of element (i, j) of the tile, and whether it is an input at all."""
    _, height, width, channels = op.img.buffer.shape
    rows, cols = tile_extents(op.col)
    reach = op.dilation * (op.kernel - 1) + 1 - 2 * op.pad
    out_h, out_w = ((as_expr(e) - reach) // op.stride + 1 for e in (height, width))
    pixel, entry = op.nhw_step * rows + i, op.c_step * cols + j
    number, rest = pixel // (out_h * out_w), pixel % (out_h * out_w)
    tap = entry // channels
    y = rest // out_w * op.stride + tap // op.kernel * op.dilation - op.pad
    x = rest % out_w * op.stride + tap % op.kernel * op.dilation - op.pad
    exists = binary("<", entry, as_expr(channels) * (op.kernel * op.kernel))
    return (number, y, x, entry % channels), exists


@lowering(Im2col)
def _threads(op: Im2col, ctx: LowerContext) -> Iterable[Stmt]:
    """Threads gather runs of channels, as wide as alignment and the number of channels allow."""
    extents = tile_extents(op.col)
    limit = VECTOR_BYTES // max(op.img.dtype.bytes, op.col.dtype.bytes)
    width = min(ctx.vector_width(r, extents[-1], limit) for r in (op.img, op.col))
    walk = walk_tile(ctx, Fragment.blocked(extents, ctx.num_threads, width), width)
    indices, exists = _place(op, *walk.index)
    load_ok = both(ctx.indices_in_bounds(op.img.buffer, indices), exists)
    source = Ref(op.img.buffer, indices)
    target = Ref(ctx.placed(op.col.buffer), op.col.index(expand(op.col, walk.index)))
    yield from move_chunks(ctx, walk, source, target, load_ok, walk.inside, op.loc)
