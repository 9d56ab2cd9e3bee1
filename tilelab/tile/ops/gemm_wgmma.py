"""Lowering of a gemm tile to wgmma: descriptors of operands, one instruction per 32 bytes of K.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "Matrix-descriptor format".
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tilelab.errors import Loc
from tilelab.ir import (
    Buffer,
    Expr,
    LoopKind,
    Region,
    Scope,
    Seq,
    Stmt,
    as_expr,
    binary,
    const_int,
    unary,
)
from tilelab.ir.simplify import divisibility
from tilelab.layout import SharedLayout
from tilelab.thread.intrinsics.tensor_core import accumulator_type
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
from tilelab.tile.ops.gemm_plan import GemmPlan
from tilelab.tile.ops.gemm_request import SWIZZLE_ROWS, matrix_number

if TYPE_CHECKING:
    from tilelab.tile.ops.gemm import Gemm

WGMMA_M = 64
A_BYTES = 16  # of A that a thread holds for one instruction


def wgmma_tile(ctx: LowerContext, op: Gemm, plan: GemmPlan) -> list[Stmt]:
    """All instructions of one tile: fence, issue, commit, wait until the group is done (unless
    the program waits itself)."""
    slabs = plan.m // (WGMMA_M * plan.warps_m)
    count = plan.n // plan.warps_n // 2
    registers = ctx.placed(op.c.buffer)
    total = slabs * count
    first = matrix_number(op.c) * total
    slab, steps = ctx.fresh("s", slabs), plan.k // plan.k_step
    kk = ctx.fresh("kk", steps)
    d = Ref(registers, (first + slab * count,), count)
    issue = _issue(ctx, op, plan, d, slab, kk)
    inner = loop(kk, steps, LoopKind.UNROLL, [issue], op.loc)
    acc = plan.types[2]
    done = "the accumulator and the operands' slot are free once the group is done"
    # One Seq: a barrier that the operands need goes before all of it.
    out: tuple[Stmt, ...] = (
        fence(registers, first, total, acc, op.loc),
        Invoke(WARPGROUP_ARRIVE, (), "order earlier register writes before wgmma", loc=op.loc),
        loop(slab, slabs, LoopKind.UNROLL, [inner], op.loc),
        Invoke(WARPGROUP_COMMIT, (), loc=op.loc),
    )
    after = fence(registers, first, total, acc, op.loc)
    if not op.waits:
        ctx.shared.unwaited.append(after)
    else:
        wait = Invoke(warpgroup_wait(0), (), done, loc=op.loc)
        out = (*out, wait, after)
    return [Seq(out, loc=op.loc)]


def _issue(ctx: LowerContext, op: Gemm, plan: GemmPlan, d: Ref, slab: Expr, kk: Expr) -> Stmt:
    """One instruction: slab `slab` of this warpgroup, step `kk` of K."""
    n = plan.n // plan.warps_n
    slabs = plan.m // (WGMMA_M * plan.warps_m)
    group = ctx.warpgroup
    row = group % plan.warps_m * (slabs * WGMMA_M) + slab * WGMMA_M
    col = group // plan.warps_m * n
    k = kk * plan.k_step
    b = operand(ctx, op.b, k, col, k_major=op.transpose_b, adds_slots=op.adds_slots)
    keep = _keep(op, kk)
    left, right, acc = plan.types
    trans_b = not op.transpose_b
    if op.a.buffer.scope is Scope.FRAGMENT:
        # Registers of A: 16 bytes for each step of K, the steps of a slab side by side.
        slots, steps = A_BYTES // op.a.dtype.bytes, plan.k // plan.k_step
        first = matrix_number(op.a) * (slabs * steps * slots)
        first = first + (slab * (steps * slots) + kk * slots)
        held = Ref(ctx.placed(op.a.buffer), (first,), slots)
        return Invoke(wgmma_rs(n, left, trans_b, b=right, acc=acc), (held, b, d, keep), loc=op.loc)
    a = operand(ctx, op.a, k, row, k_major=not op.transpose_a, adds_slots=op.adds_slots)
    kind = wgmma_ss(n, left, op.transpose_a, trans_b, b=right, acc=acc)
    return Invoke(kind, (a, b, d, keep), loc=op.loc)


def _keep(op: Gemm, kk: Expr) -> Expr:
    """Whether an instruction adds to the accumulator: all but the first of a cleared tile."""
    cleared = const_int(op.clear_accum)
    if cleared is None:
        return binary("or", kk > 0, unary("not", op.clear_accum)).astype("int32")
    return (kk > 0).astype("int32") if cleared else as_expr(1)


def fence(registers: Buffer, first: Expr, total: int, acc: str, loc: Loc | None) -> Stmt:
    """Pin the accumulator's registers: its writes stay before the instructions, reads behind the
    wait, and the assembler has no reason to add waits of its own (its warnings C7510 to C7519)."""
    return Invoke(fence_registers(total, acc), (Ref(registers, (first,), total),), loc=loc)


def fence_accumulator(ctx: LowerContext, region: Region, loc: Loc | None) -> Stmt:
    """As `fence`, for the accumulator that a region of a fragment is."""
    buffer = region.buffer
    matrices = prod(buffer.static_shape[:-2])
    total = int(ctx.placed(buffer).static_shape[0]) // matrices
    acc = accumulator_type(buffer.dtype)
    return fence(ctx.placed(buffer), matrix_number(region) * total, total, acc, loc)


def operand(
    ctx: LowerContext, region: Region, k: Expr, major: Expr, *, k_major: bool, adds_slots: bool
) -> SharedDescriptor:
    """Descriptor of the 32-byte deep slice of an operand at (`major`, `k`) of its tile. With
    `adds_slots`, of tiles in slots the first one's, to which the bytes up to the slot are added.

    K-major (K contiguous): rows of the swizzle pattern lie 8 x pitch apart (SBO); LBO is unused
    with a swizzle. MN-major: LBO leads to the next panel of rows/columns, SBO 8 steps along K.
    """
    buffer = ctx.placed(region.buffer)
    layout: SharedLayout = buffer.layout
    size = layout.element_bits // 8
    pitch = layout.row_pitch * size
    swizzle = layout.swizzle.row if layout.swizzle is not None else 0
    first, advance = _from_first_step(region, k, layout, k_major)
    region, slot = _from_first_slot(region, layout) if adds_slots else (region, None)
    index = (major, first) if k_major else (first, major)
    place = Ref(buffer, region.index(index))
    leading = 16 if k_major else layout.panel_stride * size
    return SharedDescriptor(place, leading, SWIZZLE_ROWS * pitch, swizzle, advance, slot)


def _from_first_step(
    region: Region, k: Expr, layout: SharedLayout, k_major: bool
) -> tuple[Expr, Expr | None]:
    """A step along K as (where a descriptor begins, the bytes that it advances from there).

    The bytes of a step are added to one descriptor of the whole tile: its address, the part that
    needs arithmetic, is then formed once. Where a tile begins inside a panel, each step has its
    own.
    """
    size = layout.element_bits // 8
    if not k_major:
        return as_expr(0), k * (layout.row_pitch * size)
    panel = layout.panel_cols
    if divisibility(as_expr(region.starts[-1])) % panel and const_int(region.starts[-1]) != 0:
        return k, None
    return as_expr(0), k // panel * (layout.panel_stride * size) + k % panel * size


def _from_first_slot(region: Region, layout: SharedLayout) -> tuple[Region, Expr]:
    """A tile as (the same one in the first slot, the bytes from there): starts on the axes before
    its rows and columns that are not constant, a ring's slots, are taken out."""
    starts, away = list(region.starts), as_expr(0)
    for axis, stride in enumerate(layout.leading_strides[:-1]):
        if axis not in region.tile_axes and const_int(starts[axis]) is None:
            away = away + starts[axis] * (stride * layout.element_bits // 8)
            starts[axis] = as_expr(0)
    return replace(region, starts=tuple(starts)), away
