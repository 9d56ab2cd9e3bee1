"""Values that each thread has of its own, as far as a program being traced says so. Hides how
names are followed to what they were bound to."""

from __future__ import annotations

from tilelab.ir import Expr, Let, Load, Scope, Var, as_expr, walk
from tilelab.ir.builder import current


def is_own_value(value: object) -> bool:
    """Whether a scalar is made from a thread's index, or from its own variables: threads that
    come by mean different values by it."""
    value = as_expr(value) if hasattr(value, "__expr__") else value
    if not isinstance(value, Expr):
        return False
    bound = {id(s.var): s.value for block in current().blocks for s in block if isinstance(s, Let)}
    todo, seen = [value], set[int]()
    while todo:
        for n in walk(todo.pop()):
            if isinstance(n, Load) and n.buffer.scope is Scope.LOCAL:
                return True
            if not isinstance(n, Var) or id(n) in seen:
                continue
            seen.add(id(n))
            if n.role == "thread":
                return True
            if id(n) in bound:
                todo.append(bound[id(n)])
    return False
