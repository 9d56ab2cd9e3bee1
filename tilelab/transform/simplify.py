"""`tilelang.transform.simplify`: programs without the tensors that no kernel touches.

Expressions are simplified while they are traced; what is left to do is to drop parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilelab.calls import answer_all
from tilelab.frontend import PrimFunc
from tilelab.ir import Function
from tilelab.runtime.untouched import Untouched, variables_of

__all__ = ["apply_simplify", "simplify_prim_func"]


def simplify_prim_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """`@simplify_prim_func` over a function that makes a T.prim_func: what it makes lacks the
    tensors that no kernel reads or writes, a bias that is left out for one."""

    @functools.wraps(func)
    def simplified(*args: Any, **kwargs: Any) -> Any:
        return apply_simplify(func(*args, **kwargs))

    return simplified


def apply_simplify(stmt: Any, inline_let: bool = False) -> Any:
    """A T.prim_func without the tensors that no kernel touches, but for those that alone tell a
    size in use; anything else unchanged. `inline_let` is for the reader of TVM's IR."""
    del inline_let
    if not isinstance(stmt, PrimFunc):
        return stmt
    return PrimFunc(_without_unused(stmt.function), stmt.__wrapped__)


def _without_unused(function: Function) -> Function:
    unused = Untouched.of(function)
    kept = list(range(len(function.params)))
    told = {i: {id(v) for v in variables_of(p)} for i, p in enumerate(function.params)}
    for i in sorted(unused.positions - set(function.outputs)):
        others = set[int]().union(*(told[k] for k in kept if k != i))
        if not told[i] & unused.used - others:
            kept.remove(i)
    known = set[int]().union(*(told[k] for k in kept))
    return replace(
        function,
        params=tuple(function.params[i] for i in kept),
        outputs=tuple(kept.index(i) for i in function.outputs),
        sizes=tuple(v for v in function.sizes if id(v) in known),
    )


answer_all(globals(), __all__, "transform.simplify")
