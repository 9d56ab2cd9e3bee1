"""A gemm by mma.sync taken apart into steps of K: fetch the fragments of one, multiply another.

Made by `software_pipeline`, which lets fragments of a step come while the one before multiplies, on
into the next tile. Two sets of registers take turns. Hides how many registers those are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from tilelab.ir import Buffer, Region, Scope, Stmt, as_expr
from tilelab.target import REGISTERS_BESIDE_TILES
from tilelab.tile.context import LowerContext
from tilelab.tile.op import Fact, Fixed, LayoutContext, TileOp, lowering, reads, updates
from tilelab.tile.ops.gemm import Gemm, GemmWarpPolicy
from tilelab.tile.ops.gemm_mma import Held, WarpTile
from tilelab.tile.ops.gemm_request import plan_of

SETS = 2


@dataclass(frozen=True, eq=False)
class _Step(TileOp):
    """What both kinds share: the gemm's operands, and the registers of A's and B's fragments."""

    a: Region
    b: Region
    c: Region
    held: tuple[Buffer, Buffer]
    step: int
    transpose_a: bool = False
    transpose_b: bool = False
    policy: GemmWarpPolicy = GemmWarpPolicy.AUTO

    @property
    def gemm(self) -> Gemm:
        """The whole gemm that this is a step of."""
        return Gemm(
            self.a, self.b, self.c, self.transpose_a, self.transpose_b, self.policy, loc=self.loc
        )

    def label(self) -> str:
        return f"{self.op_name} {self.step} of {self.c.buffer.name}"

    def layout_rule(self, ctx: LayoutContext) -> Iterable[Fact]:
        for fact in self.gemm.layout_rule(ctx):
            yield replace(fact, key=self) if isinstance(fact, Fixed) else fact

    def sets(self, tile: WarpTile) -> tuple[Held, Held]:
        """The set of registers that this step uses: A's and B's."""
        turn = self.step % SETS
        a, b = (
            Held(buffer, turn * count)
            for buffer, count in zip(self.held, tile.fragments, strict=True)
        )
        return a, b


@dataclass(frozen=True, eq=False)
class FetchStep(_Step):
    """Fragments of a step of K, from shared memory to registers."""

    op_name: ClassVar[str] = "fetch step"

    a: Region = reads()
    b: Region = reads()


@dataclass(frozen=True, eq=False)
class MultiplyStep(_Step):
    """The products of a step of K, whose fragments are in registers."""

    op_name: ClassVar[str] = "multiply step"

    c: Region = updates()


@lowering(FetchStep)
def _fetch(op: FetchStep, ctx: LowerContext) -> Iterable[Stmt]:
    """ldmatrix where the operand allows it."""
    tile = WarpTile(ctx, op.gemm, plan_of(op.gemm, ctx))
    a, b = op.sets(tile)
    i, j, k = ctx.fresh("i", tile.rows), ctx.fresh("j", tile.cols), as_expr(op.step)
    yield from tile.operand_a(i, k, a)[0]
    yield from tile.operand_b(j, k, b)[0]


@lowering(MultiplyStep)
def _multiply(op: MultiplyStep, ctx: LowerContext) -> Iterable[Stmt]:
    """mma.sync for each block."""
    tile = WarpTile(ctx, op.gemm, plan_of(op.gemm, ctx))
    a, b = op.sets(tile)
    i, j = ctx.fresh("i", tile.rows), ctx.fresh("j", tile.cols)
    yield from tile.multiply(i, j, tile.block_a(i, a), tile.block_b(j, b))


@dataclass(frozen=True)
class Steps:
    """How a gemm is taken apart: its steps, and registers for two of them."""

    count: int
    held: tuple[Buffer, Buffer]

    def fetch(self, gemm: Gemm, step: int) -> Stmt:
        """The fragments of a step of a tile, named by the gemm's regions."""
        return FetchStep(
            gemm.a, gemm.b, gemm.c, self.held, step, gemm.transpose_a, gemm.transpose_b,
            gemm.policy, loc=gemm.loc,
        )  # fmt: skip

    def multiply(self, gemm: Gemm, step: int) -> Stmt:
        """The products of a step."""
        return MultiplyStep(
            gemm.a, gemm.b, gemm.c, self.held, step, gemm.transpose_a, gemm.transpose_b,
            gemm.policy, loc=gemm.loc,
        )  # fmt: skip


def steps_of(gemm: Gemm, ctx: LowerContext) -> Steps | None:
    """How a gemm of tiles in shared memory is taken apart; None for one that is not, or whose
    sums leave no registers for a second set of fragments."""
    plan = plan_of(gemm, ctx)
    if plan.kind != "mma" or gemm.clear_accum is not False or gemm.c.buffer.layout is not None:
        return None
    if any(r.buffer.scope is not Scope.SHARED for r in (gemm.a, gemm.b)):
        return None
    count = plan.k // plan.k_step
    if count % SETS:
        return None  # a tile's first step would meet the last one's registers
    tile = WarpTile(ctx, gemm, plan)
    types = plan.multiplied
    sizes = [n * t.bits for n, t in zip(tile.fragments, types, strict=True)]
    bits = SETS * sum(sizes) + tile.sums * gemm.c.dtype.bits
    if -(-bits // 32) + REGISTERS_BESIDE_TILES > ctx.target.limits.registers_per_thread:
        return None
    a, b = (
        Buffer(ctx.shared.names(f"{r.buffer.root.name}_frag"), (SETS * n,), dtype, Scope.LOCAL)
        for r, n, dtype in zip((gemm.a, gemm.b), tile.fragments, types, strict=True)
    )
    return Steps(count, (a, b))


__all__ = ["FetchStep", "MultiplyStep", "Steps", "steps_of"]
