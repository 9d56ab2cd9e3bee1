"""set_max_nreg: registers that warp groups give up, or take over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tilelab.ir import Stmt
from tilelab.target import Feature
from tilelab.thread.intrinsics.warp import warpgroup_reg_alloc, warpgroup_reg_dealloc
from tilelab.thread.nodes import Invoke
from tilelab.tile.context import LowerContext
from tilelab.tile.op import TileOp, lowering


@dataclass(frozen=True, eq=False)
class RegisterBudget(TileOp):
    """Let the warp groups that run this have `count` registers a thread."""

    op_name: ClassVar[str] = "register budget"
    team: ClassVar[str] = "each"

    count: int
    raises: bool

    def label(self) -> str:
        return f"{self.count} registers"


@lowering(RegisterBudget, needs={Feature.SETMAXNREG})
def _setmaxnreg(op: RegisterBudget, ctx: LowerContext) -> Iterable[Stmt]:
    """One instruction of each warp group."""
    record = warpgroup_reg_alloc if op.raises else warpgroup_reg_dealloc
    yield Invoke(record(op.count), (), loc=op.loc)


@lowering(RegisterBudget)
def _not_here(op: RegisterBudget, ctx: LowerContext) -> Iterable[Stmt]:
    """Without the instruction, registers are fixed at the launch: nothing to do."""
    ctx.note(f"{ctx.target} cannot move registers between warp groups: left as launched", op)
    return ()
