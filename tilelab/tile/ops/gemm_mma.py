"""Lowering of a gemm tile to mma.sync: ldmatrix fragments, then 16x8x16 blocks per warp.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k16", "ldmatrix".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.errors import Loc
from tilelab.ir import Buffer, Expr, LoopKind, Region, Scope, Stmt, Store, as_expr
from tilelab.layout.atoms import ldmatrix_x4
from tilelab.thread.intrinsics.mma import ldmatrix, mma_sync
from tilelab.thread.nodes import Invoke, Ref
from tilelab.tile.context import LowerContext
from tilelab.tile.elementwise import loop
from tilelab.tile.ops.gemm_plan import MMA_K, MMA_M, MMA_N, WARP, GemmPlan

if TYPE_CHECKING:
    from tilelab.tile.ops.gemm import Gemm

A_SLOTS, B_SLOTS, C_SLOTS = 8, 4, 4  # elements of one block's operands in a lane


def mma_tile(ctx: LowerContext, op: Gemm, plan: GemmPlan) -> list[Stmt]:
    """For every 16 of K: fetch this warp's A and B fragments, multiply all its blocks."""
    rows, cols = plan.m // plan.warps_m // MMA_M, plan.n // plan.warps_n // MMA_N
    lane, warp = ctx.tid % WARP, ctx.tid // WARP
    row0 = warp % plan.warps_m * (rows * MMA_M)
    col0 = warp // plan.warps_m % plan.warps_n * (cols * MMA_N)
    c = ctx.placed(op.c.buffer)
    kk = ctx.fresh("kk", plan.k // MMA_K)
    k = kk * MMA_K
    i, j = ctx.fresh("i", rows), ctx.fresh("j", cols)
    body: list[Stmt] = []
    if op.a.buffer.scope is Scope.FRAGMENT:
        # An accumulator's registers: the two n8 blocks of one k step are neighbours.
        a_ref = Ref(ctx.placed(op.a.buffer), ((i * (plan.k // MMA_N) + kk * 2) * C_SLOTS,), A_SLOTS)
    else:
        a = ctx.temp(f"{op.a.buffer.name}_frag", rows * A_SLOTS, plan.dtype)
        fetch = _load_a(ctx, op, a, i, row0 + i * MMA_M, k, lane)
        body.append(loop(i, rows, LoopKind.UNROLL, [fetch], op.loc))
        a_ref = Ref(a, (i * A_SLOTS,), A_SLOTS)
    if op.b.buffer.scope is Scope.FRAGMENT:
        b_ref = Ref(ctx.placed(op.b.buffer), ((j + kk * cols) * B_SLOTS,), B_SLOTS)
    else:
        b = ctx.temp(f"{op.b.buffer.name}_frag", cols * B_SLOTS, plan.dtype)
        body.extend(_load_b(ctx, op, b, cols, col0, k, lane))
        b_ref = Ref(b, (j * B_SLOTS,), B_SLOTS)
    operands = (Ref(c, ((i * cols + j) * C_SLOTS,), C_SLOTS), a_ref, b_ref)
    multiply = Invoke(mma_sync(plan.ptx_type), operands, loc=op.loc)
    inner = loop(j, cols, LoopKind.UNROLL, [multiply], op.loc)
    body.append(loop(i, rows, LoopKind.UNROLL, [inner], op.loc))
    out: list[Stmt] = _clear(ctx, c, op.loc) if op.clear_accum else []
    return [*out, loop(kk, plan.k // MMA_K, LoopKind.UNROLL, body, op.loc)]


def _clear(ctx: LowerContext, c: Buffer, loc: Loc | None) -> list[Stmt]:
    count = int(c.static_shape[0])
    r = ctx.fresh("i", count)
    return [loop(r, count, LoopKind.LANES, [Store(c, (r,), as_expr(0, c.dtype), loc=loc)], loc)]


def _load_a(
    ctx: LowerContext, op: Gemm, a: Buffer, i: Expr, row: Expr, k: Expr, lane: Expr
) -> Stmt:
    """One 16x16 block of A, stored (m, k) or, transposed, (k, m)."""
    r, chunk = ldmatrix_x4(lane, "a", trans=op.transpose_a)
    index = (k + r, row + chunk * 8) if op.transpose_a else (row + r, k + chunk * 8)
    source = _address(ctx, op.a, index)
    target = Ref(a, (i * A_SLOTS,), A_SLOTS)
    return Invoke(ldmatrix(4, op.transpose_a), (target, source), loc=op.loc)


def _load_b(
    ctx: LowerContext, op: Gemm, b: Buffer, cols: int, col0: Expr, k: Expr, lane: Expr
) -> list[Stmt]:
    """All of this warp's columns of B: two n8 blocks per ldmatrix.x4, a last odd one by .x2."""
    trans = not op.transpose_b
    r, chunk = ldmatrix_x4(lane, "b", trans=trans)
    out: list[Stmt] = []
    if cols // 2:
        j = ctx.fresh("j", cols // 2)
        source = _address(ctx, op.b, _b_index(op, r, chunk, col0 + j * (2 * MMA_N), k))
        target = Ref(b, (j * (2 * B_SLOTS),), 2 * B_SLOTS)
        fetch = Invoke(ldmatrix(4, trans), (target, source), loc=op.loc)
        out.append(loop(j, cols // 2, LoopKind.UNROLL, [fetch], op.loc))
    if cols % 2:
        # Only lanes 0-15 give addresses; the upper half repeats them, so all stay inside.
        r, chunk = ldmatrix_x4(lane % 16, "b", trans=trans)
        last = cols - 1
        source = _address(ctx, op.b, _b_index(op, r, chunk, col0 + last * MMA_N, k))
        target = Ref(b, (as_expr(last * B_SLOTS),), B_SLOTS)
        out.append(Invoke(ldmatrix(2, trans), (target, source), loc=op.loc))
    return out


def _b_index(op: Gemm, r: Expr, chunk: Expr, col: Expr, k: Expr) -> tuple[Expr, Expr]:
    return (col + r, k + chunk * 8) if op.transpose_b else (k + r, col + chunk * 8)


def _address(ctx: LowerContext, region: Region, index: tuple[Expr, Expr]) -> Ref:
    return Ref(ctx.placed(region.buffer), region.index(index))
