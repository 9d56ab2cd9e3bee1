"""fold-clear: a wgmma that finds zeros overwrites its accumulator, which then needs none.

    T.clear(C); T.gemm(A, B, C)                           C = A B
    T.clear(C); for k: T.gemm(A, B, C)                    C = A B if k is the first else C + A B
    T.clear(C); for k: T.gemm(A, B, C); use(C); T.clear(C)          for k: C = A B; use(C)

wgmma has a predicate for it (PTX ISA, wgmma.mma_async, scale-d).
"""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from tilelab.ir import Buffer, Const, For, Kernel, Seq, Stmt, binary, const_int
from tilelab.ir.rewrite import map_statements
from tilelab.ir.stmt import may_leave
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.lowering_context import planning_context
from tilelab.passes.touch import touches, uses
from tilelab.tile.operands import is_whole
from tilelab.tile.ops.fill import Fill
from tilelab.tile.ops.gemm import Gemm, plan_of
from tilelab.tile.structure import FOLD_CLEAR

FOLDED = Seq(())
"""Stands in the place of a clear until its block is made anew."""


@kernel_pass("fold-clear", needs=("checked",), switch=FOLD_CLEAR)
def fold_clear(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Let wgmma overwrite an accumulator that was only cleared."""
    return map_statements(kernel, lambda n: _sequence(n, kernel, ctx) if isinstance(n, Seq) else n)


def _sequence(block: Seq, kernel: Kernel, ctx: PassContext) -> Seq:
    """A block with the clears folded of its gemms' accumulators, and of its loops'."""
    body = list(block.body)
    for place, stmt in enumerate(body):
        if isinstance(stmt, Gemm):
            _fold_next_to(body, place, stmt, kernel, ctx)
        if isinstance(stmt, For):
            _fold_round(body, place, stmt, kernel, ctx)
            _fold_first(body, place, stmt, kernel, ctx)
    kept = [s for s in body if s is not FOLDED]
    same = len(kept) == len(block.body) and all(map(is_, kept, block.body))
    return block if same else replace(block, body=tuple(kept))


def _fold_next_to(
    body: list[Stmt], place: int, gemm: Gemm, kernel: Kernel, ctx: PassContext
) -> None:
    """A clear and a gemm of the same block."""
    zero = _clear_before(body[:place], gemm.c.buffer)
    if zero is not None and _can_overwrite(gemm, kernel, ctx):
        body[place] = replace(gemm, clear_accum=True)
        _drop(body, zero)
        ctx.note(f"{gemm.label()} overwrites it: it needs no zeros", gemm)


def _fold_first(body: list[Stmt], place: int, loop: For, kernel: Kernel, ctx: PassContext) -> None:
    """A clear before a loop that only adds to the accumulator."""
    gemm = _only_user(loop, kernel, ctx)
    zero = None if gemm is None else _clear_before(body[:place], gemm.c.buffer)
    if gemm is None or zero is None:
        return
    is_first = binary("==", (loop.var - loop.start) // loop.step, 0)
    body[place] = _with(loop, gemm, replace(gemm, clear_accum=is_first))
    _drop(body, zero)
    ctx.note(f"the first {gemm.label()} overwrites it: it needs no zeros", gemm)


def _fold_round(body: list[Stmt], place: int, loop: For, kernel: Kernel, ctx: PassContext) -> None:
    """A clear before a loop, and one behind the accumulator's last use in each iteration."""
    inner = [] if may_leave(loop.body) else list(loop.body.body)
    for gemm in (s for s in inner if isinstance(s, Gemm)):
        mine = [s for s in inner if uses(s, gemm.c.buffer)]
        last = _clear_before(inner, gemm.c.buffer)
        before = _clear_before(body[:place], gemm.c.buffer)
        if mine[0] is not gemm or last is None or before is None:
            continue
        inside = sum(1 for t in touches(loop) if t.buffer.storage is gemm.c.buffer.storage)
        known = inside + sum(1 for _ in touches(before))
        every = sum(1 for t in touches(kernel) if t.buffer.storage is gemm.c.buffer.storage)
        if every != known or not _can_overwrite(gemm, kernel, ctx):
            continue  # what follows the loop may read the zeros
        inner[inner.index(gemm)] = replace(gemm, clear_accum=True)
        _drop(inner, last)
        kept = tuple(s for s in inner if s is not FOLDED)
        body[place] = replace(loop, body=replace(loop.body, body=kept))
        _drop(body, before)
        ctx.note(f"each {gemm.label()} overwrites it: it needs no zeros", gemm)
        return


def _with(loop: For, old: Stmt, new: Stmt) -> For:
    inner = tuple(new if s is old else s for s in loop.body.body)
    return replace(loop, body=replace(loop.body, body=inner))


def _drop(body: list[Stmt], stmt: Stmt) -> None:
    body[next(i for i, s in enumerate(body) if s is stmt)] = FOLDED


def _can_overwrite(gemm: Gemm, kernel: Kernel, ctx: PassContext) -> bool:
    """Whether it is a wgmma that adds to the whole of an accumulator."""
    if gemm.clear_accum is not False or not is_whole(gemm.c):
        return False
    if gemm.c.buffer.layout is not None:  # the program's: moved to wgmma's and back, zeros too
        return False
    return plan_of(gemm, planning_context(kernel, ctx, kernel.num_threads)).kind == "wgmma"


def _only_user(loop: For, kernel: Kernel, ctx: PassContext) -> Gemm | None:
    """The wgmma in a loop's body that alone touches its accumulator there, and surely runs."""
    count = const_int(loop.extent)
    if count is None or count < 1 or may_leave(loop.body):
        return None
    for stmt in loop.body.body:
        if not isinstance(stmt, Gemm) or not _can_overwrite(stmt, kernel, ctx):
            continue
        others = (t for t in touches(loop) if t.buffer.storage is stmt.c.buffer.storage)
        if all(t.stmt is stmt for t in others):
            return stmt
    return None


def _clear_before(before: list[Stmt], accumulator: Buffer) -> Fill | None:
    """The last statement that touches an accumulator, when it fills all of it with zeros."""
    for stmt in reversed(before):
        if not uses(stmt, accumulator):
            continue
        if not isinstance(stmt, Fill) or not isinstance(stmt.value, Const):
            return None
        return stmt if stmt.value.value == 0 and is_whole(stmt.dst) else None
    return None


__all__ = ["fold_clear"]
