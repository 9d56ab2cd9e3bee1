"""A role's warpgroups: the name of a thread's own one. Hides how the assembler learns that the
number is the same in a whole warp, and so keeps it, and addresses made of it, in uniform registers
(measured: 8 to 17 fewer instructions in an iteration of attention)."""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.ir import Call, Expr, Let, Seq, Stmt, Var, call
from tilelab.target import WARPGROUP, Feature
from tilelab.thread.nodes import Invoke, Role

_UNIFORM = "warp_uniform"


def name_warpgroup(thread: Expr, count: int) -> Let:
    """The statement that names the warpgroup's number: `thread` counts the role's `count` threads
    from 0."""
    var = Var("warpgroup", lo=0, hi=count // WARPGROUP - 1)
    return Let(var, call(_UNIFORM, thread // WARPGROUP))


def warpgroup_in(role: Role, tid: Expr) -> tuple[list[Let], Expr | None]:
    """The name of the warpgroup in a role, and the statement that makes it where a pass has not
    done so; None for roles of one warpgroup, or of parts of one."""
    if role.first % WARPGROUP or role.count % WARPGROUP or role.count == WARPGROUP:
        return [], None
    known = named_in(role.body)
    if known is not None:
        return [], known
    made = name_warpgroup(tid, role.count)
    return [made], made.var


def behind_budget(names: Sequence[Stmt], body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A role's statements with those that make names behind the change of the register budget:
    before it the assembler no longer knows that a warp runs them together."""
    budgets = [isinstance(s, Invoke) and s.intrinsic.needs is Feature.SETMAXNREG for s in body]
    at = budgets.index(False) if False in budgets else len(budgets)
    return (*body[:at], *names, *body[at:])


def named_in(body: Seq) -> Var | None:
    """The name that a role's body has for its warpgroup; None where it has none yet."""
    for stmt in body.body:
        if isinstance(stmt, Let) and isinstance(stmt.value, Call) and stmt.value.fn == _UNIFORM:
            return stmt.var
    return None


__all__ = ["behind_budget", "name_warpgroup", "named_in", "warpgroup_in"]
