"""The loop of a consumer role taken apart: waits for slots, releases of slots, iterations moved.

Hides how waits and releases are told from work. `overlap_gemms` and `double_buffer` rearrange such
loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilelab.ir import Expr, For, If, Let, Stmt, Var, const_int
from tilelab.ir.rewrite import substitute
from tilelab.passes.versions import with_own_variables
from tilelab.thread.intrinsics.barrier import MBARRIER_ARRIVE, MBARRIER_WAIT
from tilelab.thread.nodes import Invoke, Ref


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


__all__ = ["at", "frees", "is_wait", "releases", "slots_allow", "without_names"]
