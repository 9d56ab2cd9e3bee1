"""`continue` in independent iterations, as branches: hides how the rest of a body is guarded.

A thread that runs iterations of T.Parallel holds several at once, in vectors and unrolled
registers, so there is no loop of its own to go on with.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.ir import Continue, For, If, Node, ParallelFor, Seq, Stmt, While, children, unary
from tilelab.ir.builder import seq


def without_continue(body: Sequence[Stmt]) -> list[Stmt]:
    """The statements of one iteration with what follows a `continue` in the other branch.

    What follows a branch that only sometimes continues stands in each place it is reached from.
    """
    return _then(list(body), [])


def _then(stmts: list[Stmt], rest: list[Stmt]) -> list[Stmt]:
    """`stmts` and, where they do not continue, `rest`."""
    for position, stmt in enumerate(stmts):
        if isinstance(stmt, Continue):
            return stmts[:position]
        if isinstance(stmt, If) and _continues(stmt):
            after = _then(stmts[position + 1 :], rest)
            yes = _then(_statements(stmt.then), after)
            no = _then(_statements(stmt.orelse), after)
            return [*stmts[:position], *_branch(stmt, yes, no)]
    return [*stmts, *rest]


def _branch(stmt: If, yes: list[Stmt], no: list[Stmt]) -> list[Stmt]:
    if not yes and not no:
        return []
    cond = stmt.cond if yes else unary("not", stmt.cond)
    yes, no = (yes, no) if yes else (no, [])
    return [If(cond, seq(yes, stmt.loc), seq(no, stmt.loc) if no else None, loc=stmt.loc)]


def _statements(body: Seq | None) -> list[Stmt]:
    return [] if body is None else list(body.body)


def _continues(node: Node) -> bool:
    """Whether a `continue` of this loop, not of one inside it, stands under `node`."""
    if isinstance(node, For | While | ParallelFor):
        return False
    return isinstance(node, Continue) or any(_continues(c) for c in children(node))
