"""What a gemm op asks of the planner: how its operands lie in registers and shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelab.ir import Buffer, Expr, Region, Scope, as_expr, const_int
from tilelab.ir.simplify import divisibility
from tilelab.layout import Fragment, best_swizzle
from tilelab.target import Feature
from tilelab.tile.op import LayoutContext
from tilelab.tile.ops.gemm_plan import GemmPlan, GemmWarpPolicy, Request, Side, plan_gemm

if TYPE_CHECKING:
    from tilelab.tile.ops.gemm import Gemm

SWIZZLE_ROWS = 8  # rows of one swizzle pattern
K_STEP_BYTES = 32  # of an operand that one wgmma reads along K


def plan_of(op: Gemm, ctx: LayoutContext) -> GemmPlan:
    """Which instruction and warp grid this gemm takes on the context's target and threads."""
    features = ctx.target.features
    if ctx.option("tl.disable_wgmma", False):
        features = features - {Feature.WGMMA}
    policy = op.policy
    if policy is GemmWarpPolicy.AUTO and op.a.buffer.scope is Scope.FRAGMENT:
        policy = GemmWarpPolicy.FullRow  # each warp then holds the rows of A that it multiplies
    m, n, k = op.extents
    a, b = _side(op.a, not op.transpose_a), _side(op.b, op.transpose_b)
    scattered = next((s for r in (op.a, op.b, op.c) if (s := _scattered(r))), "")
    asked = Request(m, n, k, ctx.num_threads, policy, a, b, op.c.dtype, scattered)
    return plan_gemm(asked, features)


def _side(region: Region, k_major: bool) -> Side:
    buffer = region.buffer
    if buffer.scope is Scope.FRAGMENT:
        return Side(buffer.dtype, True, k_major)
    width = best_swizzle(buffer.static_shape[-1], buffer.dtype.bits)
    panel = 1 if width is None else width // buffer.dtype.bytes
    return Side(buffer.dtype, False, k_major, _no_descriptor(region, k_major, width), panel)


def _no_descriptor(region: Region, k_major: bool, width: int | None) -> str:
    """Why no descriptor can name a tile in shared memory: the buffer must be swizzled, or free to
    become so, and a part of it must begin where a swizzle pattern and a step of K begin."""
    buffer = region.buffer
    if width is None:
        return f"a row of {buffer.name} is no multiple of 32 bytes"
    layout = buffer.layout
    if layout is not None and (layout.swizzle is None or layout.swizzle.row != width):
        return f"{buffer.name} is laid out as {layout}"
    if region.tile_axes != (buffer.rank - 2, buffer.rank - 1):
        return f"the tile does not run along the last axes of {buffer.name}"
    row, col = region.starts[-2:]
    step = (K_STEP_BYTES if k_major else width) // buffer.dtype.bytes
    if divisibility(as_expr(row)) % SWIZZLE_ROWS or divisibility(as_expr(col)) % step:
        return f"the tile begins inside a swizzle pattern of {buffer.name}"
    return ""


def _scattered(region: Region) -> str:
    """Why a fragment's region is no whole matrix of it; empty for others."""
    buffer = region.buffer
    if buffer.scope is not Scope.FRAGMENT:
        return ""
    last = range(buffer.rank - 2, buffer.rank)
    whole = all(const_int(region.starts[a]) == 0 for a in last) and all(
        const_int(region.extents[a]) == const_int(buffer.shape[a]) for a in last
    )
    if whole and region.tile_axes == tuple(last):
        return ""
    return f"the tile is only a part of the fragment {buffer.name}"


def matrix_number(region: Region) -> Expr:
    """Which of the matrices of a fragment of more than two axes a region is, from 0."""
    number = as_expr(0)
    for start, extent in zip(region.starts[:-2], region.buffer.shape[:-2], strict=True):
        number = number * extent + start
    return number


def for_all_matrices(layout: Fragment, buffer: Buffer) -> Fragment:
    """The layout of a matrix repeated, over registers, for the leading axes of its buffer."""
    for extent in reversed(buffer.static_shape[:-2]):
        layout = layout.insert_axis(0)
        layout = layout.repeat(extent, *(1 for _ in layout.shape[1:]))
    return layout
