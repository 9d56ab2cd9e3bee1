"""T.Parallel loops inside T.Parallel as loops over the box of both.

Hides how a body is taken apart: points of T.Parallel are independent, so what stands before and
behind an inner loop runs in a loop of its own, and names and conditions are evaluated in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilelab.errors import TileNotSupported
from tilelab.ir import (
    Alloc,
    Expr,
    For,
    If,
    Let,
    Load,
    Node,
    ParallelFor,
    Seq,
    Stmt,
    Var,
    as_expr,
    binary,
    const_int,
    unary,
    walk,
)
from tilelab.ir.stmt import may_leave


def unnested(loop: ParallelFor) -> list[Stmt]:
    """The loops that `loop` means, none inside another. TileNotSupported (TL1714) where the inner
    loop cannot be reached so."""
    return list(_apart(loop, loop.body.body, [])) if _loop_in(loop.body) else [loop]


def _loop_in(node: Node) -> ParallelFor | None:
    return next((n for n in walk(node) if isinstance(n, ParallelFor)), None)


def _apart(loop: ParallelFor, body: Sequence[Stmt], lets: list[Stmt]) -> Iterator[Stmt]:
    """`body`, statements of one point of `loop`, in loops; `lets` are bound before it."""
    lets, waiting = list(lets), list[Stmt]()
    for stmt in body:
        inner = _loop_in(stmt)
        if inner is None:
            if isinstance(stmt, Let):
                _check_same(stmt.value, loop, inner)
                lets.append(stmt)
            elif isinstance(stmt, Alloc):
                raise _refused(loop, "variables of a point are not shared with a loop inside")
            else:
                waiting.append(stmt)
            continue
        yield from _loop_of(loop, lets, waiting)
        waiting = []
        yield from _with_inner(loop, stmt, inner, lets)
    yield from _loop_of(loop, lets, waiting)


def _loop_of(loop: ParallelFor, lets: list[Stmt], stmts: list[Stmt]) -> Iterator[ParallelFor]:
    """`loop` over `stmts` alone, behind the names that they use; none where there are none."""
    if stmts:
        yield replace(loop, body=Seq((*lets, *stmts), loc=loop.body.loc))


def _with_inner(
    loop: ParallelFor, stmt: Stmt, inner: ParallelFor, lets: list[Stmt]
) -> Iterator[Stmt]:
    """A statement of `loop` that is or holds the loop `inner`."""
    own = {*loop.vars, *(s.var for s in lets if isinstance(s, Let))}
    if stmt is inner:
        yield _merged(loop, inner, lets, own)
    elif isinstance(stmt, If):
        _check_same(stmt.cond, loop, inner)
        for cond, branch in ((stmt.cond, stmt.then), (unary("not", stmt.cond), stmt.orelse)):
            for part in _apart(loop, branch.body if branch else (), lets):
                yield _under(part, cond, stmt, len(lets))
    elif isinstance(stmt, For) and not may_leave(stmt.body):
        if any(n in own for e in (stmt.start, stmt.extent, stmt.step) for n in walk(e)):
            raise _refused(inner, "the loop around it has another length for each point")
        yield replace(stmt, body=Seq(tuple(_apart(loop, stmt.body.body, lets)), loc=stmt.loc))
    else:
        raise _refused(inner, f"a {type(stmt).__name__.lower()} stands between the two")


def _merged(loop: ParallelFor, inner: ParallelFor, lets: list[Stmt], own: set[Var]) -> ParallelFor:
    """One loop over the box of both; an inner extent that depends on the point becomes a guard."""
    body, extents = inner.body, list[Expr | int]()
    for var, extent in zip(inner.vars, inner.extents, strict=True):
        if const_int(extent) is None and any(n in own for n in walk(as_expr(extent))):
            most = as_expr(extent).bounds[1]
            if most is None:
                raise _refused(inner, "its extent depends on the point and has no known bound")
            body = Seq((If(binary("<", var, extent), body, loc=inner.loc),), loc=body.loc)
            extent = int(most)
        extents.append(extent)
    known = dict(loop.attrs)
    attrs = (*loop.attrs, *((k, v) for k, v in inner.attrs if k not in known))
    return replace(
        loop, vars=(*loop.vars, *inner.vars), extents=(*loop.extents, *extents),
        body=Seq((*lets, *body.body), loc=body.loc), attrs=attrs,
    )  # fmt: skip


def _under(part: Stmt, cond: Expr, branch: If, names: int) -> Stmt:
    """A part of a branch with the branch's condition on each point, after the first `names`
    statements, which bind what it uses."""
    if isinstance(part, For):
        inside = tuple(_under(s, cond, branch, names) for s in part.body.body)
        return replace(part, body=replace(part.body, body=inside))
    assert isinstance(part, ParallelFor)
    stmts = part.body.body
    guarded = If(cond, Seq(stmts[names:], loc=branch.loc), loc=branch.loc)
    return replace(part, body=replace(part.body, body=(*stmts[:names], guarded)))


def _check_same(value: Expr, loop: ParallelFor, inner: ParallelFor | None) -> None:
    """A value that several loops evaluate must not change between them."""
    read = {id(n.buffer.storage) for n in walk(value) if isinstance(n, Load)}
    others = (n for n in walk(loop.body) if not isinstance(n, Load))
    changed = {id(n.buffer.storage) for n in others if hasattr(n, "buffer")}  # type: ignore[attr-defined]
    if read & changed:
        raise _refused(inner or loop, "a value read before it is of a buffer that the loop writes")


def _refused(loop: ParallelFor, why: str) -> TileNotSupported:
    return TileNotSupported(
        f"a T.Parallel loop inside T.Parallel cannot be one loop with it: {why}",
        code="TL1714", loc=loop.loc, hint="write one T.Parallel over the axes of both",
    )  # fmt: skip
