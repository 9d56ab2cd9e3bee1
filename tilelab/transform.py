"""Compiler switches, and programs without unused tensors, by TileLang's path
(`tilelang.transform`, and `tilelang.transform.simplify`, which is this module too)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from tilelab.absent import absent, missing_name
from tilelab.calls import answer_all
from tilelab.frontend import PrimFunc
from tilelab.pass_config import PassConfigKey
from tilelab.runtime.untouched import Untouched, variables_of

__all__ = ["PassConfigKey", "PassContext", "apply_simplify", "simplify_prim_func"]
__path__: list[str] = []  # a package, by the shim's leave


def simplify_prim_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """`@simplify_prim_func` over a function that makes a T.prim_func: `apply_simplify` of it."""

    @functools.wraps(func)
    def simplified(*args: Any, **kwargs: Any) -> Any:
        return apply_simplify(func(*args, **kwargs))

    return simplified


def apply_simplify(stmt: Any, inline_let: bool = False) -> Any:
    """A T.prim_func without the tensors that no kernel touches (a bias that is left out), but for
    those that alone tell a size in use. Expressions are simplified when they are traced."""
    del inline_let
    if not isinstance(stmt, PrimFunc):
        return stmt
    function, left = stmt.function, Untouched.of(stmt.function)
    told = {i: {id(v) for v in variables_of(p)} for i, p in enumerate(function.params)}
    for i in sorted(left.positions - set(function.outputs)):
        if not told[i] & left.used - set[int]().union(*(told[k] for k in told if k != i)):
            del told[i]
    kept, known = list(told), set[int]().union(*told.values())
    simpler = replace(
        function, params=tuple(function.params[i] for i in kept),
        outputs=tuple(map(kept.index, function.outputs)),
        sizes=tuple(v for v in function.sizes if id(v) in known),
    )  # fmt: skip
    return PrimFunc(simpler, stmt.__wrapped__)


def __getattr__(name: str) -> NoReturn:
    raise missing_name("tilelang.transform", name, globals(), "there are no TVM passes")


PassContext = absent(
    "transform.PassContext", "there are no TVM passes", "pass pass_configs={...} to compile or jit"
)


answer_all(globals(), ("apply_simplify", "simplify_prim_func"), "transform")
