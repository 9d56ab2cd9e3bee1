"""Lowering of a gemm tile to wgmma: descriptors of both operands, one instruction per 16 of K.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "Matrix-descriptor format".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.errors import Loc
from tilelab.ir import Expr, LoopKind, Region, Scope, Seq, Stmt, as_expr
from tilelab.layout import SharedLayout
from tilelab.thread.intrinsics.wgmma import (
    WARPGROUP_ARRIVE,
    WARPGROUP_COMMIT,
    fence_registers,
    warpgroup_wait,
    wgmma_rs,
    wgmma_ss,
)
from tilelab.thread.nodes import Invoke, Ref, SharedDescriptor
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import loop
from tilelab.tile.ops.gemm_plan import WARPGROUP, WGMMA_M, GemmPlan

if TYPE_CHECKING:
    from tilelab.tile.ops.gemm import Gemm

A_SLOTS = 8  # elements of A that a thread holds for one instruction
K_STEP = 16  # elements of K in one instruction, 16-bit operands
SWIZZLE_ROWS = 8  # rows of one swizzle pattern


def wgmma_tile(ctx: LowerContext, op: Gemm, plan: GemmPlan) -> list[Stmt]:
    """All instructions of one tile: fence, issue, commit, wait until the group is done."""
    n = plan.n // plan.warps_n
    slabs = plan.m // (WGMMA_M * plan.warps_m)
    registers = ctx.placed(op.c.buffer)
    group = ctx.tid // WARPGROUP
    slab, kk = ctx.fresh("s", slabs), ctx.fresh("kk", plan.k // K_STEP)
    row = group % plan.warps_m * (slabs * WGMMA_M) + slab * WGMMA_M
    col = group // plan.warps_m * n
    b = operand(ctx, op.b, kk * K_STEP, col, k_major=op.transpose_b)
    count = n // 2
    d = Ref(registers, (slab * count,), count)
    keep: Expr = as_expr(1) if not op.clear_accum else (kk > 0).astype("int32")
    trans_b = not op.transpose_b
    if op.a.buffer.scope is Scope.FRAGMENT:
        # Registers of an M x K accumulator: 8 neighbours for each 16 of K.
        first = slab * (plan.k // 2) + kk * A_SLOTS
        held = Ref(ctx.placed(op.a.buffer), (first,), A_SLOTS)
        issue = Invoke(wgmma_rs(n, plan.ptx_type, trans_b), (held, b, d, keep), loc=op.loc)
    else:
        a = operand(ctx, op.a, kk * K_STEP, row, k_major=not op.transpose_a)
        kind = wgmma_ss(n, plan.ptx_type, op.transpose_a, trans_b)
        issue = Invoke(kind, (a, b, d, keep), loc=op.loc)
    inner = loop(kk, plan.k // K_STEP, LoopKind.UNROLL, [issue], op.loc)
    total = slabs * count
    done = "the accumulator and the operands' slot are free once the group is done"
    # One Seq: a barrier that the operands need goes before all of it.
    steps: tuple[Stmt, ...] = (
        fence(registers, total, op.loc),
        Invoke(WARPGROUP_ARRIVE, (), "order earlier register writes before wgmma", loc=op.loc),
        loop(slab, slabs, LoopKind.UNROLL, [inner], op.loc),
        Invoke(WARPGROUP_COMMIT, (), loc=op.loc),
        Invoke(warpgroup_wait(0), (), done, loc=op.loc),
        fence(registers, total, op.loc),
    )
    return [Seq(steps, loc=op.loc)]


def fence(registers: object, total: int, loc: Loc | None) -> Stmt:
    """Pin the accumulator's registers: its writes stay before the instructions, reads behind the
    wait, and the assembler has no reason to add waits of its own (its warnings C7510 to C7519)."""
    return Invoke(fence_registers(total), (Ref(registers, (as_expr(0),), total),), loc=loc)  # type: ignore[arg-type]


def operand(
    ctx: LowerContext, region: Region, k: Expr, major: Expr, *, k_major: bool
) -> SharedDescriptor:
    """Descriptor of the 16-deep slice of an operand at (`major`, `k`) of its tile.

    K-major (K contiguous): rows of the swizzle pattern lie 8 x pitch apart (SBO); LBO is unused
    with a swizzle. MN-major: LBO leads to the next panel of rows/columns, SBO 8 steps along K.
    """
    buffer = ctx.placed(region.buffer)
    layout: SharedLayout = buffer.layout
    size = layout.element_bits // 8
    pitch = layout.row_pitch * size
    swizzle = layout.swizzle.row if layout.swizzle is not None else 0
    index = (major, k) if k_major else (k, major)
    place = Ref(buffer, region.index(index))
    if k_major:
        return SharedDescriptor(place, 16, SWIZZLE_ROWS * pitch, swizzle)
    return SharedDescriptor(place, layout.panel_stride * size, SWIZZLE_ROWS * pitch, swizzle)
