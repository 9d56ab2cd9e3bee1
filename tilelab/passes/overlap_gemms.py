"""overlap-gemms: an iteration's first product runs together with the last one of the one before.

A loop whose body is gemm 1, elementwise work, gemm 2 (attention: scores, softmax, output) leaves
the tensor cores idle during that work. The loop is skewed by one gemm, which changes no order
between statements that touch the same data:

    gemm 1 (first); work (first)
    others:  issue gemm 1 (i); issue gemm 2 (i-1); wait for gemm 1; work (i), of which only the
             beginning runs before gemm 2 (i-1) is waited for
    gemm 2 (last)

Where the wait for gemm 2 stands: before the first statement that touches its data, or that has a
special function for each element of gemm 1's result; of the latter, a part may run before the wait
(`beside_product.py`). Measured on an H200: with all of a softmax's
exponentials under gemm 2 attention is slower by 9% than with none, as other warpgroups fill the
tensor cores and exponentials mix best with the conversions and products behind them. The assembler
moves waits and releases freely inside straight code, but not across loops; so the wait for gemm 2's
next operand, which is one and is needed anyway, stands before the wait for gemm 2 and, passing at
once, behind the release of its slot again (measured: without the second one the slot is freed after
the exponentials, and 64-column heads lose 10%).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilelab.ir import (
    Call,
    For,
    If,
    Kernel,
    ParallelFor,
    Seq,
    Stmt,
    as_expr,
    binary,
    const_int,
    walk,
)
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.beside_product import Beside, beside
from tilelab.passes.consumer_loop import (
    at,
    is_wait,
    releases,
    rewrite_loops,
    slots_allow,
    without_names,
)
from tilelab.passes.touch import touches, uses
from tilelab.thread.mathfn import math_fn
from tilelab.thread.nodes import Role
from tilelab.tile.context import LowerContext
from tilelab.tile.ops.gemm import Gemm, WaitWgmma, plan_of
from tilelab.tile.structure import OVERLAP_GEMMS

RESULT = "what the gemm computed is used"


@kernel_pass("overlap-gemms", needs=("planned",), switch=OVERLAP_GEMMS)
def overlap_gemms(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Skew loops of two chained products, so that one runs beside the other's preparation."""

    def skew(loop: For, role: Role, lower: LowerContext) -> Stmt | None:
        parts = parts_of(loop, lower)
        if parts is None:
            return None
        ctx.note(parts.reason(), loop)
        if parts.beside is not None:
            ctx.note(parts.beside.why, loop)
        return skewed(parts)

    return rewrite_loops(kernel, ctx, skew)


@dataclass(frozen=True)
class Parts:
    """A loop's body taken apart: `lead` (waits and gemm 1), `freed` (releases of gemm 1's slot),
    `early` and `late` work, `arrival` (the wait for gemm 2's operands), gemm 2, `last` (releases
    of its slot). `beside`: the first of `late`, where a part of it runs before gemm 2 is waited
    for. Scalars that the body names are written out in each part."""

    loop: For
    lead: tuple[Stmt, ...]
    first: Gemm
    freed: tuple[Stmt, ...]
    early: tuple[Stmt, ...]
    arrival: tuple[Stmt, ...]
    late: tuple[Stmt, ...]
    second: Gemm
    last: tuple[Stmt, ...]
    beside: Beside | None

    def reason(self) -> str:
        """For the trace."""
        return (
            f"{self.first.label()} of an iteration runs together with {self.second.label()} of the "
            f"one before; {len(self.early)} statements of {len(self.early) + len(self.late)} "
            "between them run before the latter is waited for"
        )


def parts_of(loop: For, lower: LowerContext) -> Parts | None:
    """The parts of a loop that may be skewed; None for others."""
    body = without_names(loop.body.body)
    gemms = [i for i, s in enumerate(body) if isinstance(s, Gemm)]
    inner = [n for n in walk(loop.body) if isinstance(n, Gemm)]
    if len(gemms) != 2 or len(inner) != 2:
        return None
    a, b = gemms
    first, second = body[a], body[b]
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    if not all(g.waits and plan_of(g, lower).kind == "wgmma" for g in (first, second)):
        return None
    freed = releases(body, a + 1)
    last = releases(body, b + 1)
    between = body[a + 1 + len(freed) : b]
    arrival = tuple(s for s in between if is_wait(s))
    work = [s for s in between if not is_wait(s)]
    if b + 1 + len(last) != len(body) or not arrival or not slots_allow(arrival):
        return None
    if not _may_pass((*body[:a], first), second):
        return None
    cut = next((i for i, s in enumerate(work) if _must_wait(s, first, second)), len(work))
    early, late = tuple(work[:cut]), tuple(work[cut:])
    part = beside(early, late[0], second, loop, lower) if late else None
    return Parts(loop, tuple(body[:a]), first, freed, early, arrival, late, second, last, part)


def _may_pass(lead: Sequence[Stmt], second: Gemm) -> bool:
    """Whether `lead` of an iteration touches nothing that gemm 2 of the one before writes, and
    writes nothing that it touches; single elements kept aside would need more care."""
    theirs = {id(t.buffer.storage): t.is_write for t in touches(second)}
    written = {id(t.buffer.storage) for t in touches(second) if t.is_write}
    for touch in (t for s in lead for t in touches(s)):
        key = id(touch.buffer.storage)
        if key in written or (touch.is_write and key in theirs):
            return False
    return not any(isinstance(s, If | For | Seq) for s in lead)


def _must_wait(stmt: Stmt, first: Gemm, second: Gemm) -> bool:
    """Whether gemm 2 of the iteration before must be done before a statement runs, or had better
    be: see above."""
    theirs = {id(t.buffer.storage) for t in touches(second)}
    if any(id(t.buffer.storage) in theirs for t in touches(stmt)):
        return True
    if not isinstance(stmt, ParallelFor) or len(stmt.vars) < 2:
        return False
    reads = uses(stmt, first.c.buffer)
    return reads and any(
        isinstance(n, Call) and math_fn(n.fn).cost == "special" for n in walk(stmt)
    )


def skewed(parts: Parts) -> Stmt:
    """The loop with gemm 2 one iteration behind."""
    loop, first, second = parts.loop, parts.first, parts.second
    zero = as_expr(0)
    final = loop.start + (loop.extent - 1) * loop.step
    inner = replace(loop, start=loop.start + loop.step, extent=loop.extent - 1)
    early, late = parts.early, parts.late
    if parts.beside is not None:
        early, late = (*early, parts.beside.before), (*parts.beside.behind, *late[1:])
    body = (
        *parts.lead,
        replace(first, waits=False, adds_slots=True),
        *at((replace(second, waits=False, adds_slots=True),), loop, loop.var - loop.step),
        WaitWgmma(1, RESULT, (first.c,), loc=first.loc),
        *parts.freed,
        *early,
        *parts.arrival,
        WaitWgmma(0, RESULT, (second.c,), loc=second.loc),
        *at(parts.last, loop, loop.var - loop.step),
        *parts.arrival,
        *late,
    )
    before = (*parts.lead, first, *parts.freed, *parts.early, *parts.arrival, *parts.late)
    whole = Seq(
        (
            *at(before, loop, loop.start),
            replace(inner, body=Seq(body, loc=loop.loc)),
            *at((second, *parts.last), loop, final),
        ),
        loc=loop.loc,
    )
    some = binary(">", loop.extent, zero)
    return whole if const_int(some) == 1 else If(some, whole, loc=loop.loc)


__all__ = ["overlap_gemms"]
