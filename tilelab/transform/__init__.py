"""Compiler switches by TileLang's path (`tilelang.transform`)."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelab.absent import absent, missing_name
from tilelab.calls import answer_all
from tilelab.pass_config import PassConfigKey

__all__ = ["PassConfigKey", "PassContext", "simplify_prim_func"]


def simplify_prim_func(func: Any) -> Any:
    """The function itself: programs are simplified while they are traced."""
    return func


def __getattr__(name: str) -> NoReturn:
    raise missing_name("tilelang.transform", name, globals(), "there are no TVM passes")


PassContext = absent(
    "transform.PassContext", "there are no TVM passes", "pass pass_configs={...} to compile or jit"
)


answer_all(globals(), ("simplify_prim_func",), "transform")
