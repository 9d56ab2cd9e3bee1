"""The loops of a consumer role: found, and taken apart into waits for slots, releases and work.

Hides how waits and releases are told from work. `overlap_gemms` and `double_buffer` rearrange such
loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilelab.ir import Expr, For, If, Kernel, Let, LoopKind, Node, Stmt, Var, const_int
from tilelab.ir.rewrite import rewrite_statements, substitute
from tilelab.passes.base import PassContext
from tilelab.passes.lowering_context import planning_context
from tilelab.passes.versions import with_own_variables
from tilelab.thread.intrinsics.barrier import MBARRIER_ARRIVE, MBARRIER_WAIT
from tilelab.thread.nodes import Invoke, Ref, Role
from tilelab.tile.context import LowerContext

Turn = Callable[[For, Role, LowerContext], "Stmt | None"]


def rewrite_loops(kernel: Kernel, ctx: PassContext, turn: Turn) -> Kernel:
    """`kernel` with the serial loops of its consumer role as `turn(loop, role, context)` gives
    them; where it gives None, the loop stays and loops inside are asked."""

    def in_role(role: Node) -> Node | None:
        if not isinstance(role, Role) or role.name != "consumer":
            return None
        lower = planning_context(kernel, ctx, role.count)

        def turned(loop: Node) -> Node | None:
            if not isinstance(loop, For) or loop.kind is not LoopKind.SERIAL:
                return None
            return turn(loop, role, lower)

        return replace(role, body=rewrite_statements(role.body, turned))

    return rewrite_statements(kernel, in_role)


def without_names(body: Sequence[Stmt]) -> list[Stmt]:
    """A body with the scalars that it names written out where they are used."""
    names: dict[Var, Expr] = {}
    out: list[Stmt] = []
    for stmt in body:
        done = substitute(stmt, names) if names else stmt
        if isinstance(done, Let):
            names[done.var] = done.value
        else:
            out.append(done)
    return out


def releases(body: Sequence[Stmt], start: int) -> tuple[Stmt, ...]:
    """The statements from `start` on that only free slots."""
    stop = start
    while stop < len(body) and frees(body[stop]):
        stop += 1
    return tuple(body[start:stop])


def frees(stmt: Stmt) -> bool:
    """Whether a statement does nothing but free slots."""
    if isinstance(stmt, If):
        return stmt.orelse is None and all(frees(s) for s in stmt.then.body)
    return isinstance(stmt, Invoke) and stmt.intrinsic is MBARRIER_ARRIVE


def is_wait(stmt: Stmt) -> bool:
    """Whether a statement waits for a slot."""
    return isinstance(stmt, Invoke) and stmt.intrinsic is MBARRIER_WAIT


def slots_allow(arrival: Sequence[Stmt]) -> bool:
    """Whether the next tiles that are waited for may arrive while the last ones are still read:
    their rings have two slots at least."""
    refs = [s.operands[0] for s in arrival if isinstance(s, Invoke)]
    return all(isinstance(r, Ref) and (const_int(r.buffer.shape[0]) or 0) >= 4 for r in refs)


def at(body: Sequence[Stmt], loop: For, value: Expr) -> tuple[Stmt, ...]:
    """Statements of an iteration at a value of the loop's variable, with variables of their own."""
    return with_own_variables(body, {loop.var: value})


__all__ = ["at", "frees", "is_wait", "releases", "rewrite_loops", "slots_allow", "without_names"]
