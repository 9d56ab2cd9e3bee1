"""How much elementwise work with special functions runs beside a product before it is waited for.

Hides the estimate. A warpgroup's product keeps the tensor cores busy for a known time, in which the
warpgroup does what stands before the wait. What is then left of that time costs nothing if it is
filled, and more than fills it delays the next product: measured on an H200 with 128-column heads
and two warpgroups, exponentials that fit (16 of a thread's 64) are worth 5%, and 24 lose it again.

The other warpgroups do the same work, on the same units. So by the estimate each of them runs here
too: a scheduler has one warp of each, and a stage takes it as long as all of them issue, or as long
as one of them takes with its latencies, if that is more. Elements come in whole K steps of the
product that waits for them. Where nothing is left (64-column heads) the wait stands in front of the
loop: exponentials before it lose there (2 to 3% with 16 of 64, measured).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tilelab.ir import (
    Binary,
    Call,
    Cast,
    Expr,
    For,
    ParallelFor,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    const_int,
    walk,
)
from tilelab.passes.masks import admitted, masks, rows_of
from tilelab.passes.parted_loops import in_two
from tilelab.passes.split_loops import where_true
from tilelab.passes.touch import touches
from tilelab.target import WARPGROUP
from tilelab.thread.costs import COSTS, rates
from tilelab.thread.mathfn import math_fn
from tilelab.tile.context import LowerContext
from tilelab.tile.ops.gemm import Gemm, plan_of
from tilelab.tile.ops.reduce import Reduce
from tilelab.tile.structure import BESIDE_PRODUCT, SPLIT_LOOPS, setting

_EXTREMES = 2
"""Cycles of a scheduler for a warp's minimum or maximum: 16 lanes a cycle (CUDA C++ programming
guide, arithmetic instructions, compute capability 9.0); additions take one."""
_ROW_EXCHANGES = 2
"""Shuffles one behind the other in which the four lanes that hold a row of wgmma's accumulator
combine it."""


@dataclass(frozen=True)
class Beside:
    """A loop taken apart: `before` runs before the wait for the product, `behind` after it."""

    before: ParallelFor
    behind: tuple[ParallelFor, ...]
    why: str


def beside(
    early: Sequence[Stmt], stmt: Stmt, product: Gemm, loop: For, lower: LowerContext
) -> Beside | None:
    """What of `stmt` runs beside `product`, behind the statements `early` of `loop`'s iterations;
    None where all of it should wait."""
    if not setting(lower, BESIDE_PRODUCT) or not isinstance(stmt, ParallelFor):
        return None
    plan, threads = plan_of(product, lower), lower.num_threads
    free, bound = _apart(stmt, product)
    special = _special(free)
    if not special or _size(stmt.extents) != plan.m * plan.k:
        return None
    count, step = plan.m * plan.k // threads, max(plan.m * plan.k_step // threads, 1)
    groups = max(threads // WARPGROUP, 1)
    warps, bits = plan.warps_m * plan.warps_n, plan.multiplied[0].bits
    time = rates(lower.target.limits).product_cycles(plan.m, plan.n, plan.k, bits) / warps
    taken = _stage_cycles(early, loop, groups, lower)
    points = min(round((time - taken) / (groups * special) / step) * step, count)
    if points <= 0:
        return None
    why = (
        f"{points} of a thread's {count} exponentials run beside {product.label()}: it takes "
        f"{time:.0f} cycles, what stands before them {taken:.0f}, each of them "
        f"{groups * special:.0f} with {groups} warpgroups"
    )
    parts = in_two(replace(stmt, body=replace(stmt.body, body=free)), points, count)
    rest = (replace(stmt, body=replace(stmt.body, body=bound)),) if bound else ()
    return Beside(parts[0], (*parts[1:], *rest), why)


def _apart(stmt: ParallelFor, product: Gemm) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """The stores of a loop between fragments: those at the beginning that touch nothing of the
    product's, and the others. Nothing is free of a loop with other statements."""
    theirs, body = {id(t.buffer.storage) for t in touches(product)}, stmt.body.body
    plain = all(isinstance(s, Store) for s in body)
    if not plain or any(t.buffer.scope is not Scope.FRAGMENT for t in touches(stmt)):
        return (), body
    bound = [any(id(t.buffer.storage) in theirs for t in touches(s)) for s in body]
    free = [*bound, True].index(True)
    return body[:free], body[free:]


def _size(extents: Sequence[Expr | int]) -> int:
    return prod(const_int(e) or 0 for e in extents)


def _special(body: Sequence[Stmt]) -> float:
    """Cycles of the special units for a warp's instruction on one point each."""
    costs = [math_fn(n.fn).cost for s in body for n in walk(s) if isinstance(n, Call)]
    return costs.count("special") * COSTS["special"].issue


def _stage_cycles(early: Sequence[Stmt], loop: For, groups: int, lower: LowerContext) -> float:
    """Cycles until a warp is past some statements, beside the warps of the other warpgroups."""
    parts = [part for stmt in early for part in _mostly(stmt, loop, lower)]
    issue = sum(_issue(part, lower.num_threads) for part in parts)
    joins = sum(isinstance(part, Reduce) and part.joins for part in parts)
    return max(groups * issue, issue + joins * _ROW_EXCHANGES * COSTS["shared"].latency)


def _mostly(stmt: Stmt, loop: For, lower: LowerContext) -> Sequence[Stmt]:
    """What a statement is in most iterations: without a mask that `split-loops` takes out."""
    if not isinstance(stmt, ParallelFor) or not setting(lower, SPLIT_LOOPS):
        return (stmt,)
    known = {id(m.condition) for m in masks(stmt) if admitted(m, loop, rows_of(loop)) is not None}
    return where_true(Seq((stmt,), loc=stmt.loc), known).body


def _issue(stmt: Stmt, threads: int) -> float:
    """Cycles of its scheduler that a warp's instructions for a statement on a whole tile take;
    statements on rows are few."""
    if isinstance(stmt, Reduce):
        return _size(stmt.src.tile_shape) / threads * (1 if "sum" in stmt.kind else _EXTREMES)
    if not isinstance(stmt, ParallelFor) or len(stmt.vars) < 2:
        return 0.0
    found = (n for n in walk(stmt.body) if isinstance(n, Binary | Call | Cast | Select))
    costs = (COSTS[math_fn(n.fn).cost if isinstance(n, Call) else "alu"] for n in found)
    return _size(stmt.extents) / threads * sum(cost.issue for cost in costs)


__all__ = ["Beside", "beside"]
