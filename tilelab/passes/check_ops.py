"""check-ops: every tile op's own check, and rules about the whole kernel."""

from __future__ import annotations

import warnings

from tilelab.errors import TileWarning
from tilelab.ir import Function, ParallelFor, walk
from tilelab.passes.base import PassContext, tile_pass
from tilelab.passes.check_loops import check_parallel
from tilelab.tile.op import TileOp


@tile_pass("check-ops", makes=("checked",))
def check_ops(function: Function, ctx: PassContext) -> Function:
    """Check operand shapes, scopes and element types of every tile op."""
    for node in walk(function):
        if isinstance(node, ParallelFor):
            check_parallel(node)
        if isinstance(node, TileOp):
            node.check()
            _warn_of_readings(node, ctx)
    return function


def _warn_of_readings(op: TileOp, ctx: PassContext) -> None:
    """Say how a base point was read where TileLang reads it differently."""
    for region in (*op.read_regions(), *op.written_regions()):
        if region.note:
            ctx.note(region.note, op, level="warning")
            place = f" ({op.loc})" if op.loc is not None else ""
            warnings.warn(f"{region.buffer.name}: {region.note}{place}", TileWarning, stacklevel=2)
