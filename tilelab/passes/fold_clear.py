"""fold-clear: the first wgmma of a loop overwrites its accumulator, which then needs no zeros.

`T.clear(C); for k: T.gemm(A, B, C)` becomes `for k: C = A B if k is the first else C + A B`: wgmma
has a predicate for it (PTX ISA, wgmma.mma_async, scale-d).
"""

from __future__ import annotations

from dataclasses import replace

from tilelab.ir import (
    Buffer,
    Const,
    For,
    Kernel,
    Seq,
    Stmt,
    binary,
    const_int,
)
from tilelab.ir.rewrite import map_statements
from tilelab.passes.base import PassContext, kernel_pass
from tilelab.passes.lowering_context import planning_context
from tilelab.passes.touch import touches
from tilelab.tile.operands import is_whole
from tilelab.tile.ops.fill import Fill
from tilelab.tile.ops.gemm import Gemm, plan_of
from tilelab.tile.structure import FOLD_CLEAR


@kernel_pass("fold-clear", needs=("checked",), switch=FOLD_CLEAR)
def fold_clear(kernel: Kernel, ctx: PassContext) -> Kernel:
    """Let the first wgmma of a loop overwrite an accumulator that was only cleared."""
    return map_statements(kernel, lambda n: _sequence(n, kernel, ctx) if isinstance(n, Seq) else n)


def _sequence(block: Seq, kernel: Kernel, ctx: PassContext) -> Seq:
    """A block with the clears of its loops' accumulators folded."""
    body = list(block.body)
    for place, stmt in enumerate(body):
        if not isinstance(stmt, For):
            continue
        gemm = _first_user(stmt, kernel, ctx)
        zero = None if gemm is None else _clear_before(body[:place], gemm.c.buffer)
        if gemm is None or zero is None:
            continue
        is_first = binary("==", (stmt.var - stmt.start) // stmt.step, 0)
        folded = replace(gemm, clear_accum=is_first)
        inner = tuple(folded if s is gemm else s for s in stmt.body.body)
        body[place] = replace(stmt, body=replace(stmt.body, body=inner))
        body[body.index(zero)] = Seq((), loc=zero.loc)
        ctx.note(f"the first {gemm.label()} overwrites it: it needs no zeros", gemm)
    changed = any(a is not b for a, b in zip(body, block.body, strict=True))
    return replace(block, body=tuple(body)) if changed else block


def _first_user(loop: For, kernel: Kernel, ctx: PassContext) -> Gemm | None:
    """The wgmma in a loop's body that alone touches its accumulator there, and surely runs."""
    count = const_int(loop.extent)
    if count is None or count < 1:
        return None
    for stmt in loop.body.body:
        if not isinstance(stmt, Gemm) or stmt.clear_accum is not False or not is_whole(stmt.c):
            continue
        if stmt.c.buffer.layout is not None:  # the program's: moved to wgmma's and back, zeros too
            continue
        others = (t for t in touches(loop) if t.buffer.storage is stmt.c.buffer.storage)
        alone = all(t.stmt is stmt for t in others)
        if (
            alone
            and plan_of(stmt, planning_context(kernel, ctx, kernel.num_threads)).kind == "wgmma"
        ):
            return stmt
    return None


def _clear_before(before: list[Stmt], accumulator: Buffer) -> Fill | None:
    """The last statement that touches an accumulator, when it fills all of it with zeros."""
    for stmt in reversed(before):
        if not any(t.buffer.storage is accumulator.storage for t in touches(stmt)):
            continue
        if not isinstance(stmt, Fill) or not isinstance(stmt.value, Const):
            return None
        return stmt if stmt.value.value == 0 and is_whole(stmt.dst) else None
    return None


__all__ = ["fold_clear"]
