"""cumsum, cummax (src, dst, dim, reverse): running sums and maxima along one axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tilelab.errors import TileNotSupported, TileValueError
from tilelab.ir import Region, Scope, Stmt, const_int
from tilelab.ir.builder import current
from tilelab.tile.context import LowerContext
from tilelab.tile.op import Env, TileOp, lowering, reads, writes
from tilelab.tile.operands import as_region, axis_of, here, shape_text
from tilelab.tile.ops.scan_lower import scan_tile

ON_CHIP = (Scope.SHARED, Scope.FRAGMENT)


def cumsum(
    src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, annotations: Any = None
) -> Scan:
    """`dst[..., i, ...] = sum(src[..., :i + 1, ...])` along `dim`; in place without `dst`.

    `src`, `dst`: shared buffers or fragments, whole or a region. `reverse` sums from the end.
    16-bit floats are added up in float32. Raises TileValueError (TL1523) for an axis or a shape
    that does not fit, TileNotSupported (TL1524) for other memory.
    """
    del annotations  # hints of the peer change no result
    return _scan("sum", src, dst, dim, reverse)


def cummax(
    src: Any, dst: Any = None, dim: int = 0, reverse: bool = False, annotations: Any = None
) -> Scan:
    """`dst[..., i, ...] = max(src[..., :i + 1, ...])` along `dim`. See `cumsum`."""
    del annotations
    return _scan("max", src, dst, dim, reverse)


def _scan(kind: str, src: Any, dst: Any, dim: int, reverse: bool) -> Scan:
    source = as_region(src, "src")
    target = source if dst is None else as_region(dst, "dst")
    axis = axis_of(dim, source, f"the tile of {source.buffer.name}", "TL1523")
    op = Scan(source, target, kind, axis, bool(reverse), loc=here())
    op.check()
    current().emit(op, anywhere=True)
    return op


@dataclass(frozen=True, eq=False)
class Scan(TileOp):
    """`dst = running combination of src along axis`."""

    op_name: ClassVar[str] = "scan"

    src: Region = reads()
    dst: Region = writes()
    kind: str = "sum"
    axis: int = 0
    reverse: bool = False

    def check(self) -> None:
        for region, name in ((self.src, "src"), (self.dst, "dst")):
            if region.buffer.scope not in ON_CHIP:
                raise TileNotSupported(
                    f"{name} = {region.buffer.name} of a scan lives in "
                    f"{region.buffer.scope.value} memory",
                    code="TL1524",
                    loc=self.loc,
                    hint="copy it to a shared buffer or a fragment first",
                )
        shapes = [[const_int(e) for e in r.tile_shape] for r in (self.src, self.dst)]
        if shapes[0] != shapes[1] or None in shapes[0]:
            raise TileValueError(
                f"a scan of {self.src.buffer.name} ({shape_text(self.src.tile_shape)}) into "
                f"{self.dst.buffer.name} ({shape_text(self.dst.tile_shape)})",
                code="TL1523",
                loc=self.loc,
                hint="both sides have one shape of constant extents",
            )

    def label(self) -> str:
        return f"cum{self.kind} {self.src.buffer.name} -> {self.dst.buffer.name}"

    def reference(self, env: Env) -> None:
        run = {"sum": np.add, "max": np.maximum}[self.kind]
        value = env.get(self.src)
        value = np.flip(value, self.axis) if self.reverse else value
        result = run.accumulate(value, axis=self.axis)
        env.put(self.dst, np.flip(result, self.axis) if self.reverse else result)


@lowering(Scan)
def _lines(op: Scan, ctx: LowerContext) -> Iterable[Stmt]:
    """Along each line of the axis: a warp 32 elements at a time, or a thread one by one."""
    return scan_tile(ctx, op)
