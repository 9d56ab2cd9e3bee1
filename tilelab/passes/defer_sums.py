"""Row sums of a loop that lanes exchange once, behind the loop, instead of in every iteration.

    for ...: s *= x; s += sum(row of a tile)       or       part = sum(row); s = s * x + part

Scaling and adding are linear, so each thread's part of `s` can go through them by itself, as long
as every part is scaled by what its row shares. The order of additions changes: relaxed arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilelab.ir import (
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Node,
    ParallelFor,
    Scope,
    Seq,
    Stmt,
    Store,
    walk,
)
from tilelab.ir.rewrite import rewrite_statements
from tilelab.passes.base import PassContext
from tilelab.passes.touch import touches
from tilelab.tile.operands import is_whole, whole
from tilelab.tile.ops.fill import Fill
from tilelab.tile.ops.gemm import Gemm
from tilelab.tile.ops.join_parts import JoinParts
from tilelab.tile.ops.reduce import Reduce


@dataclass(frozen=True)
class Growing:
    """A sum that grows in a loop: the reduction that adds to it, and the buffer that keeps it
    (the reduction's own, or one that it is added to)."""

    reduction: Reduce
    kept: Buffer


def defer_sums(block: Seq, ctx: PassContext) -> Seq:
    """A block with the growing sums of its loops in parts, joined behind the loop."""
    out: list[Stmt] = []
    for place, stmt in enumerate(block.body):
        found = list(_growing(stmt, block.body[:place])) if isinstance(stmt, For) else []
        if not found:
            out.append(stmt)
            continue
        deferred = {id(g.reduction): replace(g.reduction, joins=False) for g in found}
        assert isinstance(stmt, For)
        body = tuple(deferred.get(id(s), s) for s in stmt.body.body)
        out.append(replace(stmt, body=replace(stmt.body, body=body)))
        for g in found:
            parts = g.reduction.dst.buffer
            out.append(JoinParts(whole(g.kept), parts, loc=g.reduction.loc))
            ctx.note(
                f"{g.kept.name}: each thread keeps its part of a row's sum, and lanes add them up "
                "once, behind the loop",
                g.reduction,
            )
    changed = len(out) != len(block.body)
    return replace(block, body=tuple(out)) if changed else block


def joined_again(kernel: Kernel, buffer: Buffer) -> Kernel | None:
    """The kernel with sums joined in every iteration, where `buffer` holds parts of one; None
    where it does not."""
    ops = [n for n in walk(kernel) if isinstance(n, JoinParts)]
    mine = [op for op in ops if buffer.storage in (op.dst.buffer.storage, op.parts_of)]
    if not mine:
        return None
    parts = {id(op.parts_of) for op in mine}

    def joined(n: Node) -> Node | None:
        if any(n is op for op in mine):
            return Seq((), loc=mine[0].loc)
        if isinstance(n, Reduce) and id(n.dst.buffer) in parts:
            return replace(n, joins=True)
        return None

    return rewrite_statements(kernel, joined)


def _growing(loop: For, before: Sequence[Stmt]) -> Iterator[Growing]:
    body = loop.body.body
    if not any(isinstance(s, Gemm) for s in body):
        return  # elsewhere lanes exchange while memory is waited for
    for stmt in body:
        if not isinstance(stmt, Reduce) or not _adds_rows(stmt):
            continue
        kept = stmt.dst.buffer if not stmt.clear else _added_to(stmt, body)
        if kept is None or kept.alias_of is not None or not _starts_at_zero(kept, before):
            continue
        both = {id(kept), id(stmt.dst.buffer)}
        if all(_linear(s, both) for s in body if s is not stmt and _touches(s, both)):
            yield Growing(stmt, kept)


def _adds_rows(stmt: Reduce) -> bool:
    fragments = all(
        r.buffer.scope is Scope.FRAGMENT and is_whole(r) and r.buffer.alias_of is None
        for r in (stmt.src, stmt.dst)
    )
    rank = len(stmt.src.tile_shape)
    wide = stmt.dst.dtype.name == "float32" and stmt.factor == 1
    return stmt.kind == "sum" and fragments and wide and rank == 2 and stmt.axis == 1


def _added_to(stmt: Reduce, body: Sequence[Stmt]) -> Buffer | None:
    """The one buffer that takes up a reduction's result; nothing else reads the result."""
    parts = stmt.dst.buffer
    loops = (s for s in body if isinstance(s, ParallelFor))
    written = (n for loop in loops for n in walk(loop) if isinstance(n, Store))
    stores = [n for n in written if _reads(n.value, {id(parts)})]
    return stores[0].buffer if len(stores) == 1 and stores[0].buffer is not parts else None


def _starts_at_zero(kept: Buffer, before: Sequence[Stmt]) -> bool:
    """Whether a sum is 0 before its loop, in every thread."""
    for stmt in reversed(before):
        if not _touches(stmt, {id(kept)}):
            continue
        if not isinstance(stmt, Fill) or not isinstance(stmt.value, Const):
            return False
        return stmt.value.value == 0 and is_whole(stmt.dst)
    return False


def _touches(stmt: Stmt, buffers: set[int]) -> bool:
    return any(id(t.buffer.storage) in buffers for t in touches(stmt))


def _linear(stmt: Stmt, sums: set[int]) -> bool:
    """Whether a statement keeps parts of sums parts: it stores sums of them and of multiples."""
    if not isinstance(stmt, ParallelFor) or len(stmt.vars) != 1:
        return False
    for inner in stmt.body.body:
        if not isinstance(inner, Store):
            return False
        reads = _reads(inner.value, sums)
        if id(inner.buffer) in sums:
            if not reads or not _is_linear(inner.value, sums):
                return False
        elif reads:
            return False
    return True


def _is_linear(e: Expr, sums: set[int]) -> bool:
    if isinstance(e, Load):
        return id(e.buffer) in sums
    if not isinstance(e, Binary):
        return False
    if e.op == "+":
        return _is_linear(e.a, sums) and _is_linear(e.b, sums)
    if e.op != "*":
        return False
    a, b = _reads(e.a, sums), _reads(e.b, sums)
    return (a and not b and _is_linear(e.a, sums)) or (b and not a and _is_linear(e.b, sums))


def _reads(e: Expr, sums: set[int]) -> bool:
    return any(isinstance(n, Load) and id(n.buffer) in sums for n in walk(e))


__all__ = ["defer_sums", "joined_again"]
