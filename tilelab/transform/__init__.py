"""Compiler switches by TileLang's path (`tilelang.transform`)."""

from __future__ import annotations

from typing import NoReturn

from tilelab.absent import absent, missing_name
from tilelab.pass_config import PassConfigKey
from tilelab.transform.simplify import apply_simplify, simplify_prim_func

__all__ = ["PassConfigKey", "PassContext", "apply_simplify", "simplify_prim_func"]


def __getattr__(name: str) -> NoReturn:
    raise missing_name("tilelang.transform", name, globals(), "there are no TVM passes")


PassContext = absent(
    "transform.PassContext", "there are no TVM passes", "pass pass_configs={...} to compile or jit"
)
