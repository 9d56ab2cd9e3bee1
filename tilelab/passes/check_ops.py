"""check-ops: every tile op's own check, and rules about the whole kernel."""

from __future__ import annotations

from tilelab.ir import Function, walk
from tilelab.passes.base import PassContext, tile_pass
from tilelab.tile.op import TileOp


@tile_pass("check-ops", makes=("checked",))
def check_ops(function: Function, ctx: PassContext) -> Function:
    """Check operand shapes, scopes and element types of every tile op."""
    for node in walk(function):
        if isinstance(node, TileOp):
            node.check()
    return function
