"""Sums that stay in parts, one a thread, until they are needed. A pass's op, not the language's.

A row's sum over a tile needs lanes to exchange their parts. Where sums only grow and are scaled by
numbers that a row shares, the parts can do so, and are exchanged once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tilelab.errors import TileInternalError
from tilelab.ir import Buffer, Region, Stmt
from tilelab.layout import equivalent
from tilelab.tile.combine import COMBINES
from tilelab.tile.context import LowerContext
from tilelab.tile.op import Env, TileOp, lowering, updates
from tilelab.tile.ops.reduce_lower import exchange


@dataclass(frozen=True, eq=False)
class JoinParts(TileOp):
    """Elements of `dst`, held in parts as the reductions into `parts_of` leave them, become their
    sums in every thread."""

    op_name: ClassVar[str] = "join_parts"

    dst: Region = updates()
    parts_of: Buffer | None = None

    def label(self) -> str:
        return f"join the parts of {self.dst.buffer.name}"

    def reference(self, env: Env) -> None:
        """Whole tiles have one part of each element: nothing changes."""


@lowering(JoinParts)
def _exchanged(op: JoinParts, ctx: LowerContext) -> Iterable[Stmt]:
    """The exchange between lanes that the reductions left out."""
    parts = op.parts_of
    assert parts is not None
    tile = op.dst.buffer
    same = equivalent(ctx.fragment(parts), ctx.fragment(tile))
    if not same or id(parts) not in ctx.shared.parts:
        raise TileInternalError(
            f"the parts of {tile.name} do not lie as those of {parts.name}",
            loc=op.loc,
            hint="set pass_configs={'tl.defer_sums': False}, and please report the program",
        )
    return exchange(
        ctx, ctx.shared.parts[id(parts)], ctx.placed(tile), COMBINES["sum"].join, op.loc
    )


__all__ = ["JoinParts"]
